"""Boundedness and balancedness: what is measured, and the verdicts in both directions."""

from __future__ import annotations

import pytest

from fsbench.reproductions import swr_bounds
from fsbench.reproductions.swr_bounds import BoundsTrace


def trace(last: float, balance: float, accuracy: float, third: float = 2.0) -> BoundsTrace:
    """Two layers of 4 and 1 elements over two epochs."""
    return BoundsTrace([[3, 1], [3, third], [3, last]], [balance] * 3, [accuracy] * 2, [4, 1])


def both(swr: list[BoundsTrace], vanilla: list[BoundsTrace]) -> dict[str, str]:
    figures = swr_bounds.judge_bounds({"vanilla": vanilla, "SWR": swr})
    return {figure.what: figure.verdict for figure in figures}


def test_norms_and_ratios_by_hand() -> None:
    one = BoundsTrace([[3, 4, 5], [3, 8, 5]], [1, 1], [50], [1, 1, 1])
    assert one.total == pytest.approx([50**0.5, 98**0.5])
    assert one.imbalance == pytest.approx([0, (4 / 3 + 5 / 8 + 0) / 3])
    grown = BoundsTrace([[1], [2], [4], [7], [11]], [1] * 5, [50] * 4, [1])
    assert grown.late_growth == pytest.approx(7)


def test_the_bound_by_hand() -> None:
    """Adam at 1e-3 moves 4 elements by at most 2 * 3.1623e-3 a step; over lam = 1e-2."""
    pairs = swr_bounds._pair_with_bounds(trace(2, 1, 1))
    tops = [3 + 2 * 0.31622776601, 1 + 0.31622776601]
    assert pairs == [
        (norm, pytest.approx(top))
        for norms in ([3, 1], [3, 2], [3, 2])
        for norm, top in zip(norms, tops, strict=True)
    ]


def test_printed_values_are_reproduced() -> None:
    swr = [trace(1.1, 0.9, 97, 1.1), trace(1.15, 0.91, 97.1, 1.15)]
    vanilla = [trace(4, 0.8, 96), trace(4.1, 0.8, 96)]
    assert set(both(swr, vanilla).values()) == {"reproduced"}


def test_the_opposite_is_not_reproduced() -> None:
    swr = [trace(9, 0.7, 95), trace(9.1, 0.7, 95)]
    vanilla = [trace(1.5, 0.8, 96), trace(1.6, 0.8, 96)]
    assert set(both(swr, vanilla).values()) == {"not reproduced"}


def test_a_tiny_run_measures_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swr_bounds, "EPOCHS", 2)
    monkeypatch.setattr(swr_bounds, "BATCH", 256)
    monkeypatch.setattr(swr_bounds, "METHODS", {"SWR": {"name": "swr", "lam": 1.0}})
    trace = swr_bounds._trace_run(("SWR", 0))
    assert trace.sizes == [19200, 10000, 1000]
    assert len(trace.norms) == len(trace.balance) == 3
    assert len(trace.accuracy) == 2
    assert trace.norms[2] == pytest.approx(trace.norms[0], rel=1e-5)
    assert all(0.5 < value < 1 for value in trace.balance)
    assert trace.balance[0] != trace.balance[2]
    outcome = swr_bounds._build_panels({"SWR": [trace, trace]})
    assert [panel.curves[0].x for panel in outcome] == [(0, 1, 2), (0, 1, 2), (1, 2)]
