"""The rule of tiers: its p-values, its level on boards of equal rows, and whom it does not rank."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from benchmarks.tiers import KINDS, Setting, contend, measure, rank, simulate_board
from scipy.stats import studentized_range, t
from support.methods import outcomes

from fsbench.core.statistics import Paired, paired
from leaderboard.ranking.gaps import Gaps
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.simultaneous import adjust_gaps, exceed_range
from leaderboard.ranking.tiers import Ranking, rank_entries

RULE = "simultaneous-tiers-2"


@pytest.mark.parametrize("rows", [2, 3, 10, 100, 1000])
def test_the_range_is_that_of_scipy(rows: int) -> None:
    deviates = np.array([0.7, 1.8, 2.5, 3.2, 3.9, 4.6, 5.7])
    ours = exceed_range(deviates, rows, np.full(7, 1e9))
    theirs = studentized_range.sf(deviates * math.sqrt(2), rows, math.inf)
    assert ours == pytest.approx(theirs, abs=5e-6)


@pytest.mark.parametrize("freedom", [99.0, 240.5, 599.0])
def test_of_two_rows_the_range_is_the_t_test(freedom: float) -> None:
    values = np.array([0.5, 1.0, 2.0, 3.0, 4.0, 5.0])
    ours = exceed_range(values, 2, np.full(values.size, freedom))
    assert ours == pytest.approx(2 * t.sf(values, freedom), rel=0.01, abs=1e-6)


def adjust(gap: Paired, rows: int) -> float:
    """Return p of a gap whose error is over episodes, adjusted for all pairs of these rows."""
    fields = np.array([[gap.gap], [gap.se], [gap.freedom], [gap.n], [gap.fewest]])
    return float(adjust_gaps(Gaps(("a",), *fields, has_seeds=np.array([False])), rows)[0])


def test_few_episodes_have_student_and_bonferroni() -> None:
    gap = Paired(0.03, 0.01, 0.003, 20, freedom=19.0, fewest=20)
    assert adjust(gap, 5) == pytest.approx(10 * 2 * t.sf(3, 19))
    assert adjust(gap, 2) == pytest.approx(2 * t.sf(3, 19))
    many = gap._replace(fewest=100, freedom=99.0)
    assert adjust(many, 2) == pytest.approx(2 * t.sf(3, 99), rel=0.01), "both are the t test"


def test_no_spread_no_gap_and_no_error() -> None:
    same = Paired(0.0, 0.0, 1.0, 600, 599.0, 600)
    assert (adjust(same, 4), adjust(same._replace(gap=0.01), 4)) == (1.0, 0.0)
    assert math.isnan(adjust(same._replace(gap=0.01, se=math.nan), 4))


def test_freedom_is_of_welch_and_satterthwaite_over_independent_columns() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=30), rng.normal(size=12)
    squares = np.array([a.var(ddof=1) / 30, b.var(ddof=1) / 12])
    both = paired([a, b], [0 * a, 0 * b], ["x", "y"])
    assert both.freedom == pytest.approx(squares.sum() ** 2 / (squares**2 / [29, 11]).sum())
    assert both.fewest == 12
    assert paired([a, a], [0 * a, 0 * a], ["x", "x"]).freedom == pytest.approx(29)


LEVELS = [
    *(Setting(kind, *shape) for kind in KINDS
      for shape in ((2, 5), (20, 5), (20, 100), (50, 30), (10, 600))),
    *(Setting("equal", rows, 600, seeds, spread) for spread in (0.05, 0.2, 0.5)
      for rows, seeds in ((2, 0), (2, 3), (5, 2), (8, 0))),
    *(Setting("equal", rows, 600, seeds, 2.0, recipes) for rows, seeds in ((5, 0), (20, 0), (20, 2))
      for recipes in ("alternating", "quarter", "uniform", "lone")),
    Setting("equal", 2, 600, 2, 3.0, "lone"),
]  # fmt: skip
"""Equal rows; recipes of several seeds with equal spreads, and with spreads that differ tenfold.

