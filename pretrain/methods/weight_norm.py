"""Weight normalization: every weight vector is w = g v / |v|, with its length trained separately.

Weight Normalization: A Simple Reparameterization to Accelerate Training of Deep Neural Networks.
T. Salimans, D. P. Kingma, NeurIPS 2016.
Paper: https://arxiv.org/abs/1602.07868, eq. 2
Here as the comparator of weight compander (https://arxiv.org/abs/2306.16993, section II-B).

    w_i = g_i v_i / |v_i|     one g per output unit (original paper, PyTorch), or one per layer

g starts at |w| and v at w; weight compander mentions no data-dependent initialisation.

| setting | original paper | weight compander        | here                                |
|---------|----------------|-------------------------|-------------------------------------|
| per     | output unit    | "vectors of each layer" | channel, or layer                   |
| decay   | -              | not stated              | w: in effect on g; or v: on g and v |

Differences: not torch.nn.utils.parametrizations.weight_norm, because there a unit of length 0 gives
NaN (here g = 0, with any direction v), and because its inverse also resets v, where a method that
only scales w must change g alone. w is no element-wise function of v, so the adaptive rule of
weight compander does not apply: Adam acts on g and v, as in the original paper.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor

from pretrain.bases.reparametrization import Reparametrization, layer_modules
from pretrain.methods.weight_compander import cifar_rows
from pretrain.recipes.recipe import Neutral
from pretrain.training.context import Context
from pretrain.weights.parametrizations import Originals, WeightMap, lay_out, memory_order

PARALLEL = 1e-6
"""Directions whose cosine is within this of 1 are the same."""


def compute_lengths(weight: Tensor, per: str) -> Tensor:
    """Return the norms of the output units (n, 1, ...) or of the whole layer (1, 1, ...)."""
    axes = tuple(range(1 if per == "channel" else 0, weight.ndim))
    return cast("Tensor", torch.linalg.vector_norm(weight, dim=axes, keepdim=True))


def normalize_units(g: Tensor, v: Tensor) -> Tensor:
    """Return g v / |v| per output unit by torch's fused kernel: one on a GPU, in place of five."""
    rows = v.permute(memory_order(v)).reshape(len(v), -1)
    w, _ = torch._weight_norm_interface(rows, g.reshape(-1, 1), 0)
    return lay_out(w.view(-1), v)


class NormalizedMap(WeightMap):
    """The map g v / |v|; per: one g per `channel` or per `layer`."""

    def __init__(self, per: str) -> None:
        super().__init__()
        self.per = per

    def forward(self, *originals: Tensor) -> Tensor:
        g, v = originals
        if v.device.type != "cpu" and self.per == "channel":
            return normalize_units(g, v)
        return v * (g / compute_lengths(v, self.per))

    def right_inverse(self, weight: Tensor) -> Originals:
        g = compute_lengths(weight, self.per)
        return g, torch.where(g == 0, 1, weight)

    def update(self, weight: Tensor, *originals: Tensor) -> Originals:
        g, v = originals
        new_g, new_v = self.right_inverse(weight)
        axes = tuple(range(1 if self.per == "channel" else 0, weight.ndim))
        dot = (weight * v).sum(dim=axes, keepdim=True)
        parallel = dot >= (1 - PARALLEL) * new_g * compute_lengths(v, self.per)
        # a pruned element must become exactly zero, even if the direction hardly changes
        parallel &= ((weight != 0) | (v == 0) | (new_g == 0)).all(dim=axes, keepdim=True)
        unchanged = (weight == self(g, v)).all(dim=axes, keepdim=True)
        return torch.where(unchanged, g, new_g), torch.where(unchanged | parallel, v, new_v)

    def decay(self, weight: Tensor, *originals: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        g, _ = originals
        yield g, g


class WeightNorm(Reparametrization):
    """Settings of weight normalization; per: one g per output unit or per layer."""

    per: Literal["channel", "layer"] = "channel"

    SOURCE: ClassVar = "Weight Normalization (Salimans and Kingma 2016), eq. 2"
    PAPER: ClassVar = cifar_rows("weight_norm", "", {})
    NEUTRAL: ClassVar[Neutral] = (
        "the length of a weight vector is a parameter of its own, so every step differs"
    )

    def maps(self, ctx: Context) -> Iterator[WeightMap]:
        yield from (NormalizedMap(self.per) for _ in layer_modules(ctx))
