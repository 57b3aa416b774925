"""Dropout in front of the head, on any architecture, without a module of its own.

"The Impact of Reinitialization", appendix C, draws it in front of the classifier head of scnn and
does not say where the other networks have it; here it is the same place in all. A hook leaves the
names of all weights alone, so an exported run is the plain architecture.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


def drop_before(head: nn.Module, rate: float) -> None:
    """Values reaching the head in training are zeroed with this probability, others scaled up."""

    def drop(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        values, *rest = inputs
        return (functional.dropout(values, rate, module.training), *rest)

    head.register_forward_pre_hook(drop)
