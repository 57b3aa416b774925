"""Size of weights: norm of the head's input times norm of the head's weights.

Paper: The Impact of Reinitialization on Generalization in Convolutional Neural Networks.
I. Alabdulmohsin, H. Maennel, D. Keysers, 2021, appendix D, https://arxiv.org/abs/2109.00267

    size = |Z|_F |W_head|_F,    Z (N, D): input of the head for N = 256 random training images

Z includes the contribution of all layers below, norm layers included. The paper reports the ratio
to the baseline.

Unit: none (a product of two norms). Differences: none known. Images are not augmented.
"""

import torch
from pydantic import Field
from torch import Tensor, nn

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Finding, Measure, View
from protocols.analyses import Need
from protocols.analyses.inputs import AnalysisInput, ImageSettings

SOURCE = "reinitialization study, appendix D"
NEEDS: tuple[Need, ...] = ("head", "images")


class SizeOfWeightsSettings(ImageSettings):
    """Settings of the size of weights."""

    images: int | None = Field(256, ge=1)


SETTINGS = SizeOfWeightsSettings


@torch.no_grad()
def run(
    inputs: AnalysisInput, settings: SizeOfWeightsSettings, report: Reporter = SILENT
) -> Finding:
    """Measure both norms and their product."""
    network = inputs.network
    head = network.model.get_submodule(network.roles.head)
    (images,) = inputs.samples(settings)
    square = 0.0

    def add_square(module: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        nonlocal square
        square += float(arguments[0].double().square().sum())

    handle = head.register_forward_pre_hook(add_square)
    try:
        for x, _ in inputs.batches(images, settings.batch_size, report, "size of weights"):
            network.model(x)
    finally:
        handle.remove()
    input_norm = square**0.5
    head_norm = float(torch.linalg.norm(head.get_parameter("weight").double()))
    return Finding(
        measures=(
            Measure(name="images", value=len(images)),
            Measure(name="size of weights", value=input_norm * head_norm),
            Measure(name="norm of the head's input", value=input_norm),
            Measure(name="norm of the head", value=head_norm),
        ),
        views=(View.bar("size of weights", input_norm * head_norm),),
    )
