"""The rule of tiers: its p-values, its level on boards of equal rows, and whom it does not rank."""

import math

import numpy as np
import pytest
from benchmarks.tiers import KINDS, Setting, contend, measure, rank, simulate_board
from scipy.stats import studentized_range, t
from support.methods import outcomes

from fsbench.core.statistics import Paired, paired
from leaderboard.ranking.gaps import Gaps
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


def gather(*pairs: Paired) -> Gaps:
    """Return these gaps over rows named 0, 1, ..., whose errors are over episodes."""
    fields = np.array([[p.gap, p.se, p.freedom, p.n, p.fewest] for p in pairs]).T
    names = tuple(map(str, range(len(pairs))))
    return Gaps(names, *fields, has_seeds=np.zeros(len(pairs), np.bool_))


def test_few_episodes_have_student_and_bonferroni() -> None:
    gap = Paired(0.03, 0.01, 0.003, 20, freedom=19.0, fewest=20)
    (p,) = adjust_gaps(gather(gap), 5)
    assert p == pytest.approx(10 * 2 * t.sf(3, 19))
    (two,) = adjust_gaps(gather(gap), 2)
    assert two == pytest.approx(2 * t.sf(3, 19))
    (many,) = adjust_gaps(gather(gap._replace(fewest=100, freedom=99.0)), 2)
    assert many == pytest.approx(2 * t.sf(3, 99), rel=0.01), "of two rows both are the t test"


def test_no_spread_no_gap_and_no_error() -> None:
    same = Paired(0.0, 0.0, 1.0, 600, 599.0, 600)
    gaps = gather(same, same._replace(gap=0.01), same._replace(gap=0.01, se=math.nan))
    assert adjust_gaps(gaps, 4)[:2].tolist() == [1.0, 0.0]
    assert math.isnan(adjust_gaps(gaps, 4)[2])


def test_freedom_is_of_welch_and_satterthwaite_over_independent_columns() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=30), rng.normal(size=12)
    squares = np.array([a.var(ddof=1) / 30, b.var(ddof=1) / 12])
    both = paired([a, b], [0 * a, 0 * b], ["x", "y"])
    assert both.freedom == pytest.approx(squares.sum() ** 2 / (squares**2 / [29, 11]).sum())
    assert both.fewest == 12
    assert paired([a, a], [0 * a, 0 * a], ["x", "x"]).freedom == pytest.approx(29)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("rows", "n"), [(2, 5), (20, 5), (20, 100), (50, 30), (10, 600)])
def test_equal_rows_are_one_tier_on_nineteen_boards_of_twenty(kind: str, rows: int, n: int) -> None:
    boards = 200
    level = measure(Setting(kind, rows, n), "simultaneous-tiers-2", boards, 0.0)
    assert level.wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / boards)


@pytest.mark.parametrize(("rows", "seeds"), [(2, 0), (2, 3), (5, 2), (8, 0)])
@pytest.mark.parametrize("spread", [0.05, 0.2, 0.5])
def test_equal_recipes_of_several_seeds_are_one_tier(rows: int, seeds: int, spread: float) -> None:
    """seeds: 0 is 1, 2, 3 and 5 in turn; spread: between seeds, in points."""
    boards = 100
    level = measure(Setting("equal", rows, 600, seeds, spread), "simultaneous-tiers-2", boards, 0.0)
    assert level.wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / boards)


def test_seeds_are_needed_and_leave_power() -> None:
    setting = Setting("equal", 5, 600, 3, 0.5)
    assert measure(setting, "holm", 40, 0.0).wrong > 0.3
    assert measure(setting, "simultaneous-tiers-2", 40, 8.0).power > 0.8


@pytest.mark.parametrize("recipes", ["alternating", "quarter", "uniform", "lone"])
@pytest.mark.parametrize(("rows", "seeds"), [(5, 0), (20, 0), (20, 2)])
def test_recipes_whose_spreads_differ_tenfold_are_one_tier(
    recipes: str, rows: int, seeds: int
) -> None:
    """seeds: 0 is 1, 2, 3 and 5 in turn. The mean spread alone split one board of six.

    Where rows of one seed were ranked among those of several, one wider recipe of one seed split
    one board of five.
    """
    boards = 150
    level = measure(Setting("equal", rows, 600, seeds, 2.0, recipes), RULE, boards, 0.0)
    assert level.wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / boards)


def test_two_recipes_whose_spreads_differ_tenfold_are_one_tier() -> None:
    boards = 400
    level = measure(Setting("equal", 2, 600, 2, 3.0, "lone"), RULE, boards, 0.0)
    assert level.wrong <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / boards)


def test_the_simulation_has_the_tiers_of_the_board() -> None:
    board = simulate_board(Setting("unequal", 8, 100, 0, 0.5), np.random.default_rng(0), gap=6.0)
    ranking = rank_entries(contend(board, with_seeds=True), ["c"])
    assert rank(board) == {int(e.name) for tier in ranking.tiers[1:] for e in tier} != set()


def test_holm_splits_equal_rows_and_the_rule_of_boards_has_power() -> None:
    setting = Setting("equal", 20, 100)
    assert measure(setting, "holm", 60, 0.0).wrong > 0.12
    assert measure(setting, "simultaneous-tiers-2", 60, 5.5).power > 0.9


def tiers(ranking: Ranking) -> list[list[str]]:
    return [[entry.name for entry in tier] for tier in ranking.tiers]


def test_a_short_lucky_row_wrecks_no_board() -> None:
    """One lucky episode would put everyone into its tier."""
    rng = np.random.default_rng(1)
    base = rng.normal(0.5, 0.05, 600)
    board = {
        name: {"c": outcomes(base + gap + rng.normal(0, 0.02, 600), "d")}
        for name, gap in (("a", 0.1), ("b", 0.0), ("c", -0.1))
    }
    board["lucky"] = {"c": outcomes([1.0], "d")}
    ranking = rank_entries(board, ["c"])
    assert tiers(ranking) == [["a"], ["b"], ["c"]]
    assert [(e.name, e.overall) for e in ranking.unranked] == [("lucky", None)]
    assert "not comparable" in ranking.unranked[0].reason


def test_other_episodes_are_not_comparable_and_unrank_nobody_else() -> None:
    rng = np.random.default_rng(2)
    board = {name: {"c": outcomes(rng.random(50), "d")} for name in "abc"}
    for other in ({"c": outcomes(rng.random(50), "other seed")}, {"c": outcomes([1] * 9, "d", 50)}):
        ranking = rank_entries({**board, "x": other}, ["c"])
        assert sorted(e.name for tier in ranking.tiers for e in tier) == ["a", "b", "c"]
        assert [e.name for e in ranking.unranked] == ["x"]
        assert ranking.tiers == rank_entries(board, ["c"]).tiers


def test_what_is_excluded_counts_for_no_comparison() -> None:
    rng = np.random.default_rng(3)
    board = {name: {"c": outcomes(rng.random(200), "d")} for name in "abcd"}
    ranking = rank_entries(board, ["c"], excluded={"d": "short: not all episodes"})
    without = rank_entries({name: board[name] for name in "abc"}, ["c"])
    assert ranking.tiers == without.tiers
    assert [(e.name, e.reason) for e in ranking.unranked] == [("d", "short: not all episodes")]
