"""study_mlp with He-normal weights and zero biases, to compare with the study's Table 1."""

from dataclasses import replace
from functools import partial

from torch import nn

from fsbench.backbones.architectures import study_mlp


def initialize_linear_he(layer: nn.Linear) -> None:
    """Initialise a layer by He normal weights and zero biases."""
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)


ARCHITECTURE = replace(
    study_mlp.ARCHITECTURE,
    name="study_mlp_he",
    factory=partial(study_mlp.build_study_mlp, initialize=initialize_linear_he),
    summary="study_mlp with He-normal weights",
)
