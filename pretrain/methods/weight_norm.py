"""Weight normalization: every weight vector is w = g v / |v|, its length trained apart from v.

Salimans and Kingma 2016, "Weight Normalization", eq. 2; here as weight compander's comparator (its
section II-B; methods.md E5).

    w_i = g_i v_i / |v_i|     one g an output unit (original paper, PyTorch), or one g a layer

g starts at |w| and v at w; no data-dependent start, as weight compander mentions none.

| setting | paper                                              | here                             |
|---------|----------------------------------------------------|----------------------------------|
| per     | unit; weight compander: "vectors of each layer"    | channel, or layer                |
| decay   | not stated by weight compander                     | w: in effect on g; or v: g and v |

Not torch.nn.utils.parametrizations.weight_norm for two reasons: a unit of length 0 gives NaN there
(here g = 0 and v is any direction), and a method that only scales w must change g alone (methods.md
G4), while torch's inverse would also reset v. Psi is no function of single elements, so there is no
adaptive rule: Adam acts on g and v, as in the original paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import torch
from torch import Tensor

from pretrain.method import Neutral
from pretrain.parametrizations import Map, Originals
from pretrain.reparametrization import Reparametrization, layers

if TYPE_CHECKING:
    from pretrain.context import Context

PARALLEL = 1e-6
"""Directions whose cosine is within this of 1 are the same."""


def lengths(weight: Tensor, per: str) -> Tensor:
    """Norms of the output units (n, 1, ...), or of the whole layer (1, 1, ...)."""
    axes = tuple(range(1 if per == "channel" else 0, weight.ndim))
    return cast("Tensor", torch.linalg.vector_norm(weight, dim=axes, keepdim=True))


class Normalized(Map):
    """g v / |v|; per: what has a length of its own."""

    def __init__(self, per: str) -> None:
        super().__init__()
        self.per = per

    def forward(self, *originals: Tensor) -> Tensor:
        g, v = originals
        return v * (g / lengths(v, self.per))

    def right_inverse(self, weight: Tensor) -> Originals:
        g = lengths(weight, self.per)
        return g, torch.where(g == 0, 1, weight)

    def update(self, weight: Tensor, *originals: Tensor) -> Originals:
        g, v = originals
        new_g, new_v = self.right_inverse(weight)
        axes = tuple(range(1 if self.per == "channel" else 0, weight.ndim))
        dot = (weight * v).sum(dim=axes, keepdim=True)
        parallel = dot >= (1 - PARALLEL) * new_g * lengths(v, self.per)
        # a pruned element is zero at the bit, however little it turns the direction
        parallel &= ((weight != 0) | (v == 0) | (new_g == 0)).all(dim=axes, keepdim=True)
        kept = (weight == self(g, v)).all(dim=axes, keepdim=True)
        return torch.where(kept, g, new_g), torch.where(kept | parallel, v, new_v)

    def decay(self, weight: Tensor, *originals: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        g, _ = originals
        yield g, g


class WeightNorm(Reparametrization):
    """per: one g an output unit or one a layer; decay: weight decay on w, or on g and v."""

    per: Literal["channel", "layer"] = "channel"
    decay: Literal["w", "v"] = "w"

    SOURCE: ClassVar = "Weight Normalization (Salimans and Kingma 2016), eq. 2"
    NEUTRAL: ClassVar[Neutral] = (
        "the length of a weight vector is a parameter of its own, so every step differs"
    )

    @property
    def decays(self) -> Literal["w", "v"]:
        return self.decay

    def maps(self, ctx: Context) -> Iterator[Map]:
        yield from (Normalized(self.per) for _ in layers(ctx))
