"""Weight compander: w = a arctan(v / b) bounds large weights and spreads small ones.

Weight Compander: A Simple Weight Reparameterization for Regularization. R. Cakaj, J. Mehnert,
B. Yang, 2023.
Paper: https://arxiv.org/abs/2306.16993, eq. 1 to 5, sections III-A and III-B; no public code

    arctan    w = a arctan(v/b)   Psi' = a / (b (1 + (v/b)^2))              |w| < a pi/2
    arsinh    w = a arsinh(v/b)   Psi' = a / (b sqrt(1 + (v/b)^2))          unbounded
    erf       w = a erf(v/b)      Psi' = 2 a / (b sqrt pi) exp(-(v/b)^2)    |w| < a
    identity  w = v               plain training: the control

v starts at Psi^-1 of the usual initial weight. A weight outside the range, at the start or written
later by another method, is clamped to (1 - 1e-3) of the bound, counted and logged.

| setting   | paper                                              | here                            |
|-----------|----------------------------------------------------|---------------------------------|
| a, b      | ResNet-50 on TinyImageNet .7, .8; grid .5 to 1     | .7, .8                          |
| learnable | fine (one a, b per layer; start .5, 1) or coarse   | no; `a`, `b` are start values   |
|           | (one pair per network)                             |                                 |
| decay     | fixed a, b: on w; learnable: on v, never on a, b   | the same (null), or `w` or `v`  |

The rows `paper/weight_compander...` follow section IV-B: images resized from 64 to 256 px, random
windows of 224 px and flips, the centre for validation, kaiming-uniform weights (`wc_resnet50`).

Differences: eq. 5 writes wd w^T w, but its coefficients come from recipes with wd/2, which is used
here. The paper does not constrain a and b; here a learned b keeps |b| >= 1e-3. Near 0 the learning
rate is in effect multiplied by (a/b)^2; the control for that is `normal` with lr (a/b)^2.
"""

import math
from collections.abc import Callable, Iterator
from typing import ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from fsbench.core.errors import UsageError
from pretrain.recipes.recipe import Neutral, PaperRecipe, PublishedFigure, Recipe
from pretrain.training.context import Context
from pretrain.weights.parametrizations import Elementwise, WeightMap
from pretrain.weights.reparametrization import (
    ElementwiseReparametrization,
    is_adaptive,
    iterate_maps,
    layer_modules,
)

MARGIN = 1e-3
"""Weights are clamped to (1 - MARGIN) of a bounded range before the inverse is taken."""
SMALLEST_B = 1e-3
"""Lower bound of |b| for a learned b."""

Scalar = float | nn.Parameter


class CompandingFunction(NamedTuple):
    """psi of w = a psi(x), x = v / b; slope may overwrite x; |psi| < bound."""

    psi: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    inverse: Callable[[Tensor], Tensor]
    bound: float


FUNCTIONS = {
    "arctan": CompandingFunction(
        torch.atan, lambda x: x.square_().add_(1).reciprocal_(), torch.tan, math.pi / 2
    ),
    "arsinh": CompandingFunction(
        torch.asinh, lambda x: x.square_().add_(1).rsqrt_(), torch.sinh, math.inf
    ),
    "erf": CompandingFunction(
        torch.erf,
        lambda x: x.square_().neg_().exp_().mul_(2 / math.sqrt(math.pi)),
        torch.erfinv,
        1.0,
    ),
}


