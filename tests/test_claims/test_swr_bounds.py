"""Boundedness and balancedness: what is measured, and the verdicts in both directions."""

import pytest

from fsbench.claims import ClaimSettings, _runs, swr_bounds
from fsbench.claims.swr_bounds import COLOUR, DIGITS, BoundsTrace


def make_trace(
    last: float, balance: float, accuracy: float, third: float = 2.0, train: float = 100.0
) -> BoundsTrace:
    """Two layers of 4 and 1 elements over two epochs."""
    norms = [[3.0, 1.0], [3.0, third], [3.0, last]]
    return BoundsTrace(norms, [balance] * 3, [accuracy] * 2, [4, 1], [50.0, train])


def judge_both(swr: list[BoundsTrace], vanilla: list[BoundsTrace]) -> dict[str, str]:
    runs = {"vanilla": vanilla, "SWR": swr}
    parts = (swr_bounds.judge_bound, swr_bounds.judge_accuracy, swr_bounds.judge_balancedness)
    return {figure.what: figure.verdict for part in parts for figure in part(runs)}


def test_norms_and_ratios_by_hand() -> None:
    one = BoundsTrace([[3, 4, 5], [3, 8, 5]], [1, 1], [50], [1, 1, 1], [])
    assert one.total == pytest.approx([50**0.5, 98**0.5])
    assert one.imbalance == pytest.approx([0, (4 / 3 + 5 / 8 + 0) / 3])
    grown = BoundsTrace([[1], [2], [4], [7], [11]], [1] * 5, [50] * 4, [1], [])
    assert grown.late_growth == pytest.approx(7)


def test_the_bound_by_hand() -> None:
    """Adam at 1e-3 moves 4 elements by at most 2 * 3.1623e-3 a step; over lam = 1e-2."""
    shares = make_trace(1.5, 1, 1).share_of_bound(1e-2)
    assert shares == pytest.approx([3 / (3 + 2 * 0.31622776601), 2 / (1 + 0.31622776601)])


def test_printed_values_are_reproduced() -> None:
    swr = [make_trace(1.01, 0.9, 97, 1.01), make_trace(1.02, 0.91, 97.1, 1.02)]
    vanilla = [make_trace(4, 0.8, 96), make_trace(4.1, 0.8, 96)]
    assert set(judge_both(swr, vanilla).values()) == {"reproduced"}


def test_the_opposite_is_not_reproduced() -> None:
    swr = [make_trace(9, 0.7, 95), make_trace(9.1, 0.7, 95)]
    vanilla = [make_trace(1.5, 0.8, 96), make_trace(1.6, 0.8, 96)]
    assert set(judge_both(swr, vanilla).values()) == {"not reproduced"}


@pytest.mark.parametrize(
    ("swr", "vanilla", "holds"),
    [(99.0, 100.0, [True, True]), (60.0, 100.0, [True, False]), (98.0, 98.0, [False, True])],
)
def test_balancedness_needs_two_networks_that_learn_equally(
    swr: float, vanilla: float, holds: list[bool]
) -> None:
    runs = {
        "vanilla": [make_trace(2, 1, 1, train=vanilla)],
        "SWR": [make_trace(2, 1, 1, train=swr)],
    }
    assert [c.holds for c in swr_bounds.require_equal_learning(runs)] == holds


@pytest.mark.parametrize(("second", "holds"), [(1.04, True), (1.03, False)])
def test_every_layer_must_exceed_the_bound_without_swr(second: float, holds: bool) -> None:
    """At lam = .1, one element: 1 + .0316."""
    trace = BoundsTrace([[1.0, 1.0], [9.0, second]], [1] * 2, [1], [1, 1], [100.0])
    assert swr_bounds._require_bite([trace]).holds == holds


def test_a_tiny_run_measures_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(swr_bounds.EPOCHS, DIGITS, 2)
    monkeypatch.setitem(swr_bounds.LAMS, DIGITS, 1.0)
    monkeypatch.setattr(swr_bounds, "BATCH", 256)
    trace = swr_bounds.trace_run(((DIGITS, "SWR"), 0), ClaimSettings())
    assert trace.sizes == [19200, 10000, 1000]
    assert len(trace.norms) == len(trace.balance) == 3
    assert len(trace.accuracy) == len(trace.train) == 2
    assert trace.norms[2] == pytest.approx(trace.norms[0], rel=1e-5)
    assert all(0.5 < value < 1 for value in trace.balance)
    assert trace.balance[0] != trace.balance[2]
    panels = swr_bounds._build_panels(DIGITS, {"SWR": [trace, trace]})
    assert [panel.curves[0].x for panel in panels] == [(0, 1, 2), (0, 1, 2), (1, 2)]


def test_without_colour_images_balancedness_is_not_testable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trace_here(
        function: object, cells: list[tuple[str, str]], *others: object
    ) -> dict[tuple[str, str], list[BoundsTrace]]:
        assert COLOUR not in {source for source, _ in cells}
        swr = [make_trace(1.01, 0.9, 97, 1.01), make_trace(1.02, 0.91, 97.1, 1.02)]
        vanilla = [BoundsTrace([[3, 1], [9, 2], [9, 4]], [1] * 3, [96] * 2, [4, 1], [100.0])] * 2
        return {(DIGITS, "SWR"): swr, (DIGITS, "vanilla"): vanilla}

    monkeypatch.setattr(_runs, "run_seeds", trace_here)
    outcome = swr_bounds.run(ClaimSettings(2))
    assert {s.name: s.verdict for s in outcome.statements} == {
        "bound": "reproduced",
        "accuracy": "reproduced",
        "balancedness": "not testable here",
    }
    assert outcome.statements[2].reason.startswith("colour images (TinyImageNet): not found")
