"""Untrained networks as subjects of analyses, small enough for dense references in tests."""

from typing import Any

import torch
from support.fakes import facts
from support.pretrain import CLASSES, SIDE, source
from torch import Tensor, nn

from fsbench.backbones import Backbone, Classifier
from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.networks import load_architecture
from fsbench.backbones.sources.run import RunRecord
from fsbench.core.schema import Finding
from fsbench.core.seeding import torch_generator
from protocols.analyses.inputs import AnalysisInput

FACTS = facts(input_size=SIDE, mean=(0.4, 0.5, 0.6), std=(0.2, 0.25, 0.3))


class Net(nn.Module):
    """A trunk and a head, in the precision of their weights."""

    def __init__(self, trunk: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.trunk, self.fc = trunk, head

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.fc(self.trunk(x.to(self.fc.weight.dtype)))
        return out


def record(**recipe: Any) -> RunRecord:
    """Of a run with these fields in its recipe."""
    return RunRecord(
        recipe="toy/normal",
        recipe_digest="0" * 64,
        architecture="net",
        n_classes=CLASSES,
        input_size=SIDE,
        mean=FACTS.mean,
        std=FACTS.std,
        source="tiny",
        steps=1,
        recipe_fields=recipe,
    )


def analysis_input(
    trunk: nn.Module, head: nn.Linear, spread: float = 0.3, **recipe: Any
) -> AnalysisInput:
    """A network with weights drawn anew (normal, `spread`), with images of the tiny source."""
    net = Net(trunk, head).eval()
    generator = torch_generator("analyses")
    for parameter in net.parameters():
        parameter.data = spread * torch.randn(parameter.shape, generator=generator).to(parameter)
    roles = RoleMap(("fc",), (("trunk",),), "fc", ("fc",), ("trunk",))
    network = Classifier(net, "net", roles, FACTS, record(**recipe))
    return AnalysisInput(Backbone(FACTS, trunk), network, source())


def normalised_images(
    inputs: AnalysisInput, n: int | None = None, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Normalised training images and labels that an analysis samples, computed by hand."""
    images = inputs.sample("train", n, seed)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (FACTS.mean, FACTS.std))
    return (torch.from_numpy(images.images) / 255 - mean) / std, torch.from_numpy(images.labels)


def classifier(name: str) -> Classifier:
    """An architecture of ours that was never trained."""
    architecture = load_architecture(name)
    model = architecture.build(CLASSES)
    return Classifier(model, name, architecture.roles(model), FACTS, record())


def measures(finding: Finding) -> dict[str, float]:
    """The measures of a finding by name."""
    return {measure.name: measure.value for measure in finding.measures}
