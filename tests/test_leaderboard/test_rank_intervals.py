"""Rank intervals on outcomes whose rank is known, and their resamples as SciPy draws them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap, rankdata
from support.methods import outcomes

from fsbench.core.seeding import seed_for
from leaderboard.ranking import rank_intervals
from leaderboard.ranking.outcomes import SummedCounts
from leaderboard.ranking.rank_intervals import bootstrap_ranks, resample_ranks
from leaderboard.ranking.tiers import Contenders, rank_entries


def rank(board: Contenders, resamples: int = 400) -> dict[str, tuple[int, int, int]]:
    """Return entry -> best rank, rank, worst rank."""
    columns = sorted({column for columns_of_entry in board.values() for column in columns_of_entry})
    intervals = bootstrap_ranks(rank_entries(board, columns), board, resamples)
    return {e.name: (e.low, e.rank, e.high) for e in intervals}


@pytest.mark.parametrize(
    ("z", "ranks"),
    [
        (2.1, {"a": (1, 1, 1), "b": (2, 2, 2)}),
        (1.85, {"a": (1, 1, 2), "b": (1, 2, 2)}),
        (0.0, {"a": (1, 1, 2), "b": (1, 1, 2)}),
    ],
)
def test_the_interval_is_the_paired_one(z: float, ranks: dict[str, tuple[int, int, int]]) -> None:
    """a leads by z standard errors of the paired gap: sure above 1.96; episodes differ far more."""
    rng = np.random.default_rng(0)
    hard, noise = rng.normal(0.5, 0.2, 400), rng.normal(0, 0.05, 400)
    lead = (noise - noise.mean()) / noise.std(ddof=1) * 0.05 + z * 0.05 / np.sqrt(400)
    assert rank({"a": {"x": outcomes(hard + lead)}, "b": {"x": outcomes(hard)}}, 2000) == ranks


def test_columns_over_the_same_episodes_are_drawn_together() -> None:
    """What b loses in x it wins in y, but for a little: sure together, unsure apart."""
    noise = np.random.default_rng(0).normal(0, 0.2, 100)
    values = {"a": (0.5 + noise, 0.5 - noise + 1e-3), "b": (np.full(100, 0.5),) * 2}

    def board_over(*draws: str) -> Contenders:
        return {
            name: {c: outcomes(v, d) for c, v, d in zip("xy", both, draws, strict=True)}
            for name, both in values.items()
        }

    assert rank(board_over("e", "e")) == {"a": (1, 1, 1), "b": (2, 2, 2)}
    assert rank(board_over("e", "f")) == {"a": (1, 1, 2), "b": (1, 2, 2)}


def test_only_episodes_that_all_hold_are_drawn() -> None:
    """b has the higher mean, but over other episodes; on the shared ones a is always ahead."""
    values = np.linspace(0.2, 0.8, 30)
    board = {"a": {"x": outcomes(values + 0.01, "e")}, "b": {"x": outcomes(values[10:], "e", 10)}}
    assert rank(board) == {"a": (1, 2, 2), "b": (1, 1, 2)}
    apart = {**board, "c": {"x": outcomes(values, "e", 29)}}
    assert set(rank(apart)) == {"a", "b"}, "c shares too little to be ranked"
    ranked = rank_entries(board, ["x"])
    assert bootstrap_ranks(ranked, board | {"a": apart["c"]}) == (), "they share one episode"
    assert rank({"a": board["a"]}) == {}


ACCURACIES = st.lists(st.integers(0, 8).map(lambda k: k / 8), min_size=6, max_size=6)
boards = st.dictionaries(
    st.sampled_from("abcde"),
    st.fixed_dictionaries({c: ACCURACIES.map(lambda v, c=c: outcomes(v, c)) for c in "xy"}),
    min_size=2,
)


@settings(max_examples=15)
@given(boards, st.randoms())
def test_order_of_entries_does_not_matter_and_identical_ones_tie(board: Any, shuffle: Any) -> None:
    ranks = rank({**board, "twin": board[min(board)]}, 50)
    mixed = [*board.items(), ("twin", board[min(board)])]
    shuffle.shuffle(mixed)
    assert ranks == rank(dict(mixed), 50)
    assert ranks["twin"] == ranks[min(board)]
    assert all(1 <= low <= rank <= high <= len(ranks) for low, rank, high in ranks.values())


def test_the_resamples_are_those_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that intervals stay what they were when SciPy drew them; ties share the better rank."""
    monkeypatch.setattr(rank_intervals, "BLOCK", 3000)
    rng = np.random.default_rng(1)
    draws = [
        SummedCounts.add([rng.integers(0, 4, (5, n))], np.array([[4, 4, 4, 8, 12]]))
        for n in (30, 21)
    ]

    def statistic(*rows: np.ndarray, axis: int) -> np.ndarray:
        values = [draw.counts.T / draw.out_of for draw in draws]
        means = [v[r].mean(axis=axis - 1) for r, v in zip(rows, values, strict=True)]
        return rankdata(-np.round(np.sum(means, axis=0) / 2, 12), method="min", axis=-1).T * 1.0

    sampled = bootstrap(
        tuple(np.arange(draw.counts.shape[1]) for draw in draws),
        statistic,
        vectorized=True,
        n_resamples=300,
        batch=100,
        rng=seed_for("rank intervals", 30, 21),
        method="percentile",
    )
    assert (resample_ranks(draws, 2, 300) == sampled.bootstrap_distribution).all()
