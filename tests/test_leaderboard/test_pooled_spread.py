"""Stars of gains on boards without any, and gains of one seed, judged by the spread of others."""

import numpy as np
import pytest
from benchmarks.gains import Setting, measure
from support.methods import average, build_board, facts, run

from leaderboard.methods import MethodBoard
from leaderboard.ranking.seeds import SeedErrors
from leaderboard.render.methods import format_gain
from leaderboard.tables import Row

SPREAD = 0.004
"""Standard deviation between seeds."""
ROWS = {"normal": 3, "llf": 3, "lw": 3, "swr": 3, "seal": 1}


def simulate(
    seed: int,
    rows: dict[str, int] = ROWS,
    spread: dict[str, float] | float = SPREAD,
    shared: float = 0.0,
) -> list[Row]:
    """Runs of equal skill over 600 episodes, apart by their seeds alone.

    shared: standard deviation of an episode for all seeds of a row.
    """
    spreads = dict.fromkeys(rows, spread) if isinstance(spread, float) else spread
    apart = np.random.default_rng(10**6 + seed)
    means = {name: apart.normal(0, shared, 600) for name in rows}
    rng = np.random.default_rng(seed)
    episodes = rng.normal(0.5, 0.08, 600)
    return [
        run(
            f"{name}-{s}",
            facts(name, s),
            a=episodes + means[name] + rng.normal(0, spreads[name]) + noise,
        )
        for name, seeds in rows.items()
        for s in range(seeds)
        for noise in [rng.normal(0, 0.02, 600)]
    ]


def build(runs: list[Row]) -> MethodBoard:
    return build_board(["a"], runs)


def test_the_pooled_spread_is_that_of_the_runs() -> None:
    variances = []
    for seed in range(100):
        runs = simulate(seed)
        sides = {name: [r for r in runs if r.name.startswith(name)] for name in ROWS}
        rows = {name: [average(name, side).outcomes["a"]] for name, side in sides.items()}
        pooled = SeedErrors(rows).pooled
        assert pooled is not None
        assert 1 < pooled.freedom < 8
        assert pooled.variance > pooled.least, "what one seed hides may be wider than the mean"
        variances.append(pooled.least)
        assert SeedErrors({name: rows[name] for name in ("normal", "llf")}).pooled is None
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
        assert "*" not in format_gain(gain)
        assert format_gain(gain).endswith(" p")
        narrow += abs(gain.gap) < 1.96 * 0.02 * (2 / 600) ** 0.5
    assert 0.93 < covered / boards <= 0.99
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
        assert not gain.significant


EQUAL = dict.fromkeys(("normal", "llf", "lw", "swr", "seal", "imp"), 0.01)
TENFOLD = {name: spread if i % 2 else spread / 10 for i, (name, spread) in enumerate(EQUAL.items())}


@pytest.mark.parametrize("spreads", [EQUAL, TENFOLD], ids=["equal", "tenfold"])
@pytest.mark.parametrize("seeds", [2, 3])
def test_a_board_without_gains_has_no_star(seeds: int, spreads: dict[str, float]) -> None:
    """By Satterthwaite's degrees of freedom every third board of two seeds had one."""
    starred, covered, boards = 0, [], 60
    for number in range(boards):
        board = build(simulate(number, dict.fromkeys(spreads, seeds), spreads, 0.05))
        gains = [g for row in board.rows if row.overall for g in row.overall.gains.values()]
        assert {gain.covers for gain in gains} == {"seeds and episodes"}
        starred += any(gain.significant for gain in gains)
        covered += [abs(gain.gap) <= (gain.ci95 or 0.0) for gain in gains]
    assert starred / boards <= 0.05 + 2 * (0.05 * 0.95 / boards) ** 0.5
    assert np.mean(covered) >= 0.93


@pytest.mark.parametrize("is_equal", [True, False])
@pytest.mark.parametrize("is_paired", [True, False])
@pytest.mark.parametrize(("seeds", "methods"), [(2, 1), (2, 5), (3, 25), (5, 5)])
def test_stars_hold_their_level(seeds: int, methods: int, is_paired: bool, is_equal: bool) -> None:
    boards = 150
    for spread in (0.002, 0.01, 0.03):
        setting = Setting(seeds, spread, methods, is_paired, is_equal)
        rates = measure(setting, boards, np.random.default_rng(0))
        assert rates.stars <= 0.05 + 2 * (0.05 * 0.95 / boards) ** 0.5
        assert rates.covered >= 0.93


def test_real_gains_of_three_seeds_have_a_star() -> None:
    runs = simulate(0, {"normal": 3, "llf": 3}, 0.002)
    gained = [run(f"lw-{s}", facts("lw", s), a=runs[s].outcomes["a"].values + 0.03 + s / 500)
              for s in range(3)]  # fmt: skip
    board = build([*runs, *gained])
    stars = {r.name: r.overall.gains["normal"].significant for r in board.rows
             if r.overall and r.overall.gains}  # fmt: skip
    assert stars == {"lw": True, "llf": False}
