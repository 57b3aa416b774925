"""study_mlp with PyTorch's default initial weights, to compare with the study's Table 1."""

from dataclasses import replace
from functools import partial

from torch import nn

from fsbench.backbones.architectures import study_mlp


def default(layer: nn.Linear) -> None:
    """Initialise a layer by PyTorch's defaults."""
    layer.reset_parameters()


ARCHITECTURE = replace(
    study_mlp.ARCHITECTURE,
    name="study_mlp_torch",
    factory=partial(study_mlp.build_study_mlp, initialize=default),
    summary="study_mlp with PyTorch's default weights",
)
