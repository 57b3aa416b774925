"""What a table marks, by hand: the best and its ties, gains over the control, flags, the mean."""

import math

import pytest
from support.sheets import COLUMNS, ERROR, constant, swinging, view

from leaderboard.reports.table import (
    ReportTable,
    build_report_table,
    group_labels,
    make_caption_title,
    write_caption,
)

ONE, FIVE = COLUMNS


def cells(table: ReportTable, column: str = ONE) -> dict[str, tuple[bool, str]]:
    return {r.name: (r.cells[column].best, r.cells[column].mark()) for r in table.rows}


def test_best_of_a_column_and_what_no_test_tells_from_it() -> None:
    entries = {
        "first": {ONE: constant(0.6)},
        "near": {ONE: swinging(0.6 - 1.9 * ERROR)},  # p .057
        "far": {ONE: swinging(0.6 - 3.5 * ERROR)},  # p .0005
    }
    marks = cells(build_report_table(view(entries, (ONE,))))
    assert marks == {"first": (True, ""), "near": (True, ""), "far": (False, "")}


def test_each_column_has_its_own_best() -> None:
    entries = {
        "a": {ONE: constant(0.6), FIVE: constant(0.7)},
        "b": {ONE: constant(0.5), FIVE: constant(0.9)},
    }
    table = build_report_table(view(entries))
    assert cells(table, ONE) == {"a": (True, ""), "b": (False, "")}
    assert cells(table, FIVE) == {"a": (False, ""), "b": (True, "")}


def test_marks_against_the_control_after_holm() -> None:
    """t 2.2 of 99 is p .030 alone; with two comparisons Holm doubles it, and nothing is marked."""
    entries = {"control": {ONE: constant(0.5)}, "up": {ONE: swinging(0.5 + 2.2 * ERROR)}}
    alone = build_report_table(view(entries, (ONE,)), "control")
    assert cells(alone)["up"][1] == "†"
    assert alone.rows[0].cells[ONE].p == pytest.approx(0.03013, abs=1e-5)
    both = build_report_table(
        view({**entries, "like": {ONE: swinging(0.5 + 0.1 * ERROR)}}, (ONE,)), "control"
    )
    assert cells(both)["up"][1] == ""
    up = next(row for row in both.rows if row.name == "up").cells[ONE]
    assert up.p == pytest.approx(2 * 0.03013, abs=1e-5)
    assert up.gap is not None
    assert up.gap.gap == pytest.approx(2.2 * ERROR)
    assert up.gap.ci95 == pytest.approx(1.96 * ERROR)


def test_worse_than_the_control_is_marked_as_such_and_the_control_never_is() -> None:
    entries = {"control": {ONE: constant(0.5)}, "down": {ONE: swinging(0.5 - 5 * ERROR)}}
    assert cells(build_report_table(view(entries, (ONE,)), "control")) == {
        "control": (True, ""),
        "down": (False, "‡"),
    }
    assert cells(build_report_table(view(entries, (ONE,))))["down"] == (False, "")


def test_overall_is_the_mean_and_knows_that_columns_share_episodes() -> None:
    entries = {"a": {ONE: swinging(0.5), FIVE: swinging(0.7)}, "half": {ONE: constant(0.1)}}
    rows = {row.name: row for row in build_report_table(view(entries)).rows}
    a = rows["a"].overall
    assert a is not None
    assert a.score.mean == pytest.approx(0.6)
    # Both columns swing together, so their mean swings as much: no sqrt(2) is gained.
    assert a.score.ci95 == pytest.approx(1.96 * ERROR)
    assert rows["half"].overall is None
    assert rows["half"].tier is None
    assert list(rows["half"].cells) == [ONE]


def test_one_column_has_no_overall() -> None:
    table = build_report_table(view({"a": {ONE: constant(0.5)}}, (ONE,)))
    assert table.rows[0].overall is None
    assert not table.has_overall
    assert not [s for s in write_caption(table) if s.startswith("Overall")]


def test_flags_are_marked_in_cells_and_in_the_mean_and_explained() -> None:
    entries = {"a": {ONE: constant(0.5), FIVE: constant(0.6)}}
    table = build_report_table(view(entries, flags={"a": {FIVE: ("subset", "short")}}))
    row = table.rows[0]
    assert row.cells[ONE].flags == ()
    assert row.cells[FIVE].flags == ("subset", "short")
    assert row.overall is not None
    assert row.overall.flags == ("subset", "short")
    assert table.letters == {"subset": "a", "short": "b"}
    assert "b: short (fewer episodes than the spec), not official." in write_caption(table)


def test_caption_states_the_interval_and_the_control() -> None:
    entries = {"a": {ONE: constant(0.5), FIVE: constant(0.6)}, "b": {FIVE: constant(0.6)}}
    text = " ".join(write_caption(build_report_table(view(entries), "a", ["as noted", "twice."])))
    assert "1.96 s / sqrt(n)" in text
    assert "in percent" in text
    assert "† significantly better and ‡ worse than a " in text
    assert text.endswith("as noted. twice.")
    assert "marked against" in " ".join(
        write_caption(build_report_table(view(entries), "elsewhere"))
    )
    assert make_caption_title(build_report_table(view(entries))) == "mine: linear@ibm 64px"
    assert (
        make_caption_title(build_report_table(view({"a": entries["b"]}, (FIVE,))))
        == "mine: ibm 64px"
    )


def test_columns_of_a_data_set_stand_together() -> None:
    assert group_labels(["a:probe 64px", "a:5w1s/linear@ibm 64px", "b:5w1s/linear@ibm 64px"]) == [
        ("a", ["probe", "5w1s"]),
        ("b", ["5w1s"]),
    ]


def test_one_outcome_has_no_interval_and_no_entries_no_rows() -> None:
    import numpy as np

    from leaderboard.ranking.outcomes import Outcomes

    single = {"a": {ONE: Outcomes(np.arange(1), np.array([0.5]), "draws")}}
    table = (
        build_report_table(view({**single, "b": {ONE: constant(0.2)}}, (ONE,)), "b")
        .rows[0]
        .cells[ONE]
    )
    assert math.isnan(table.score.ci95)
    assert table.mark() == ""
    assert build_report_table(view({}, ())).rows == ()
