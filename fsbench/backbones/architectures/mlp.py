"""The multilayer perceptron of the soft-weight-rescaling paper: two hidden layers of 100 units.

"Soft Weight Rescaling", appendix D.1: 784-100-100-10 on MNIST. Here the input has 3 s s
values for images of side s.
"""

from dataclasses import replace

from torch import nn

from fsbench.backbones.architectures import Architecture, RoleMap
from fsbench.backbones.architectures._layers import Chain, chain_roles


def mlp(num_classes: int, width: int, side: int) -> nn.Module:
    """Build the perceptron."""
    stages: list[nn.Module] = [
        nn.Sequential(nn.Flatten(), nn.Linear(3 * side * side, width), nn.ReLU(inplace=True)),
        nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True)),
    ]
    return Chain(stages, [], num_classes, side, width)


def roles(model: nn.Module) -> RoleMap:
    """Return the roles of a chain with the last two layers as the fully-connected ones.

    With them the `fc` of the reinitialization study reproduces its Table 1.
    """
    role_map = chain_roles(model)
    return replace(role_map, fully_connected=role_map.layers[-2:])


ARCHITECTURE = Architecture(
    name="mlp",
    factory=mlp,
    roles=roles,
    default_width=100,
    input_size=28,
    summary="two hidden layers of 100 units on the flattened image",
    features="last hidden layer",
    fixed_input=True,
)
