"""Optimizers built from groups of parameter names, and their state as tensors by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from pretrain.recipes.recipe import Recipe

OptimizerState = dict[str, dict[str, Tensor]]
"""Parameter name -> buffer name (momentum_buffer; step, exp_avg, exp_avg_sq) -> tensor."""


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters (by name) that share a learning rate and a decay; others are not trained.

    lr_scale and decay multiply the recipe's learning rate and weight decay. decay_on: `effective`
    means that a reparametrization decays the effective weight and the optimizer does not.
    """

    names: tuple[str, ...]
    lr_scale: float = 1.0
    decay: float = 1.0
    decay_on: Literal["trained", "effective"] = "trained"


def build_optimizer(
    recipe: Recipe,
    parameters: Mapping[str, nn.Parameter],
    groups: Sequence[ParameterGroup],
    carried: OptimizerState,
) -> torch.optim.Optimizer:
    """Return the recipe's optimizer over the groups, starting from the carried buffers."""
    options = [
        {
            "params": [parameters[name] for name in group.names],
            "lr": recipe.lr * group.lr_scale,
            "weight_decay": recipe.weight_decay * group.decay * (group.decay_on == "trained"),
            "effective_decay": recipe.weight_decay * group.decay * (group.decay_on == "effective"),
            "lr_scale": group.lr_scale,
        }
        for group in groups
        if group.names
    ]
    optimizer: torch.optim.Optimizer
    if recipe.optimizer == "adam":
        optimizer = torch.optim.Adam(options, lr=recipe.lr)
    else:
        optimizer = torch.optim.SGD(options, lr=recipe.lr, momentum=recipe.momentum)
    trained = {name for group in groups for name in group.names}
    for name in trained & carried.keys():
        optimizer.state[parameters[name]] = dict(carried[name])
    return optimizer


def optimizer_state(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]
) -> OptimizerState:
    """Return the tensors of the optimizer's state by parameter name."""
    buffers_by_name: OptimizerState = {}
    for name, parameter in parameters.items():
        buffers = optimizer.state.get(parameter, {})
        tensors = {key: value for key, value in buffers.items() if isinstance(value, Tensor)}
        if tensors:
            buffers_by_name[name] = tensors
    return buffers_by_name


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Set the learning rate of every group to lr times the group's scale."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group["lr_scale"]
