"""Margins, effective rank, size of weights and dormant units, by hand and of networks."""

import numpy as np
import pytest
import torch
from support.analyses import analysis_input, measures, normalised_images
from torch import Tensor, nn
from torch.nn import functional

from fsbench.core.errors import CheckpointError
from protocols.analyses import NotApplicable, dormant, effective_rank, margins, size_of_weights
from protocols.analyses.dormant import ActivitySums, DormantSettings, is_dormant
from protocols.analyses.effective_rank import EffectiveRankSettings, compute_effective_rank
from protocols.analyses.inputs import AnalysisInput
from protocols.analyses.margins import MarginsSettings, compute_margins
from protocols.analyses.size_of_weights import SizeOfWeightsSettings


def linear() -> AnalysisInput:
    trunk = nn.Sequential(nn.AvgPool2d(4), nn.Flatten())
    return analysis_input(trunk, nn.Linear(12, 4), spread=2.0)


# Margins


def test_margins_by_hand() -> None:
    logits = torch.tensor([[0.8, 0.15, 0.05], [0.8, 0.15, 0.05], [0.25, 0.5, 0.25]]).log()
    margins = compute_margins(logits, torch.tensor([0, 2, 1]))
    assert margins.tolist() == pytest.approx([0.65, -0.75, 0.25])
    sure = compute_margins(torch.tensor([[200.0, 0.0], [200.0, 0.0]]), torch.tensor([0, 1]))
    assert sure.tolist() == [1, -1]


def test_the_smallest_margins_of_all_training_images_in_order() -> None:
    inputs = linear()
    inputs.network.model.get_parameter("fc.weight").data.neg_()
    inputs.network.model.get_parameter("fc.bias").data[0] += 9
    x, y = normalised_images(inputs)
    logits = inputs.network.model(x).detach().double().numpy()
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    rows = np.arange(len(y))
    true = shares[rows, y].copy()
    shares[rows, y] = 0
    expected = np.sort(true - shares.max(1))
    finding = margins.run(inputs, MarginsSettings(smallest=7, batch_size=16))
    (view,) = finding.views
    assert view.values == pytest.approx(expected[:7], rel=1e-5)
    assert view.at == (1, 2, 3, 4, 5, 6, 7)
    values = measures(finding)
    assert values["images"] == 40
    assert values["smallest margin"] == view.values[0]
    assert values["mean of the 7 smallest"] == pytest.approx(expected[:7].mean(), rel=1e-5)
    wrong = (logits.argmax(1) != y.numpy()).mean()
    assert 0 < wrong < 1 != 2 * wrong
    assert values["wrong images"] == wrong
    few = margins.run(inputs, MarginsSettings(images=5))
    assert len(few.views[0].values) == 5
    assert "mean of the 5 smallest" in measures(few)


# Effective rank


@pytest.mark.parametrize(
    ("singular", "rank"),
    [([3, 3, 3, 3], 4), ([7, 0, 0], 1), ([2, 1, 1], 2**1.5), ([1, 1, 0, 0], 2)],
)
def test_effective_ranks_by_hand(singular: list[float], rank: float) -> None:
    computed = compute_effective_rank(torch.tensor(singular, dtype=torch.float32))
    assert computed == pytest.approx(rank)


@pytest.mark.parametrize("centred", [False, True])
def test_it_is_that_of_the_backbones_features(centred: bool) -> None:
    inputs = linear()
    chosen = inputs.split("train")
    features = inputs.backbone.features(torch.from_numpy(chosen.images)).double().numpy()
    features = features - features.mean(0) if centred else features
    values = np.linalg.svd(features, compute_uv=False)
    shares = values / values.sum()
    expected = np.exp(-(shares * np.log(shares)).sum())
    settings = EffectiveRankSettings(centred=centred, images=None, batch_size=9)
    finding = effective_rank.run(inputs, settings)
    by_name = measures(finding)
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
        effective_rank.run(inputs, EffectiveRankSettings(centred=centred))


def test_broken_logits_are_refused() -> None:
    inputs = linear()
    inputs.network.model.get_parameter("fc.bias").data[0] = float("nan")
    with pytest.raises(CheckpointError, match="not finite"):
        margins.run(inputs, MarginsSettings())


# Size of weights


