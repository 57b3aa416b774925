"""The multilayer perceptron of the reinitialization study's synthetic experiment: 128-32-32-8.

"The Impact of Reinitialization on Generalization in Convolutional Neural Networks", section 1.1 and
Table 1. It reads the first 128 values of the flattened image, so vectors are stored as images of 8
px. Weights are Glorot-uniform and biases zero, Keras' defaults: the paper does not say, and
PyTorch's defaults do not reproduce its table (see study_mlp_he and study_mlp_torch). Every layer is
a block, including the head where a method counts it (`lw.head_block`). The fully-connected part,
which `fc` redraws, is the last two layers; the first one is the trunk.
"""

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from fsbench.backbones.architectures import Architecture, RoleMap, _layers
from fsbench.backbones.architectures._layers import Chain

VALUES = 128


class First(nn.Module):
    """Layer that keeps the first VALUES values of each image."""

    def forward(self, x: Tensor) -> Tensor:
        return x.flatten(1)[:, :VALUES]


def glorot(layer: nn.Linear) -> None:
    """Initialise a layer by Keras' defaults."""
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)


def build_study_mlp(
    num_classes: int, width: int, side: int, initialize: Callable[[nn.Linear], None] = glorot
) -> nn.Module:
    """Build the perceptron; `initialize` sets the initial weights of a layer."""
    if 3 * side * side < VALUES:
        raise _layers.small_image_error("study_mlp", side, 7)
    stages: list[nn.Module] = [
        nn.Sequential(First(), nn.Linear(VALUES, width), nn.ReLU(inplace=True)),
        nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True)),
    ]
    model = Chain(stages, [], num_classes, side, width)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            initialize(module)
    return model


def roles(model: nn.Module) -> RoleMap:
    """Return the roles of a chain with the last two layers as the fully-connected ones."""
    role_map = _layers.chain_roles(model)
    return replace(role_map, fully_connected=role_map.layers[1:])


ARCHITECTURE = Architecture(
    name="study_mlp",
    factory=build_study_mlp,
    roles=roles,
    default_width=32,
    input_size=8,
    summary="two hidden layers of 32 units on the first 128 values of the image",
    features="last hidden layer",
    fixed_input=True,
)
