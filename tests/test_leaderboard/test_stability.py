"""Choices of a board: who is first, tiers of parts, and Kendall's tau, against numbers by hand."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from support.methods import outcomes

from leaderboard.figures import draw_stability
from leaderboard.ranking.stability import (
    ALL,
    RankedChoice,
    RowStability,
    Stability,
    compute_tau,
    rank_choices,
    split_columns,
)
from leaderboard.ranking.tiers import Contenders, rank_entries

ONE, FIVE, OTHER = (
    f"{task}/linear@ibm 32px" for task in ("eurosat:5w1s", "eurosat:5w5s", "isic:5w1s")
)
ACCURACIES = {
    "a": {ONE: 0.5, FIVE: 0.9, OTHER: 0.5},
    "b": {ONE: 0.6, FIVE: 0.7, OTHER: 0.4},
    "c": {ONE: 0.4, FIVE: 0.6, OTHER: 0.5},
    "lacks": {ONE: 0.9, FIVE: 0.9},
}


def rank_table(label: str, rows: Contenders) -> list[RankedChoice]:
    columns = sorted({column for of_row in rows.values() for column in of_row})
    return rank_choices(label, rank_entries(rows, columns), rows)


def make_rows(accuracies: dict[str, dict[str, float]]) -> Contenders:
    """Every episode has the same accuracy, so that every gap is significant."""
    return {
        name: {c: outcomes(np.full(30, value), c) for c, value in by_column.items()}
        for name, by_column in accuracies.items()
    }


def make_choice(*ranks: int) -> RankedChoice:
    named = dict(zip("abcd", ranks, strict=False))
    return RankedChoice(table="t", part=ALL, shape="", ranks=named, tier=("a",))


def test_a_choice_ranks_whole_rows_by_the_mean_over_its_columns() -> None:
    """Means of a, b, c: all .633 .567 .5; 1 shot .5 .5 .45; 5 shots .9 .7 .6; isic .5 .4 .5."""
    choices = {choice.part: choice for choice in rank_table("linear", make_rows(ACCURACIES))}
    assert [*choices] == [ALL, "5w1s", "5w5s", "eurosat", "isic"]
    assert [choice.ranks for choice in choices.values()] == [
        {"a": 1, "b": 2, "c": 3},
        {"a": 1, "b": 1, "c": 3},
        {"a": 1, "b": 2, "c": 3},
        {"a": 1, "b": 2, "c": 3},
        {"a": 1, "c": 1, "b": 3},
    ]
    tiers = [choice.tier for choice in choices.values()]
    assert tiers == [("a",), ("a", "b"), ("a",), ("a",), ("a", "c")]


def test_rows_that_are_first_are_counted_over_the_choices_that_rank_them() -> None:
    tables = {}
    for label, names in {"linear": "abc", "ridge": "bc", "affine": "bc", "alone": "b"}.items():
        rows = make_rows({name: ACCURACIES[name] for name in names})
        columns = [ONE, OTHER] if label == "affine" else [ONE, FIVE, OTHER]
        tables[label] = rank_entries(rows, columns), rows
    stability = Stability.of(tables)
    assert stability.rows == (
        RowStability(name="a", choices=5, first=5, alone=3, tier=5),
        RowStability(name="b", choices=13, first=7, alone=6, tier=7),
        RowStability(name="c", choices=13, first=3, alone=2, tier=3),
    )
    assert [row.share for row in stability.rows] == [1.0, 7 / 13, 3 / 13]
    assert stability.groups == {
        "all tables": {"linear": 0, "ridge": 5, "affine": 10},
        "all tables, 5w1s": {"linear": 1, "ridge": 6, "affine": 10},
        "all tables, 5w5s": {"linear": 2, "ridge": 7},
        "linear": {ALL: 0, "5w1s": 1, "5w5s": 2, "eurosat": 3, "isic": 4},
        "ridge": {ALL: 5, "5w1s": 6, "5w5s": 7, "eurosat": 8, "isic": 9},
        "affine": {ALL: 10, "eurosat": 11, "isic": 12},
    }
    assert stability.taus[0][0] == pytest.approx(1)
    assert stability.taus[0][5] is None, "two rows are ranked by both"
    figure = draw_stability(stability, "linear", stability.groups["linear"])
    assert figure is not None
    axes, _ = figure.axes
    assert isinstance(axes, Axes)
    shown = [text.get_text() for text in axes.texts]
    assert shown[:6] == ["1.00", "0.82", "1.00", "1.00", "0.00", "1 of 3: a"]
    assert draw_stability(stability, "linear", {ALL: 0}) is None


@pytest.mark.parametrize(
    ("one", "other", "tau"),
    [
        ((1, 2, 3, 4), (2, 1, 3, 4), 4 / 6),
        ((1, 2, 3, 4), (4, 3, 2, 1), -1.0),
        ((1, 1, 3, 4), (1, 2, 3, 4), 5 / 30**0.5),
        ((1, 2, 3, 4), (3, 1, 2), -1 / 3),
        ((1, 2, 3), (1, 1, 1), None),
        ((1, 2, 3), (1, 2), None),
    ],
)
def test_tau_counts_pairs(one: tuple[int, ...], other: tuple[int, ...], tau: float | None) -> None:
    """Of 4 rows with 2 exchanged, 5 of 6 pairs agree; of (1, 2, 3) and (3, 1, 2) 1 of 3."""
    assert compute_tau(make_choice(*one), make_choice(*other)) == (tau and pytest.approx(tau))


def test_tiers_of_parts_are_those_of_a_table_of_these_columns() -> None:
    rng = np.random.default_rng(0)
    rows: Contenders = {
        f"row{i}": {
            column: outcomes(0.5 + 0.004 * i + noise + rng.normal(0, 0.05, 200), column)
            for column, noise in ((c, rng.normal(0, 0.1, 200)) for c in (ONE, FIVE, OTHER))
        }
        for i in range(8)
    }
    columns = split_columns([ONE, FIVE, OTHER])
    for choice in rank_table("linear", rows):
        expected = rank_entries(rows, columns[choice.part])
        assert choice.tier == tuple(entry.name for entry in expected.tiers[0])
        assert 1 < len(choice.tier) < 8
        best_first = sorted(expected.entries, key=lambda entry: -(entry.overall or 0))
        assert [*choice.ranks] == [entry.name for entry in best_first]


def test_a_table_of_several_heads_has_them_as_parts() -> None:
    columns = [ONE, FIVE, ONE.replace("linear", "ridge"), "isic:probe 32px"]
    assert split_columns(columns) == {
        ALL: columns,
        "5w1s": [columns[0], columns[2]],
        "5w5s": [FIVE],
        "probe": ["isic:probe 32px"],
        "eurosat": columns[:3],
        "linear": [ONE, FIVE],
        "ridge": [columns[2]],
    }
