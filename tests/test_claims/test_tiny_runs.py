"""Every arm of every claim in a few steps: what is measured is what is judged and drawn."""

import math
from typing import Any

import pytest

from fsbench.claims import (
    CLAIMS,
    _synthetic,
    _training,
    nio_gradcosine,
    reinit_table5,
    seal_ascent,
    seal_knn_depth,
    swr_bounds,
    swr_decay,
    swr_figure1,
    swr_scenarios,
    wc_weights,
)
from fsbench.claims.engine import ClaimJob, Runs
from fsbench.claims.swr_figure1 import GAIN
from fsbench.data.source import SourceDataset

TINY: dict[Any, dict[str, Any]] = {
    _training: {"BATCH": 128},
    _synthetic: {"STEPS": 2},
    nio_gradcosine: {"BATCH": 16, "STEPS": 2},
    reinit_table5: {"STEPS": 10},
    seal_ascent: {"EPOCHS": 4, "IMAGES": 64},
    seal_knn_depth: {"EPOCHS": 4, "IMAGES": 64},
    swr_bounds: {"EPOCHS": dict.fromkeys(swr_bounds.EPOCHS, 2)},
    swr_decay: {"EPOCHS": 4},
    swr_figure1: {
        "SCALES": (0.9, 0.1),
        "SETUPS": {"mlp": ("mlp", 1, 1, 0), "cnn": ("cnn", 2, 1, 0), GAIN: ("mlp", 0, 1, 1)},
    },
    swr_scenarios: {"EPOCHS": dict.fromkeys(swr_scenarios.EPOCHS, 1), "IMAGES": 64},
    wc_weights: {"EPOCHS": 2, "IMAGES": 100},
}
"""Settings by module; the colour images are digits."""


def load_digits(job: ClaimJob, images: int) -> SourceDataset:
    return _training.load_digits_source(job.seed, images, zoom=2)


@pytest.mark.parametrize("name", CLAIMS.names())
def test_all_arms_run_and_are_judged(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_training, "load_colour_source", load_digits)
    for module, settings in TINY.items():
        for setting, value in settings.items():
            monkeypatch.setattr(module, setting, value)
    claim = CLAIMS.load(name)
    runs = Runs()
    for arm in (*claim.arms, *claim.colour_arms):
        assert claim.measure is not None
        quantities = claim.measure(ClaimJob(arm, 1))
        numbers = [value for value in quantities.values() if isinstance(value, int | float)]
        assert all(map(math.isfinite, numbers))
        runs[arm] = [quantities, quantities]
    outcome = claim.judge(runs, colour_images=1)
    assert [s.name for s in outcome.statements] == list(claim.card.statements)
    assert {view.y for view in outcome.views} == set(claim.curves)
