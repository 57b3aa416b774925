"""Sizes of comparisons: figures of real logs, and by simulation against the test itself."""

import numpy as np
import pytest

from fsbench.core import statistics
from fsbench.core.statistics import DETECTABLE, episodes_needed


def test_figures_of_real_logs() -> None:
    """ChestX and EuroSAT at 5 shots, sd 5.4 and 4.3 points: about 920 and 580 episodes."""
    assert [episodes_needed(sd, 0.005) for sd in (0.054, 0.043)] == [916, 581]


def test_so_many_episodes_detect_the_gap_and_one_fewer_does_not_quite() -> None:
    for gap in (0.004, 0.02, 0.3):
        n = episodes_needed(0.1, gap)
        assert DETECTABLE * 0.1 / np.sqrt(n) <= gap
        assert n == 2 or DETECTABLE * 0.1 / np.sqrt(n - 1) > gap
    assert episodes_needed(0.0, 0.3) == 2


@pytest.mark.parametrize("sds", [(0.06,), (0.03, 0.06, 0.12)])
def test_the_test_finds_the_gap_as_often_as_promised(sds: tuple[float, ...]) -> None:
    """On columns of different spread, as a board averages them."""
    rng, trials = np.random.default_rng(0), 2000
    n = episodes_needed(float(np.linalg.norm(sds)) / len(sds), 0.01)
    draws = [[rng.normal(0.01, sd, n) for sd in sds] for _ in range(trials)]
    share = np.mean([statistics.measure_columns(gaps).p < 0.05 for gaps in draws])
    assert abs(share - 0.8) < 4 * np.sqrt(0.16 / trials)
