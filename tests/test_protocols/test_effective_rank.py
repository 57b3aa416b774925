"""Effective rank by hand, its bounds, and the features that it is computed from."""

import numpy as np
import pytest
import torch
from hypothesis import given as drawn
from hypothesis import strategies as st
from support.analyses import analysis_input, normalised_images
from torch import Tensor, nn

from fsbench.core.errors import CheckpointError
from protocols.analyses.effective_rank import EffectiveRankSettings, compute_effective_rank, run


@pytest.mark.parametrize(
    ("singular", "rank"),
    [([3, 3, 3, 3], 4), ([7, 0, 0], 1), ([2, 1, 1], 2**1.5), ([1, 1, 0, 0], 2)],
)
def test_by_hand(singular: list[float], rank: float) -> None:
    assert compute_effective_rank(torch.tensor(singular, dtype=torch.float32)) == pytest.approx(
        rank
    )


@drawn(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20), st.floats(1e-3, 1e3))
def test_it_lies_between_one_and_the_rank_at_any_scale(values: list[float], by: float) -> None:
    rank = compute_effective_rank(torch.tensor(values, dtype=torch.float64))
    assert 1 - 1e-9 <= rank <= len(values) * (1 + 1e-9)
    scaled = compute_effective_rank(by * torch.tensor(values, dtype=torch.float64))
    assert scaled == pytest.approx(rank, rel=1e-9)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("part", ["train", "val"])
def test_it_is_that_of_the_backbones_features(centred: bool, part: str) -> None:
    trunk = nn.Sequential(nn.AvgPool2d(4), nn.Flatten())
    inputs = analysis_input(trunk, nn.Linear(12, 4))
    chosen = inputs.split(part)  # type: ignore[arg-type]
    features = inputs.backbone.features(torch.from_numpy(chosen.images)).double().numpy()
    features = features - features.mean(0) if centred else features
    values = np.linalg.svd(features, compute_uv=False)
    shares = values / values.sum()
    expected = np.exp(-(shares * np.log(shares)).sum())
    settings = EffectiveRankSettings.model_validate(
        {"centred": centred, "part": part, "batch_size": 9}
    )
    finding = run(inputs, settings)
    by_name = {m.name: m.value for m in finding.measures}
    assert by_name["effective rank"] == pytest.approx(expected, rel=1e-5)
    assert by_name["features"] == 12
    assert by_name["images"] == len(chosen)
    assert by_name["effective rank / features"] == by_name["effective rank"] / 12
    assert finding.views[0].values == pytest.approx(values / values[0], rel=1e-4)


class Constant(nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.tensor(value))

    def forward(self, x: Tensor) -> Tensor:
        return x.new_full((len(x), 12), float(self.value))


@pytest.mark.parametrize(("value", "centred"), [(0.0, False), (1.0, True), (float("nan"), False)])
def test_features_without_any_direction_are_refused(value: float, centred: bool) -> None:
    inputs = analysis_input(Constant(value), nn.Linear(12, 4))
    inputs.backbone.module.value.data.fill_(value)  # type: ignore[union-attr,operator]
    with pytest.raises(CheckpointError, match="not finite or all the same"):
        run(inputs, EffectiveRankSettings(centred=centred))


def test_small_networks_see_the_same_images() -> None:
    trunk = nn.Sequential(nn.AvgPool2d(4), nn.Flatten())
    inputs = analysis_input(trunk, nn.Linear(12, 4))
    x, _ = normalised_images(inputs, 10)
    expected = compute_effective_rank(torch.linalg.svdvals(trunk(x).double()))
    finding = run(inputs, EffectiveRankSettings(images=10))
    assert finding.measures[2].value == pytest.approx(expected)
