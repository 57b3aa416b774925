"""The verdict on a claim from the verdicts on its figures."""

import pytest

from fsbench.claims import (
    CLAIMS,
    PARTS,
    ClaimCondition,
    ClaimFigure,
    ClaimStatement,
    ClaimVerdict,
    assess_statement,
    judge_figures,
    list_statements,
    load_recorded,
    require_at_least,
    require_at_most,
)


@pytest.mark.parametrize(
    ("reproduced", "direction", "failed", "verdict"),
    [
        (3, 0, 0, "reproduced"),
        (0, 3, 0, "direction only"),
        (8, 1, 1, "direction only"),
        (8, 0, 2, "not reproduced"),
    ],
)
def test_overall(reproduced: int, direction: int, failed: int, verdict: ClaimVerdict) -> None:
    verdicts: list[ClaimVerdict] = [
        *["reproduced"] * reproduced,
        *["direction only"] * direction,
        *["not reproduced"] * failed,
    ]
    figures = [ClaimFigure(what="x", published="1", ours="2", verdict=v) for v in verdicts]
    assert judge_figures(figures) == verdict


def make_figure(what: str, verdict: ClaimVerdict) -> ClaimFigure:
    return ClaimFigure(what=what, published="1", ours="2", verdict=verdict)


STATEMENT = ClaimStatement(text="A beats B", condition="over-fitting", rule="A above B")


@pytest.mark.parametrize(
    ("holds", "verdict", "reason"),
    [
        (True, "not reproduced", "1 of 3 figures reproduced; not reproduced: c: 2 (published 1)"),
        (False, "not testable here", "training accuracy: 98 %, required at least 99 %"),
    ],
)
def test_a_failed_condition_goes_before_every_figure(
    holds: bool, verdict: ClaimVerdict, reason: str
) -> None:
    condition = ClaimCondition(
        what="training accuracy", required="at least 99 %", ours="98 %", holds=holds
    )
    figures = [
        make_figure("a", "reproduced"),
        make_figure("b", "direction only"),
        make_figure("c", "not reproduced"),
    ]
    outcome = assess_statement("x", STATEMENT, [condition], figures)
    assert (outcome.verdict, outcome.reason) == (verdict, reason)


def test_conditions_take_the_worst_value() -> None:
    least = require_at_least("fit", [99.5, 98.9], 99)
    assert (least.required, least.ours, least.holds) == ("at least 99 %", "98.9 %", False)
    assert require_at_least("fit", [99.0], 99).holds
    most = require_at_most("gap", [1.0, 5.5], 5, " points")
    assert (most.required, most.ours, most.holds) == ("at most 5 points", "5.5 points", False)
    assert require_at_most("gap", [5.0], 5).holds


@pytest.mark.parametrize("name", CLAIMS.names())
def test_recorded_outcomes_are_those_of_the_statements(name: str) -> None:
    """A recorded outcome has the statements and rules that the file states today."""
    claim = CLAIMS.load(name).CLAIM
    for full in (False, True):
        outcome = load_recorded(name, full)
        if outcome is None:
            continue
        assert {s.name: (s.statement, s.rule) for s in outcome.statements} == {
            part: (statement.text, statement.rule) for part, statement in claim.statements.items()
        }
        assert outcome.full == full
        assert outcome.provenance is not None
        assert outcome.provenance.command.split()[2] == name
        for statement in outcome.statements:
            again = assess_statement(
                statement.name,
                claim.statements[statement.name],
                statement.conditions,
                statement.figures,
            )
            assert again == statement


def test_the_list_has_a_row_per_statement() -> None:
    rows = list_statements()
    expected = [(name, part) for name, file in CLAIMS.items() for part in file.CLAIM.statements]
    assert [(row["claim"], row["statement"]) for row in rows] == expected
    assert all(row["condition"] and row["says"] for row in rows)


@pytest.mark.parametrize("name", CLAIMS.names())
def test_every_claim_has_its_parts(name: str) -> None:
    claim = CLAIMS.load(name)
    assert all(hasattr(claim, part) for part in PARTS)
    assert claim.CLAIM.statements
    assert all(s.text and s.condition and s.rule for s in claim.CLAIM.statements.values())
