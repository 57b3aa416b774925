"""Step rules outside the loop: what their hooks need of a context, around any module in float64."""

from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap
from fsbench.backbones.networks import load_architecture
from fsbench.core.seeding import stream
from pretrain.training.context import Context


def build(name: str, side: int = 16, width: int = 4) -> tuple[nn.Module, RoleMap]:
    """A small network of ours with 3 classes in float64, biases and norm layers far from zero and
    one, norm layers with next to no epsilon; two calls give the same numbers.
    """
    architecture = load_architecture(name).at(side)
    with stream("rules", name):
        model = architecture.build(3, width).double()
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
                module.eps = 1e-300
                nn.init.uniform_(module.weight, 0.5, 2)
            if getattr(module, "bias", None) is not None:
                nn.init.normal_(cast("Tensor", module.bias))
    return model, architecture.roles(model)


def images(side: int = 16, n: int = 12) -> Tensor:
    with stream("rules", "images"):
        return torch.randn(n, 3, side, side, dtype=torch.float64)


def context(model: nn.Module, roles: RoleMap, **more: Any) -> Context:
    """Just enough of a Context."""
    fields = {"recipe": SimpleNamespace(architecture="test"), "memory": {}, **more}
    parameters = dict(model.named_parameters())
    return cast(
        "Context", SimpleNamespace(model=model, roles=roles, parameters=parameters, **fields)
    )


def train(model: nn.Module, name: str) -> None:
    """Stands for training: every parameter changes by a tenth of its size and more."""
    with stream("rules", "training", name), torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(float(1 + torch.rand(())))
            parameter += 0.1 * torch.randn_like(parameter)
