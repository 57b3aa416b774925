"""Weights as functions of trained tensors, w = Psi(v), through torch.nn.utils.parametrize.

A map is the module that parametrize registers: `forward` returns w, `right_inverse` the v of a
given w. `update` assigns a new w without moving the elements that did not change, and `decay`
returns the gradient of weight decay on w by the trained tensors.

Everything is plain autograd, so gradients of any order are correct; on two cores it costs 5 % of a
step of ResNet-18 at 64 px. On a GPU one call of an element-wise map computes all weights of a step.
Under an adaptive optimizer a map is `raw`: v then receives the gradient of w, from which the
adaptive step must be computed (see reparametrization.py).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

Originals = tuple[Tensor, ...]
"""Tensors that are trained in place of one weight: (v,), or (g, v) for weight normalization."""


class WeightMap(nn.Module, ABC):
    """The map Psi of one reparametrized weight."""

    @abstractmethod
    def forward(self, *originals: Tensor) -> Tensor:
        """Return the effective weight."""

    @abstractmethod
    def right_inverse(self, weight: Tensor) -> Tensor | Originals:
        """Return trained tensors whose effective weight is `weight`."""

    @abstractmethod
    def update(self, weight: Tensor, *originals: Tensor) -> Originals:
        """Return as `right_inverse`, but leave unchanged elements equal to the bit."""

    @abstractmethod
    def decay(self, weight: Tensor, *originals: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield trained tensors with the gradient of |w|^2 / 2 by them, where it is not zero."""


class Elementwise(WeightMap):
    """Map w = psi(v) for every element; raw: v receives the gradient of w instead of its own."""

    def __init__(self, raw: bool) -> None:
        super().__init__()
        self.raw = raw

    @abstractmethod
    def value(self, v: Tensor) -> Tensor:
        """Return psi(v)."""

    @abstractmethod
    def slope(self, v: Tensor) -> Tensor:
        """Return psi'(v)."""

    def forward(self, *originals: Tensor) -> Tensor:
        (v,) = originals
        # v - v is exactly 0 and passes the gradient through
        return self.value(v.detach()) + (v - v.detach()) if self.raw else self.value(v)

    def update(self, weight: Tensor, *originals: Tensor) -> Originals:
        (v,) = originals
        changed = weight != self.value(v)
        inverse = self.right_inverse(torch.where(changed, weight, 0))
        return (torch.where(changed, cast("Tensor", inverse), v),)

    def decay(self, weight: Tensor, *originals: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        (v,) = originals
        yield v, weight if self.raw else self.slope(v).mul_(weight)


def memory_order(tensor: Tensor) -> list[int]:
    """Return the dimensions of a dense tensor, that with the largest stride first."""
    return sorted(range(tensor.ndim), key=lambda dim: -tensor.stride()[dim])


def lay_out(elements: Tensor, template: Tensor) -> Tensor:
    """Return a view of all elements (n,) in the shape and the memory layout of a dense tensor."""
    order = memory_order(template)
    shape = [template.shape[dim] for dim in order]
    return elements.view(shape).permute(sorted(order, key=order.__getitem__))


def apply_jointly(function: Callable[..., Tensor], *columns: Sequence[Tensor]) -> Iterator[Tensor]:
    """Yield an element-wise function of the tensors of every row, by one call for all rows.

    The tensors of a row have one shape, and the result has the layout of the first.
    """
    orders = [memory_order(tensor) for tensor in columns[0]]
    flat = (
        torch.cat([t.permute(order).reshape(-1) for t, order in zip(column, orders, strict=True)])
        for column in columns
    )
    parts = torch.split(function(*flat), [tensor.numel() for tensor in columns[0]])
    return map(lay_out, parts, columns[0])


def find_map(module: nn.Module, leaf: str = "weight") -> tuple[WeightMap, Originals] | None:
    """Return the map of a weight and its trained tensors; None if the weight has none of ours."""
    if not parametrize.is_parametrized(module, leaf):
        return None
    holder = cast("nn.ModuleDict", module.parametrizations)[leaf]
    mapping = cast("nn.ModuleList", holder)[0]
    if not isinstance(mapping, WeightMap):
        return None
    return mapping, tuple(holder.parameters(recurse=False))


@torch.no_grad()
def assign_weight(module: nn.Module, leaf: str, weight: Tensor) -> None:
    """Make `weight` the effective weight; tensors keep their storage and memory format."""
    mapped = find_map(module, leaf)
    if mapped is None:
        setattr(module, leaf, weight)
        return
    mapping, originals = mapped
    weight = torch.empty_like(originals[-1]).copy_(weight)
    for original, new in zip(originals, mapping.update(weight, *originals), strict=True):
        original.copy_(new)
