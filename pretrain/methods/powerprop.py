"""Powerpropagation: every weight is w = v |v|^(alpha - 1), so large weights move more than small.

Powerpropagation: A sparsity inducing weight reparameterisation. J. Schwarz, S. Jayakumar,
R. Pascanu, P. Latham, Y. W. Teh, NeurIPS 2021.
Paper: https://arxiv.org/abs/2110.00296
Code:  https://github.com/google-deepmind/deepmind-research, powerpropagation/powerpropagation.ipynb
Here as the comparator of weight compander (https://arxiv.org/abs/2306.16993, section IV-A).

    w = sign(v) |v|^alpha     Psi' = alpha |v|^(alpha - 1)     v starts at sign(w) |w|^(1 / alpha)

| setting | official notebook | weight compander | here                                      |
|---------|-------------------|------------------|-------------------------------------------|
| alpha   | 1 to 5            | not stated       | 2                                         |
| decay   | -                 | not stated       | on w, as in weight compander; or on v     |

A weight that is exactly 0 never moves again, because Psi'(0) = 0: methods that set weights to zero
(`imp`, and `dsd` with `fill=zero`) are refused together with this one.

Differences: none known.
"""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from pretrain.bases.reparametrization import (
    ElementwiseReparametrization,
    is_adaptive,
    layer_modules,
)
from pretrain.methods.weight_compander import cifar_rows
from pretrain.recipes.recipe import Neutral
from pretrain.training.context import Context
from pretrain.weights.parametrizations import Elementwise, WeightMap


class PowerMap(Elementwise):
    """The map sign(v) |v|^alpha; its gradient at 0 is 0, or 1 for alpha = 1."""

    def __init__(self, alpha: float, raw: bool) -> None:
        super().__init__(raw)
        self.alpha = alpha

    def value(self, v: Tensor) -> Tensor:
        if self.alpha == 1:
            return v
        if self.alpha == 2:
            return v * v.abs()
        return v.sign() * v.abs().pow(self.alpha)

    def slope(self, v: Tensor) -> Tensor:
        return v.abs().pow_(self.alpha - 1).mul_(self.alpha)

    def right_inverse(self, weight: Tensor) -> Tensor:
        return weight.sign() * weight.abs().pow(1 / self.alpha)


class Powerprop(ElementwiseReparametrization):
    """Settings of powerpropagation; alpha: the power, 1 for plain training."""

    alpha: float = Field(2.0, ge=1)

    SOURCE: ClassVar = "Powerpropagation (Schwarz et al. 2021); Weight Compander, section IV-A"
    PAPER: ClassVar = cifar_rows("powerprop", "", {})
    NEUTRAL: ClassVar[Neutral] = {"alpha": 1.0}

    @property
    def decays(self) -> Literal["w", "v"]:
        return "v" if self.alpha == 1 else self.decay

    def maps(self, ctx: Context) -> Iterator[WeightMap]:
        yield from (
            PowerMap(self.alpha, self.alpha > 1 and is_adaptive(ctx)) for _ in layer_modules(ctx)
        )
