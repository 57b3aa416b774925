"""Gains of one seed: judged by the spread of rows with several seeds, and never starred."""

import numpy as np
import pytest
from support.methods import facts, run

from leaderboard.methods.board import build_method_board
from leaderboard.methods.gains import pool_seed_variance
from leaderboard.methods.record import MethodBoard
from leaderboard.methods.runs import MethodRun
from leaderboard.methods.tables import format_gain

SPREAD = 0.004
"""Standard deviation between seeds."""
ROWS = {"normal": 3, "llf": 3, "lw": 3, "swr": 3, "seal": 1}


def simulate(seed: int, rows: dict[str, int] = ROWS) -> list[MethodRun]:
    """Runs of equal skill over 600 episodes, apart by their seeds alone."""
    rng = np.random.default_rng(seed)
    episodes = rng.normal(0.5, 0.08, 600)
    return [
        run(f"{name}-{s}", facts(name, s), a=episodes + rng.normal(0, SPREAD) + noise)
        for name, seeds in rows.items()
        for s in range(seeds)
        for noise in [rng.normal(0, 0.02, 600)]
    ]


def build(runs: list[MethodRun]) -> MethodBoard:
    contenders = {run.entry: run.outcomes for run in runs}
    return build_method_board("b", ["a"], contenders, {run.entry: run.facts for run in runs})


def test_the_pooled_spread_is_that_of_the_runs() -> None:
    variances = []
    for seed in range(100):
        runs = simulate(seed)
        sides = [[r for r in runs if r.entry.startswith(name)] for name in ROWS]
        pooled = pool_seed_variance(sides, ["a"])
        assert pooled is not None
        assert pooled.freedom == 8
        variances.append(pooled.variance)
        assert pool_seed_variance(sides[:2], ["a"]) is None
    assert np.sqrt(np.mean(variances)) == pytest.approx(SPREAD, rel=0.1)


def test_the_interval_of_one_seed_covers_other_seeds() -> None:
    """Over episodes alone three quarters of such gains would pass for real."""
    covered, narrow, boards = 0, 0, 200
    for seed in range(boards):
        board = build(simulate(seed))
        (row,) = (row for row in board.rows if row.name == "seal")
        assert row.overall is not None
        gain = row.overall.gains["normal"]
        assert gain.covers == "pooled seeds and episodes"
        assert gain.ci95 is not None
        covered += abs(gain.gap) < gain.ci95
        assert "*" not in format_gain(row.overall, "normal", 0.05)
        assert format_gain(row.overall, "normal", 0.05).endswith(" p")
        narrow += abs(gain.gap) < 1.96 * 0.02 * (2 / 600) ** 0.5
    assert 0.9 < covered / boards < 0.99
    assert narrow / boards < 0.5


def test_without_three_rows_with_seeds_one_seed_covers_episodes_and_has_no_star() -> None:
    runs = simulate(0, {"normal": 2, "llf": 1})
    runs.append(run("lost", facts("lw"), a=runs[0].outcomes["a"].values - 0.2))
    board = build(runs)
    for name in ("llf", "lw"):
        (row,) = (row for row in board.rows if row.name == name)
        assert row.overall is not None
        gain = row.overall.gains["normal"]
        assert gain.covers == "episodes"
        assert not gain.is_significant(0.05)
