"""Optimizers built from groups of parameter names, and their state as tensors by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from pretrain.method import ParameterGroup
    from pretrain.recipes.recipe import Recipe

OptimizerState = dict[str, dict[str, Tensor]]
"""Parameter name -> buffer name (momentum_buffer; step, exp_avg, exp_avg_sq) -> tensor."""


def build_optimizer(
    recipe: Recipe,
    parameters: Mapping[str, nn.Parameter],
    groups: Sequence[ParameterGroup],
    carried: OptimizerState,
) -> torch.optim.Optimizer:
    """The recipe's optimizer over the groups, starting from the carried buffers."""
    described = [
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
        optimizer = torch.optim.Adam(described, lr=recipe.lr)
    else:
        optimizer = torch.optim.SGD(described, lr=recipe.lr, momentum=recipe.momentum)
    trained = {name for group in groups for name in group.names}
    for name in trained & carried.keys():
        optimizer.state[parameters[name]] = dict(carried[name])
    return optimizer


def optimizer_state(
    optimizer: torch.optim.Optimizer, parameters: Mapping[str, nn.Parameter]
) -> OptimizerState:
    """The buffers that the optimizer holds."""
    found: OptimizerState = {}
    for name, parameter in parameters.items():
        buffers = optimizer.state.get(parameter, {})
        kept = {key: value for key, value in buffers.items() if isinstance(value, Tensor)}
        if kept:
            found[name] = kept
    return found


def set_learning_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Every group steps with lr times its own scale."""
    for group in optimizer.param_groups:
        group["lr"] = lr * group["lr_scale"]
