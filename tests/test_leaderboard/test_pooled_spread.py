"""Stars of gains on boards without any, and gains of one seed, judged by the spread of others."""

from collections.abc import Mapping

import numpy as np
import pytest
from benchmarks.gains import Setting, measure
from support.methods import build_board, facts, run

from leaderboard.methods import Gain
from leaderboard.render.methods import format_gain
from leaderboard.tables import Row

ROWS = {"normal": 3, "llf": 3, "lw": 3, "swr": 3, "seal": 1}


def simulate(seed: int, rows: Mapping[str, int] = ROWS, spread: float = 0.004) -> list[Row]:
    """Runs of equal skill over 600 episodes, apart by their seeds alone."""
    rng = np.random.default_rng(seed)
    episodes = rng.normal(0.5, 0.08, 600)
    return [
        run(f"{name}-{s}", facts(name, s), a=episodes + rng.normal(0, spread) + noise)
        for name, seeds in rows.items()
        for s in range(seeds)
        for noise in [rng.normal(0, 0.02, 600)]
    ]


def gains_of(runs: list[Row]) -> dict[str, Gain]:
    """Return the gain of each row over plain training."""
    rows = build_board(["a"], runs).rows
    return {row.name: row.overall.gains["normal"] for row in rows if row.overall.gains}


def test_the_interval_of_one_seed_covers_other_seeds() -> None:
    """Over episodes alone three quarters of such gains would pass for real."""
    covered, narrow, boards = 0, 0, 100
    for seed in range(boards):
        gain = gains_of(simulate(seed))["seal"]
        assert gain.covers == "pooled seeds and episodes"
        covered += abs(gain.gap) < gain.ci95
        assert "*" not in format_gain(gain)
        assert format_gain(gain).endswith(" p")
        narrow += abs(gain.gap) < 1.96 * 0.02 * (2 / 600) ** 0.5
    assert 0.93 < covered / boards <= 0.99
    assert narrow / boards < 0.5


def test_without_three_rows_with_seeds_one_seed_covers_episodes_and_has_no_star() -> None:
    runs = simulate(0, {"normal": 2, "llf": 1})
    lost = run("lost", facts("lw"), a=runs[0].outcomes["a"].values - 0.2)
    gains = gains_of([*runs, lost])
    assert {name: (gain.covers, gain.significant) for name, gain in gains.items()} == (
        dict.fromkeys(("llf", "lw"), ("episodes", False))
    )


@pytest.mark.parametrize("is_equal", [True, False])
@pytest.mark.parametrize("is_paired", [True, False])
@pytest.mark.parametrize(("seeds", "methods"), [(2, 1), (2, 5), (3, 25), (5, 5)])
def test_stars_hold_their_level(seeds: int, methods: int, is_paired: bool, is_equal: bool) -> None:
    boards = 150 if methods < 25 else 40
    for spread in (0.002, 0.01, 0.03):
        setting = Setting(seeds, spread, methods, is_paired, is_equal)
        rates = measure(setting, boards, np.random.default_rng(0))
        assert rates.stars <= 0.05 + 2 * (0.05 * 0.95 / boards) ** 0.5
        assert rates.covered >= 0.93


def test_real_gains_of_three_seeds_have_a_star() -> None:
    runs = simulate(0, {"normal": 3, "llf": 3}, 0.002)
    gained = [
        run(f"lw-{s}", facts("lw", s), a=runs[s].outcomes["a"].values + 0.03 + s / 500)
        for s in range(3)
    ]
    stars = {name: gain.significant for name, gain in gains_of([*runs, *gained]).items()}
    assert stars == {"lw": True, "llf": False}
