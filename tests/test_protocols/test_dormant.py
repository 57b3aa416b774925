"""Dormant units by hand: scores, layers in any notation, channels of maps and tokens."""

import pytest
import torch
from support.analyses import analysis_input, normalised_images
from torch import Tensor, nn
from torch.nn import functional

from protocols.analyses import NotApplicable
from protocols.analyses.dormant import ActivitySums, DormantSettings, is_dormant, run


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
    finding = run(inputs, DormantSettings(batch_size=16))
    values = {m.name: m.value for m in finding.measures}
    assert finding.views[0].values == pytest.approx([100 * e for e in expected])
    assert values["units"] == 12
    assert values["dormant units (tau 0.025)"] == (3 + 4 * expected[1]) / 12
    assert values["dormant units, worst layer"] == max(expected)


def test_a_network_without_activations_has_no_dormant_units() -> None:
    plain = analysis_input(nn.Sequential(nn.AvgPool2d(4), nn.Flatten()), nn.Linear(12, 4))
    with pytest.raises(NotApplicable, match="uses none of elu, gelu"):
        run(plain, DormantSettings())