The mean spread alone split one board of six. Where rows of one seed were ranked among those of
several, one wider recipe of one seed split one board of five.
"""


@pytest.mark.parametrize("setting", LEVELS, ids=lambda setting: " ".join(map(str, setting)))
def test_equal_rows_are_one_tier_on_nineteen_boards_of_twenty(setting: Setting) -> None:
    boards = 150
    level = measure(setting, RULE, boards, 0.0)
    assert level.wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / boards)


@pytest.mark.parametrize(
    ("setting", "wrong", "gap", "power"),
    [
        (Setting("equal", 20, 100), 0.12, 5.5, 0.9),
        (Setting("equal", 5, 600, 3, 0.5), 0.3, 8.0, 0.8),
    ],
)
def test_holm_splits_equal_rows_and_the_rule_of_boards_has_power(
    setting: Setting, wrong: float, gap: float, power: float
) -> None:
    assert measure(setting, "holm", 50, 0.0).wrong > wrong
    assert measure(setting, RULE, 50, gap).power > power


def test_the_simulation_has_the_tiers_of_the_board() -> None:
    board = simulate_board(Setting("unequal", 8, 100, 0, 0.5), np.random.default_rng(0), gap=6.0)
    ranking = rank_entries(contend(board, with_seeds=True), ["c"])
    assert rank(board) == {int(e.name) for tier in ranking.tiers[1:] for e in tier} != set()


def tiers(ranking: Ranking) -> list[list[str]]:
    return [[entry.name for entry in tier] for tier in ranking.tiers]


def noisy(mean: float, seed: int, sd: float = 0.08) -> Mapping[str, Outcomes]:
    """600 episodes of exactly this mean, with a shared difficulty, so that pairing matters."""
    shared = np.random.default_rng(0).normal(0, 0.1, 600)
    noise = np.random.default_rng(seed).normal(0, sd, 600)
    return {"c": outcomes(mean + shared + noise - noise.mean() - shared.mean(), "d")}


def test_known_gaps_give_known_tiers_and_a_tier_may_skip_an_entry() -> None:
    """`wide` lies below `worse` but is too noisy to be told from the leader."""
    means = {"best": 0.700, "equal": 0.698, "middle": 0.650, "last": 0.500}
    ranking = rank_entries({n: noisy(m, i) for i, (n, m) in enumerate(means.items(), 1)}, ["c"])
    assert tiers(ranking) == [["best", "equal"], ["middle"], ["last"]]
    assert [entry.tier for entry in ranking.entries] == [1, 1, 2, 3]
    equal = ranking.tiers[0][1]
    assert equal.behind.gap == pytest.approx(0.002)
    assert equal.p > 0.05
    skipped = {"best": noisy(0.70, 1, 0.01), "worse": noisy(0.69, 2, 0.01)}
    ranking = rank_entries({**skipped, "wide": noisy(0.688, 3, 0.5)}, ["c"])
    assert tiers(ranking) == [["best", "wide"], ["worse"]]


def test_overall_weighs_columns_equally_and_gaps_are_unranked() -> None:
    entries = {
        "a": {"x": outcomes([1.0, 0.0]), "y": outcomes(np.full(100, 0.75))},
        "b": {"x": outcomes([1.0, 1.0])},
    }
    ranking = rank_entries(entries, ["x", "y"])
    assert ranking.tiers[0][0].overall == pytest.approx(0.625)
    assert [(s.name, s.missing, s.tier) for s in ranking.unranked] == [("b", ("y",), None)]
    assert ranking.unranked[0].scores["x"].mean == 1.0
    assert rank_entries({}, []).entries == ()
    assert rank_entries({"a": {}}, []).unranked[0].name == "a"


def test_one_episode_tells_nothing() -> None:
    """Nobody is ranked, with the reason."""
    entries = {name: {"c": outcomes([accuracy])} for name, accuracy in (("a", 0.9), ("b", 0.1))}
    ranking = rank_entries(entries, ["c"])
    assert ranking.tiers == ()
    assert {s.reason for s in ranking.unranked} == {
        "not comparable: shares 1 outcomes of a column, a comparison needs 2"
    }
    assert tiers(rank_entries({"a": entries["a"]}, ["c"])) == [["a"]]


@pytest.mark.parametrize(
    "other",
    [
        outcomes(np.linspace(0, 1, 600), "other seed"),
        outcomes([1] * 9, "d", 600),
        outcomes([1.0], "d"),
    ],
)
def test_who_is_not_comparable_unranks_nobody_else(other: Outcomes) -> None:
    """One lucky episode would put everyone into its tier."""
    board = {name: noisy(mean, i) for i, (name, mean) in enumerate({"a": 0.6, "b": 0.5}.items())}
    ranking = rank_entries({**board, "x": {"c": other}}, ["c"])
    assert tiers(ranking) == [["a"], ["b"]]
    assert ranking.tiers == rank_entries(board, ["c"]).tiers
    assert [(e.name, e.overall) for e in ranking.unranked] == [("x", None)]
    assert "not comparable" in ranking.unranked[0].reason


def test_what_is_excluded_counts_for_no_comparison() -> None:
    board = {name: noisy(0.5, i) for i, name in enumerate("abcd")}
    ranking = rank_entries(board, ["c"], excluded={"d": "short: not all episodes"})
    assert ranking.tiers == rank_entries({name: board[name] for name in "abc"}, ["c"]).tiers
    assert [(e.name, e.reason) for e in ranking.unranked] == [("d", "short: not all episodes")]
