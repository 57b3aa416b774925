"""Norms under learning-rate decay: the share of growth kept, its verdicts, and a tiny run."""

import pytest

from fsbench.claims import swr_decay
from fsbench.claims.swr_decay import DecayTrace, judge_growth


def test_preserved_growth_by_hand() -> None:
    """Start 2, 6 when the rate first drops (half of 8 epochs), 3 at the end: a quarter is kept."""
    assert DecayTrace([2, 3, 4, 5, 6, 5, 4, 3, 3], [90] * 8).preserved_growth == 0.25


def test_the_norms_must_grow_and_accuracy_must_leave_room() -> None:
    """Growth of a half and of a tenth until the first drop; best accuracy of SWR 96."""
    grown, still = DecayTrace([2, 3, 2], [90, 90]), DecayTrace([10, 11, 10], [96, 90])
    runs = {"vanilla": [grown], "SWR": [grown], "SWR + re-init": [grown]}
    assert grown.early_growth == 0.5
    slow = {method: [still] for method in runs}
    assert all(swr_decay._require_growth(method, runs).holds for method in runs)
    assert [swr_decay._require_growth(m, slow).holds for m in slow] == [False, True, True]
    assert swr_decay._require_room(runs).holds
    assert not swr_decay._require_room({**runs, "SWR": [still]}).holds


@pytest.mark.parametrize(
    ("method", "growths", "verdict"),
    [
        ("SWR", {"SWR": 0.4}, "reproduced"),
        ("SWR", {"SWR": 0.8}, "direction only"),
        ("SWR", {"SWR": 1.1}, "not reproduced"),
        ("vanilla", {"SWR": 0.4, "vanilla": 1.0}, "reproduced"),
        ("vanilla", {"SWR": 0.4, "vanilla": 0.6}, "direction only"),
        ("vanilla", {"SWR": 0.4, "vanilla": 0.3}, "not reproduced"),
    ],
)
def test_judge(method: str, growths: dict[str, float], verdict: str) -> None:
    assert judge_growth(method, growths) == verdict


def test_accuracy_is_that_of_the_last_epoch() -> None:
    runs = {
        "SWR": [DecayTrace([], [99, 90]), DecayTrace([], [99, 91])],
        "SWR + re-init": [DecayTrace([], [10, 92]), DecayTrace([], [10, 93])],
    }
    figure = swr_decay._judge_accuracy(runs)
    assert (figure.published, figure.ours) == ("+0.33 (MNIST)", "+2.00 ± 0.00")
    assert figure.verdict == "reproduced"


def test_only_re_anchored_norms_stay_after_the_drop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(swr_decay, "EPOCHS", 4)
    monkeypatch.setattr(swr_decay, "BATCH", 128)
    for method in swr_decay.METHODS.values():
        if "lam" in method:
            monkeypatch.setitem(method, "lam", 0.2)
    traces = {method: swr_decay._trace_run((method, 0)) for method in swr_decay.METHODS}
    assert all(len(trace.norm) == 5 and len(trace.accuracy) == 4 for trace in traces.values())
    assert len({trace.norm[0] for trace in traces.values()}) == 1
    assert traces["SWR"].norm[2] == traces["SWR + re-init"].norm[2]
    assert traces["SWR"].preserved_growth < 0.5 < 0.95 < traces["SWR + re-init"].preserved_growth
    assert traces["vanilla"].norm[-1] > traces["vanilla"].norm[2]
