"""The engine: runs over seeds, conditions, comparisons and the verdict from those on figures."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.jobs import measure_seed

from fsbench.claims import CLAIMS, engine, load_recorded
from fsbench.claims.engine import (
    Claim,
    ClaimCard,
    ClaimCondition,
    ClaimFigure,
    ClaimSettings,
    ClaimStatement,
    Runs,
    SeedMean,
    run_claims,
)


def make_statement(**fields: Any) -> ClaimStatement:
    texts = {"text": "A beats B", "condition": "over-fitting", "rule": "A above B"}
    return ClaimStatement(**texts, fault_reason="few images", **fields)


@pytest.mark.parametrize(
    ("reproduced", "direction", "failed", "verdict"),
    [
        (3, 0, 0, "reproduced"),
        (0, 3, 0, "direction only"),
        (8, 1, 1, "direction only"),
        (8, 0, 2, "not reproduced"),
    ],
)
def test_the_verdict_from_figures_conditions_and_a_search(
    reproduced: int, direction: int, failed: int, verdict: str
) -> None:
    """A failed condition goes before every figure; agreement after a search is no evidence."""
    verdicts = ["reproduced"] * reproduced + ["direction only"] * direction
    verdicts += ["not reproduced"] * failed
    figures = [
        ClaimFigure.model_validate({"what": "x", "published": "1", "ours": "2", "verdict": v})
        for v in verdicts
    ]
    outcome = make_statement().assess("x", figures)
    assert outcome.verdict == verdict
    assert outcome.fault == (None if verdict == "reproduced" else "set-up differs")
    assert outcome.reason.startswith(f"{reproduced} of {len(figures)} figures reproduced")
    assert failed == 0 or outcome.reason.endswith("; not reproduced: x: 2 (published 1)")
    condition = ClaimCondition(what="training accuracy", required="99 %", ours="98 %", holds=False)
    outcome = make_statement().assess("x", [*figures, condition])
    assert outcome.verdict == "not testable here"
    assert outcome.reason == "training accuracy: 98 %, required 99 %"
    assert outcome.fault == "not testable at this scale"
    outcome = make_statement(fault="contradicts the paper").assess("x", figures)
    assert outcome.fault == (None if verdict == "reproduced" else "contradicts the paper")
    outcome = make_statement(searched=True).assess("x", figures)
    assert outcome.verdict == "not reproduced"
    assert f"(alone: {verdict})" in outcome.reason


RUNS = Runs({"a": [{"fit": 99.5}, {"fit": 98.9}], "b": [{"fit": 99.0}, {"fit": 104.4}]})


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (RUNS.require("x", "fit", "a"), ("at least 99 %", "99.2 ± 0.3 %", True)),
        (RUNS.require("x", "fit", "a", 99.3), ("at least 99.3 %", "99.2 ± 0.3 %", False)),
        (RUNS.require("x", "fit", ["b", "a"], 99.3), ("at least 99.3 %", "99.2 ± 0.3 %", False)),
        (
            RUNS.require_equal("x", "fit", "a", "b", 2.9),
            ("at most 2.9 points", "3 ± 2.5 points", False),
        ),
        (RUNS.require_equal("x", "fit", "b", "a", 3), ("at most 3 points", "3 ± 2.5 points", True)),
        (engine.require("x", "at most", 95, [90, 100]), ("at most 95 %", "95 ± 5 %", True)),
        (engine.require("x", "at most", 95, [95.04]), ("at most 95 %", "95.04 %", False)),
    ],
)
def test_conditions_take_the_mean_over_seeds_and_the_worst_arm(
    condition: ClaimCondition, expected: tuple[str, str, bool]
) -> None:
    assert (condition.required, condition.ours, condition.holds) == expected


def test_the_paired_difference_by_hand() -> None:
    """Differences 1, 2, 3: mean 2, deviation 1, error 1 / sqrt(3)."""
    gain = engine.compare_pairs([2, 4, 6], [1, 2, 3])
    assert gain == pytest.approx((2, 3**-0.5))
    assert f"{gain} {gain:.1f} {gain.show('.1f')}" == "+2.00 ± 0.58 +2.0 ± 0.6 2.0 ± 0.6"
    assert [SeedMean(1, error).is_clear for error in (0.4, 0.6)] == [True, False]


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ((1.0, 1.2), "reproduced"),
        ((-0.1, 1.0, 1.0, 1.0), "reproduced"),
        ((0.1, 1.9), "direction only"),
        ((0.0, 0.0), "not reproduced"),
        ((0.1, -1.2), "not reproduced"),
    ],
)
def test_a_gain_beyond_twice_its_error(gains: tuple[float, ...], verdict: str) -> None:
    runs = Runs({"a": [{"x": 5 + g, "y": g} for g in gains], "b": [{"x": 5}] * len(gains)})
    assert runs.compare("x", "a", "b").judge("what").verdict == verdict
    assert runs.compare("y", "a").judge("what").verdict == verdict
    assert engine.judge_gains("x", "up", "up", gains).verdict == verdict


SQUARES = Claim(
    ClaimCard(
        source="arithmetic",
        set_up="",
        seeds=3,
        full_seeds=4,
        statements={"plain": make_statement(), "colour": make_statement(colour=True)},
    ),
    {
        "plain": lambda runs: [runs.compare("square", "a", "b").judge("")],
        "colour": lambda runs: [runs.compare("square", "in colour").judge("")],
    },
    measure_seed,
    arms=("a", "b"),
    colour_arms=("in colour",),
)


def test_claims_share_processes_that_run_every_arm_with_every_seed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Outcomes come in the order of the claims, each of its own runs."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    collected = []

    def judge(runs: Runs) -> list[ClaimFigure]:
        collected.append(runs)
        return [runs.compare("square", "a", "b").judge("")]

    one, other = (
        replace(SQUARES, arms=arms, judges={**SQUARES.judges, "plain": judge})
        for arms in (("a", "b"), ("b", "a", "c"))
    )
    outcomes = list(run_claims([one, other], ClaimSettings(seeds=2, processes=1)))
    assert [(outcome.seeds, outcome.full) for outcome in outcomes] == [(2, False)] * 2
    assert [list(runs) for runs in collected] == [["a", "b"], ["b", "a", "c"]]
    for runs in collected:
        assert runs.collect("square", "a") == runs.collect("square", "b") == [100**2, 101**2]
    [pid] = {pid for runs in collected for pid in runs.collect("pid", ["a", "b"])}
    assert pid != os.getpid()
    assert set(collected[0].collect("folder", ["a", "b"])) == {str(tmp_path)}


def test_jobs_are_of_the_seeds_of_the_run_and_in_colour_where_images_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def count(settings: ClaimSettings) -> tuple[list[str], int]:
        jobs = SQUARES.list_jobs(settings)
        return list(dict.fromkeys(job.arm for job in jobs)), len({job.seed for job in jobs})

    assert count(ClaimSettings()) == (["a", "b"], 3)
    assert count(ClaimSettings(full=True)) == (["a", "b"], 4)
    assert count(ClaimSettings(seeds=2)) == (["a", "b"], 2)
    monkeypatch.setattr(ClaimSettings, "colour_images", 1)
    assert count(ClaimSettings()) == (["a", "b", "in colour"], 3)


def test_notes_are_means_and_views_are_mean_curves() -> None:
    runs = Runs(
        {
            ("x", "a"): [{"n": 1, "by epoch": [1, 2]}, {"n": 2.0, "by epoch": [3, 6]}],
            ("x", "b"): [{"n": 4, "by epoch": [0, 0]}],
            "c": [{"n": 7}],
        }
    )
    assert list(engine.describe_arms(runs)) == ["x, a: n 1.5", "x, b: n 4", "c: n 7"]
    views = list(engine.draw_curves(runs, {"by epoch": engine.FROM_FIRST}))
    assert {(v.title, v.x, v.y) for v in views} == {("x: by epoch", "epoch", "by epoch")}
    assert [(v.label, v.at, v.values) for v in views] == [
        ("a", (1, 2), (2, 4)),
        ("b", (1, 2), (0, 0)),
    ]
    assert next(engine.draw_curves(runs, {"by epoch": ("c", (0.9, 0.1))})).at == (0.9, 0.1)


@pytest.mark.parametrize("name", CLAIMS.names())
def test_recorded_outcomes_are_those_of_the_card(name: str) -> None:
    """A recorded outcome has the statements and rules of today, and its verdicts follow."""
    claim = CLAIMS.load(name)
    assert set(claim.judges) == set(claim.card.statements)
    for full in (False, True):
        outcome = load_recorded(name, full)
        if outcome is None:
            continue
        assert outcome.full == full
        assert outcome.provenance is not None
        assert outcome.provenance.command.split()[2] == name
        assert [statement.name for statement in outcome.statements] == list(claim.card.statements)
        for recorded in outcome.statements:
            statement = claim.card.statements[recorded.name]
            judgements = [*recorded.conditions, *recorded.figures]
            assert statement.assess(recorded.name, judgements) == recorded