class Compander(Elementwise):
    """The map a psi(v / b); a and b: numbers, or parameters that may be shared.

    clamped: number of weights that were outside the range.
    """

    clamped: Tensor

    def __init__(
        self, function: CompandingFunction, a: Scalar, b: Scalar, raw: bool, device: torch.device
    ) -> None:
        super().__init__(raw)
        self.function, self.a, self.b = function, a, b
        self.register_buffer("clamped", torch.zeros((), dtype=torch.int64, device=device))

    def value(self, v: Tensor) -> Tensor:
        return self.function.psi(v / self.b) * self.a

    def slope(self, v: Tensor) -> Tensor:
        with torch.no_grad():
            return self.function.slope(v / self.b).mul_(self.a / self.b)

    def right_inverse(self, weight: Tensor) -> Tensor:
        if self.function.bound < math.inf:
            limit = torch.as_tensor(self.a, dtype=weight.dtype, device=weight.device).abs()
            limit = limit * (1 - MARGIN) * self.function.bound
            self.clamped += (weight.abs() > limit).sum()
            weight = weight.clamp(-limit, limit)
        return self.b * self.function.inverse(weight / self.a)


class IdentityMap(Elementwise):
    """The map w = v: the trained tensor is the weight itself."""

    def value(self, v: Tensor) -> Tensor:
        return v

    def slope(self, v: Tensor) -> Tensor:
        return torch.ones_like(v)

    def right_inverse(self, weight: Tensor) -> Tensor:
        return weight


class WeightCompander(ElementwiseReparametrization):
    """Settings of weight compander; decay: on w or v, null: w if a and b are fixed, else v."""

    function: Literal["arctan", "arsinh", "erf", "identity"] = "arctan"
    a: float = Field(0.7, gt=0, description="scale of the weights; start value if learnable")
    b: float = Field(0.8, gt=0, description="scale of v; start value if learnable")
    learnable: Literal["no", "fine", "coarse"] = "no"
    decay: Literal["w", "v"] | None = None

    SOURCE: ClassVar = "Weight Compander (Cakaj et al.), sections III and IV"
    NEUTRAL: ClassVar[Neutral] = {"function": "identity"}
    PAPER: ClassVar = tuple(
        PaperRecipe(
            name=name,
            paper="Weight Compander",
            row="Table IV, ResNet-50",
            overrides={
                "architecture": "wc_resnet50",
                "plan.rounds": 1,
                "plan.epochs": 300,
                "source_size": 256,
                "input_size": 224,
                "batch_size": 128,
                "lr": 0.1,
                "weight_decay": 1e-4,
                "schedule": "step",
                "milestones": (0.25, 0.5, 0.75),
                "warmup": 0.0,
                "label_smoothing": 0.0,
                "weight_compander.function": function,
            },
            figures=(PublishedFigure(accuracy=accuracy),),
        )
        for name, function, accuracy in (
            ("weight_compander", "arctan", 0.6593),
            ("weight_compander_control", "identity", 0.6508),
        )
    )

    @property
    def decays(self) -> Literal["w", "v"]:
        if self.function == "identity":  # w is v: exactly the optimizer's decay
            return "v"
        return self.decay or ("w" if self.learnable == "no" else "v")

    def check(self, recipe: Recipe) -> None:
        if self.function == "identity" and self.learnable != "no":
            raise UsageError(
                "weight_compander: the identity has no a and b to learn",
                fix="set weight_compander.learnable=no, or choose arctan, arsinh or erf",
            )

    def maps(self, ctx: Context) -> Iterator[WeightMap]:
        if self.function == "identity":
            yield from (IdentityMap(raw=False) for _ in layer_modules(ctx))
            return

        def pair() -> tuple[Scalar, Scalar]:
            a, b = (nn.Parameter(torch.tensor(v, device=ctx.device)) for v in (self.a, self.b))
            return a, b

        function, raw = FUNCTIONS[self.function], is_adaptive(ctx)
        shared = pair() if self.learnable == "coarse" else (self.a, self.b)
        for _ in layer_modules(ctx):
            a, b = pair() if self.learnable == "fine" else shared
            yield Compander(function, a, b, raw, ctx.device)

    @torch.no_grad()
    def after_step(self, ctx: Context) -> None:
        super().after_step(ctx)
        if self.learnable != "no":
            for _, mapping, _ in iterate_maps(ctx):
                for b in (p for n, p in mapping.named_parameters() if n == "b"):
                    b.copy_(torch.copysign(b.abs().clamp(min=SMALLEST_B), b))
