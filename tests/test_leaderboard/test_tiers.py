"""Tiers by the leader rule, on outcomes with known gaps; Holm by hand as reference."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsbench.core.statistics import Paired
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.tiers import Outcomes, Ranking, rank_entries

FEW = settings(max_examples=15, deadline=None)


def outcomes(values: np.ndarray, first: int = 0, draws: str = "a spec") -> Outcomes:
    return Outcomes(np.arange(first, first + len(values)), np.asarray(values, np.float64), draws)


def compare(a: dict[str, Outcomes], b: dict[str, Outcomes], columns: list[str]) -> Paired:
    """A over B, of a field of two."""
    pairs = PairwiseGaps(
        {
            name: [columns_of_entry[c] for c in columns]
            for name, columns_of_entry in (("a", a), ("b", b))
        }
    )
    return pairs.behind("a", ["b"])["b"]


def noisy(mean: float, seed: int, n: int = 600, sd: float = 0.08) -> np.ndarray:
    """Episodes with a shared difficulty, so that pairing matters."""
    shared = np.random.default_rng(0).normal(0, 0.1, n)
    noise = np.random.default_rng(seed + 1).normal(0, sd, n)
    return mean + shared + noise - noise.mean() - shared.mean()


def names(ranking: Ranking) -> list[list[str]]:
    return [[s.name for s in tier] for tier in ranking.tiers]


def test_three_known_tiers() -> None:
    entries = {
        "best": {"c": outcomes(noisy(0.700, 1))},
        "equal": {"c": outcomes(noisy(0.698, 2))},
        "middle": {"c": outcomes(noisy(0.650, 3))},
        "last": {"c": outcomes(noisy(0.500, 4))},
    }
    ranking = rank_entries(entries, ["c"])
    assert names(ranking) == [["best", "equal"], ["middle"], ["last"]]
    assert [s.tier for s in ranking.entries] == [1, 1, 2, 3]
    equal = ranking.tiers[0][1]
    assert equal.behind is not None
    assert equal.behind.gap == pytest.approx(0.002)
    assert equal.p is not None
    assert equal.p > 0.05


def test_the_leader_decides_not_the_neighbour() -> None:
    """b is not worse than a, c is not worse than b, but c is worse than a: c is tier 2."""
    gap = 0.5 * 1.96 * 0.08 * math.sqrt(2) / math.sqrt(600) * 1.5
    entries = {
        "a": {"c": outcomes(noisy(0.6, 1))},
        "b": {"c": outcomes(noisy(0.6 - gap, 2))},
        "c": {"c": outcomes(noisy(0.6 - 2 * gap, 3))},
    }
    assert compare(entries["b"], entries["c"], ["c"]).p > 0.05
    assert compare(entries["a"], entries["c"], ["c"]).p < 0.02
    assert names(rank_entries(entries, ["c"])) == [["a", "b"], ["c"]]


def test_a_tier_may_skip_an_entry() -> None:
    """c lies below b but is too noisy to be told from the leader."""
    entries = {
        "a": {"c": outcomes(noisy(0.70, 1, sd=0.01))},
        "b": {"c": outcomes(noisy(0.69, 2, sd=0.01))},
        "c": {"c": outcomes(noisy(0.688, 3, sd=0.5))},
    }
    assert names(rank_entries(entries, ["c"])) == [["a", "c"], ["b"]]


def test_overall_weighs_columns_equally_and_gaps_are_unranked() -> None:
    entries = {
        "a": {"x": outcomes(np.array([1.0, 0.0])), "y": outcomes(np.full(100, 0.75))},
        "b": {"x": outcomes(np.array([1.0, 1.0]))},
    }
    ranking = rank_entries(entries, ["x", "y"])
    assert ranking.tiers[0][0].overall == pytest.approx(0.625)
    assert [(s.name, s.missing, s.tier) for s in ranking.unranked] == [("b", ("y",), None)]
    assert ranking.unranked[0].scores["x"].mean == 1.0


def test_only_shared_episodes_are_paired() -> None:
    a = {"c": outcomes(np.array([0.5, 0.5, 0.9, 0.7]))}
    b = {"c": outcomes(np.array([0.7, 0.6, 0.0]), first=2)}
    assert compare(a, b, ["c"]).n == 2
    assert compare(a, b, ["c"]).gap == pytest.approx(0.15)
    apart = {"c": outcomes(np.array([0.7]), first=9)}
    assert compare(a, apart, ["c"]).p == 1.0


def test_an_empty_board_ranks_nothing() -> None:
    assert rank_entries({}, []).entries == ()
    assert rank_entries({"a": {}}, []).unranked[0].name == "a"


def test_one_episode_tells_nothing() -> None:
    """Nobody is ranked, with the reason."""
    entries = {"a": {"c": outcomes(np.array([0.9]))}, "b": {"c": outcomes(np.array([0.1]))}}
    ranking = rank_entries(entries, ["c"])
    assert ranking.tiers == ()
    assert {s.reason for s in ranking.unranked} == {
        "not comparable: shares 1 outcomes of a column, a comparison needs 2"
    }
    assert names(rank_entries({"a": entries["a"]}, ["c"])) == [["a"]]


boards = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(*[st.lists(st.integers(0, 8).map(lambda k: k / 8), min_size=6, max_size=6)] * 2),
    min_size=2,
)


def outcomes_of(
    board: dict[str, tuple[list[float], list[float]]],
) -> dict[str, dict[str, Outcomes]]:
    return {
        n: {c: outcomes(np.array(v)) for c, v in zip("xy", vs, strict=True)}
        for n, vs in board.items()
    }


@FEW
@given(boards, st.randoms())
def test_order_of_entries_does_not_matter(board: dict, shuffle: object) -> None:  # type: ignore[type-arg]
    mixed = list(board.items())
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    assert rank_entries(outcomes_of(board), "xy") == rank_entries(outcomes_of(dict(mixed)), "xy")


@FEW
@given(boards)
def test_identical_entries_share_a_tier(board: dict) -> None:  # type: ignore[type-arg]
    twin = {**board, "twin": board[min(board)]}
    tiers = {s.name: s.tier for s in rank_entries(outcomes_of(twin), "xy").entries}
    assert tiers["twin"] == tiers[min(board)]


@FEW
@given(boards)
def test_everyone_stands_once_and_leaders_fall(board: dict) -> None:  # type: ignore[type-arg]
    ranking = rank_entries(outcomes_of(board), "xy")
    assert sorted(s.name for s in ranking.entries) == sorted(board)
    leaders = [tier[0].overall or 0 for tier in ranking.tiers]
    assert leaders == sorted(leaders, reverse=True)
    assert all(tier[0].behind is None for tier in ranking.tiers)


def test_false_separations_keep_to_alpha() -> None:
    """Two entries without a true gap part in about 5 % of boards."""
    parted, boards = 0, 400
    rng = np.random.default_rng(3)
    for _ in range(boards):
        base = rng.normal(0.6, 0.1, 200)
        a, b = (outcomes(base + rng.normal(0, 0.05, 200)) for _ in range(2))
        parted += len(rank_entries({"a": {"c": a}, "b": {"c": b}}, ["c"]).tiers) == 2
    assert 0.025 < parted / boards < 0.08


def test_adaptations_on_the_same_episodes_are_no_independent_evidence() -> None:
    """The same numbers twice: together they say as much as once, if they share their episodes."""
    a, b = noisy(0.60, 1), noisy(0.59, 2)
    once = compare({"c": outcomes(a)}, {"c": outcomes(b)}, ["c"])

    def twice(*draws: str) -> tuple[float, float]:
        left, right = (
            {d: outcomes(x, draws=y) for d, y in zip("cd", draws, strict=True)} for x in (a, b)
        )
        comparison = compare(left, right, ["c", "d"])
        return comparison.se, comparison.p

    assert twice("episodes", "episodes") == pytest.approx((once.se, once.p))
    assert twice("some", "others")[0] == pytest.approx(once.se / math.sqrt(2))
