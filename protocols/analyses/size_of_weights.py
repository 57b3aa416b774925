"""Size of the weights: the norm of what the head gets times the norm of the head's weights.

"The Impact of Reinitialization", appendix D (methods.md A9): the Frobenius norm of the head's input
over 256 random training images, which holds what all layers below contribute, normalisation layers
included, times that of the head's weights. The paper compares its ratio to the baseline's. Images
are not augmented.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn

from fsbench.core.findings import Finding, Measure, View
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import Frozen
from protocols.analyses import Need
from protocols.analyses._subject import Subject

SOURCE = "reinitialization study, appendix D"
NEEDS: tuple[Need, ...] = ("head", "images")


class Settings(Frozen):
    """images: random ones of train, the same for every network."""

    images: int | None = Field(256, ge=1)
    batch_size: int = Field(256, ge=1)
    seed: int = Field(0, ge=0)


def passes(subject: Subject, settings: Settings) -> int:
    return len(subject.chosen("train", settings.images, settings.seed))


@torch.no_grad()
def run(subject: Subject, settings: Settings, report: Reporter = SILENT) -> Finding:
    network = subject.network
    head = network.model.get_submodule(network.roles.head)
    images = subject.chosen("train", settings.images, settings.seed)
    square = 0.0

    def add(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        nonlocal square
        square += float(inputs[0].double().square().sum())

    handle = head.register_forward_pre_hook(add)
    try:
        for x, _ in subject.batches(images, settings.batch_size, report, "size of weights"):
            network.model(x)
    finally:
        handle.remove()
    below, own = square**0.5, float(torch.linalg.norm(head.get_parameter("weight").double()))
    return Finding(
        measures=(
            Measure(name="images", value=len(images)),
            Measure(name="size of weights", value=below * own),
            Measure(name="norm of the head's input", value=below),
            Measure(name="norm of the head", value=own),
        ),
        views=(View.bar("size of weights", below * own),),
    )
