"""The networks of this project (presets.yaml): `fsbench/NAME`, and `cifar/NAME` with a 3x3 stem."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from fsbench.backbones.architectures import Architecture, RoleMap, _chains, _densenet, _resnet
from fsbench.core import io

Family = tuple[Callable[..., nn.Module], Callable[..., RoleMap], dict[str, Any]]
CHAIN = {"features": "last hidden layer", "fixed_input": True}
FAMILIES: dict[str, Family] = {
    "cnn": (_chains.cnn, _chains.chain_roles, CHAIN),
    "perceptron": (_chains.perceptron, _chains.chain_roles, CHAIN),
    "mobilenet": (_chains.mobilenet, _chains.mobilenet_roles, {}),
    "resnet": (_resnet.ResNet, _resnet.resnet_roles, {}),
    "densenet": (_densenet.densenet, _densenet.densenet_roles, {}),
}
"""Builder of the networks of a family, their roles, and their common facts."""
NORMS = {"batch": nn.BatchNorm2d, "layer": _chains.layer_norm, "bias": _chains.Bias}


def make_preset(
    name: str,
    family: str,
    width: int,
    side: int,
    summary: str,
    least: int = 1,
    blocks: str = "",
    **arguments: Any,
) -> Architecture:
    """Return the network of a row of the table; arguments: those of its family."""
    if "norm" in arguments:
        arguments["norm"] = NORMS[arguments["norm"]]
    factory, roles, common = FAMILIES[family]
    build = partial(factory, **arguments)
    roles = partial(roles, blocks=blocks) if blocks else roles
    return Architecture(name, build, roles, width, side, summary, least=least, **common)


ROWS = io.read_table(Path(__file__).with_suffix(".yaml"))
PRESETS = {name: make_preset(name, **row) for name, row in ROWS.items() if "/" not in name}
CIFAR_RESNETS = {name: make_preset(name, **row) for name, row in ROWS.items() if "/" in name}