@pytest.mark.parametrize("n", [10, 256])
def test_it_is_the_norm_of_the_heads_input_times_that_of_its_weights(n: int) -> None:
    trunk = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    inputs = analysis_input(trunk, nn.Linear(4, 4))
    x, _ = normalised_images(inputs, n)
    with torch.no_grad():
        below = trunk(x).square().sum().sqrt()
        head_norm = inputs.network.model.get_parameter("fc.weight").square().sum().sqrt()
    finding = size_of_weights.run(inputs, SizeOfWeightsSettings(images=n, batch_size=7))
    values = measures(finding)
    assert values["images"] == min(n, 40)
    assert values["norm of the head's input"] == pytest.approx(float(below), rel=1e-5)
    assert values["norm of the head"] == pytest.approx(float(head_norm), rel=1e-5)
    assert values["size of weights"] == pytest.approx(float(below * head_norm), rel=1e-5)
    assert finding.views[0].values == (values["size of weights"],)
    assert SizeOfWeightsSettings().images == 256, "the paper's"


# Dormant units


def test_scores_by_hand() -> None:
    activity = torch.tensor([0.0, 0.02, 0.1, 3.88])  # mean 1
    assert is_dormant(activity, 0).tolist() == [True, False, False, False]
    assert is_dormant(activity, 0.025).tolist() == [True, True, False, False]
    assert is_dormant(activity, 0.1).tolist() == [True, True, True, False]
    assert is_dormant(100 * activity, 0.025).tolist() == [True, True, False, False]
    assert is_dormant(torch.zeros(3), 0).all(), "a layer without any activity is dormant"


def activities(model: nn.Module, *batches: Tensor) -> list[Tensor]:
    totals: list[Tensor] = []
    for x in batches:
        with torch.no_grad(), ActivitySums(totals):
            model(x)
    return totals


class Everything(nn.Module):
    """A shared module in place, a function, a method, and a smooth one."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, 4, 1), nn.Linear(4, 5)
        self.relu = nn.ReLU(inplace=True)
        self.kept: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        x = self.keep(self.relu(self.conv(x)))
        x = self.keep(self.relu(x - 0.3))
        x = self.keep(functional.relu6(x.mean(dim=(2, 3)))) - 0.01
        x = self.keep(x.relu())
        return self.keep(functional.gelu(self.fc(x))).mul_(7)

    def keep(self, x: Tensor) -> Tensor:
        self.kept.append(x.detach().clone())
        return x


def test_every_application_is_a_layer_and_its_units_are_averaged() -> None:
    model = Everything()
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randn(n, 3, 6, 6, generator=generator) for n in (5, 2)]
    totals = activities(model, *batches)
    assert [len(t) for t in totals] == [4, 4, 4, 4, 5]
    for layer, total in enumerate(totals):
        both = torch.cat([model.kept[layer], model.kept[5 + layer]])
        by_unit = both.movedim(1, 0).flatten(1).abs().mean(dim=1) * 7
        torch.testing.assert_close(total.float(), by_unit)


def test_channels_come_last_behind_a_linear_layer_on_tokens_and_maps() -> None:
    model = nn.Sequential(nn.Linear(3, 6), nn.GELU())
    for shape in ((2, 5, 3), (2, 5, 4, 3)):
        (total,) = activities(model, torch.ones(*shape))
        expected = 2 * model(torch.ones(1, 3)).abs()[0]
        torch.testing.assert_close(total.float(), expected.detach())


def test_shares_of_layers_and_of_the_network() -> None:
    trunk = nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    wide = nn.Sequential(trunk, nn.Linear(8, 4), nn.ReLU())
    inputs = analysis_input(wide, nn.Linear(4, 4), spread=0.1)
    bias = trunk[0].bias
    bias.data[:] = torch.tensor([-9, -9, -9, 9, 9, 9, 9, 9])  # type: ignore[union-attr]
    x, _ = normalised_images(inputs)
    with torch.no_grad():
        parts = [trunk[:2](x).mean(dim=(0, 2, 3)), wide(x).mean(dim=0)]
    expected = [float((p <= 0.025 * p.mean()).double().mean()) for p in parts]
    assert expected[0] == 3 / 8
    finding = dormant.run(inputs, DormantSettings(batch_size=16))
    values = measures(finding)
    assert finding.views[0].values == pytest.approx([100 * e for e in expected])
    assert values["units"] == 12
    assert values["dormant units (tau 0.025)"] == (3 + 4 * expected[1]) / 12
    assert values["dormant units, worst layer"] == max(expected)


def test_a_network_without_activations_has_no_dormant_units() -> None:
    plain = analysis_input(nn.Sequential(nn.AvgPool2d(4), nn.Flatten()), nn.Linear(12, 4))
    with pytest.raises(NotApplicable, match="uses none of elu, gelu"):
        dormant.run(plain, DormantSettings())
