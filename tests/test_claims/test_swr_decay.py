"""Norms under learning-rate decay: the share of growth kept, its verdicts, and a tiny run."""

import pytest
from support.claims import judge_planted, list_verdicts

from fsbench.claims import _training, swr_decay
from fsbench.claims.engine import ClaimJob
from fsbench.claims.swr_decay import CLAIM, METHODS


def test_growth_by_hand() -> None:
    """Start 2, 6 when the rate first drops (half of 8 epochs), 3 at the end: a quarter is kept."""
    growth = swr_decay.measure_growth([2, 3, 4, 5, 6, 5, 4, 3, 3])
    assert growth == {"early growth": 200, "kept": 0.25}


def plant(
    kept: dict[str, float], growth: float = 50.0, best: float = 90.0
) -> dict[str, list[dict[str, float]]]:
    """Two seeds; re-anchored SWR ends 2 points above SWR."""
    final = {"vanilla": 0.0, "SWR": 90.0, "SWR + re-init": 92.0}
    return {
        m: [
            {"kept": kept.get(m, 0), "early growth": growth, "best": best, "final": final[m] + seed}
            for seed in (0, 1)
        ]
        for m in METHODS
    }


@pytest.mark.parametrize(
    ("kept", "verdicts"),
    [
        ((1.0, 0.4, 0.95), ["reproduced", "reproduced", "reproduced"]),
        ((0.9, 0.8, 0.81), ["direction only", "direction only", "direction only"]),
        ((0.3, 1.1, 0.94), ["not reproduced", "not reproduced", "not reproduced"]),
    ],
)
def test_only_swr_falls(kept: tuple[float, ...], verdicts: list[str]) -> None:
    norms = judge_planted(CLAIM, plant(dict(zip(METHODS, kept, strict=True))))["norms"]
    assert list_verdicts(norms.figures) == verdicts


def test_the_norms_must_grow_and_accuracy_must_leave_room() -> None:
    """Growth of a tenth until the first drop: vanilla needs a quarter, SWR a twentieth."""
    outcomes = judge_planted(CLAIM, plant({}, growth=10, best=96))
    assert [c.holds for s in outcomes.values() for c in s.conditions] == [False, True, True, False]
    outcomes = judge_planted(CLAIM, plant({}))
    assert all(c.holds for s in outcomes.values() for c in s.conditions)
    (figure,) = outcomes["accuracy"].figures
    assert (figure.published, figure.ours) == ("+0.33 (MNIST)", "+2.00 ± 0.00")
    assert figure.verdict == "reproduced"


def test_only_re_anchored_norms_stay_after_the_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swr_decay, "EPOCHS", 4)
    monkeypatch.setattr(_training, "BATCH", 128)
    for method in ("SWR", "SWR + re-init"):
        monkeypatch.setitem(METHODS[method], "lam", 0.2)
    runs = {method: swr_decay.measure(ClaimJob(method, 0)) for method in METHODS}
    assert all(len(r["norm"]) == 5 and len(r["test accuracy (%)"]) == 4 for r in runs.values())
    assert len({run["norm"][0] for run in runs.values()}) == 1
    assert runs["SWR"]["norm"][2] == runs["SWR + re-init"]["norm"][2]
    assert runs["SWR"]["kept"] < 0.5 < 0.95 < runs["SWR + re-init"]["kept"]
    assert runs["vanilla"]["norm"][-1] > runs["vanilla"]["norm"][2]
    assert runs["SWR"]["final"] == runs["SWR"]["test accuracy (%)"][-1]
