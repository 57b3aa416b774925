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
The rows on CIFAR follow section IV-A with ResNets of a 3x3 stem, VGG with a 512-512 classifier and
WRN-28-10; the paper names neither these nor the augmentation (here crop and flip), nor a and b of
arsinh and erf (here those of arctan), and it tests the best epoch by a tenth of the training
images, where here the last one is scored. The paper's GPUs, GTX 1080 Ti, have no TF32.

Differences: eq. 5 writes wd w^T w, but its coefficients come from recipes with wd/2, which is used
here. The paper does not constrain a and b; here a learned b keeps |b| >= 1e-3. Near 0 the learning
rate is in effect multiplied by (a/b)^2; the control for that is `normal` with lr (a/b)^2.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from fsbench.core.errors import UsageError
from pretrain.bases.reparametrization import (
    ElementwiseReparametrization,
    is_adaptive,
    iterate_maps,
    layer_modules,
)
from pretrain.recipes.recipe import Neutral, PaperRecipe, PublishedFigure, Recipe
from pretrain.training.context import Context
from pretrain.weights.parametrizations import Elementwise, WeightMap

MARGIN = 1e-3
"""Weights are clamped to (1 - MARGIN) of a bounded range before the inverse is taken."""
SMALLEST_B = 1e-3
"""Lower bound of |b| for a learned b."""

Scalar = float | nn.Parameter


BASE: Mapping[str, object] = {
    "plan.rounds": 1,
    "batch_size": 128,
    "lr": 0.1,
    "schedule": "step",
    "warmup": 0.0,
    "label_smoothing": 0.0,
    "precision": "fp32",
}
CIFAR: Mapping[str, Mapping[str, object]] = {
    "cifar10": {"weight_decay": 1e-4, "milestones": (0.45, 0.68), "gamma": 0.1},
    "cifar100": {"weight_decay": 5e-4, "milestones": (0.3, 0.6, 0.8), "gamma": 0.2},
}
"""Fields that recipes on a source set: the rate falls at 90, 136 or at 60, 120, 160.

VGG has those of CIFAR-100 on both."""
CIFAR_COLUMNS: Mapping[tuple[str, str], tuple[float, float]] = {
    ("cifar10", "resnet18"): (1.0, 0.6),
    ("cifar10", "resnet34"): (0.8, 0.5),
    ("cifar10", "resnet50"): (1.0, 0.6),
    ("cifar100", "resnet18"): (0.6, 0.6),
    ("cifar100", "resnet34"): (0.7, 0.8),
    ("cifar100", "resnet50"): (1.0, 0.8),
    ("cifar10", "vgg16"): (0.7, 0.7),
    ("cifar10", "vgg19"): (0.5, 0.7),
    ("cifar100", "vgg16"): (0.7, 1.0),
    ("cifar100", "vgg19"): (0.7, 0.8),
    ("cifar100", "wrn28_10_dropout"): (0.7, 0.7),
}
"""Source and network -> a and b (Table I; section IV-A1); other methods than these have ResNets."""
CIFAR_ACCURACIES: Mapping[str, tuple[float, ...]] = {
    "weight_compander_control": (
        *(0.9404, 0.9369, 0.9331, 0.7647, 0.7707, 0.7617),
        *(0.9327, 0.9321, 0.7248, 0.7134, 0.8009),
    ),
    "powerprop": (0.9294, 0.9329, 0.9347, 0.7470, 0.7470, 0.7523),
    "weight_norm": (0.9426, 0.9417, 0.9389, 0.7683, 0.7698, 0.7610),
    "weight_compander": (
        *(0.9444, 0.9443, 0.9406, 0.7673, 0.7754, 0.7773),
        *(0.9352, 0.9333, 0.7274, 0.7186, 0.8024),
    ),
    "weight_compander_arsinh": (0.9434, 0.9468, 0.9382, 0.7659, 0.7721, 0.7676),
    "weight_compander_erf": (0.9436, 0.9452, 0.9387, 0.7680, 0.7726, 0.7751),
    "weight_compander_fine": (0.9416, 0.9446, 0.9480),
}
"""Test accuracies of Tables II, III, VI and VII in the order of CIFAR_COLUMNS."""


def compander_row(
    name: str, row: str, accuracy: float, fields: Mapping[str, object]
) -> PaperRecipe:
    """Return the recipe of a row of the tables."""
    figures, fields = (PublishedFigure(accuracy=accuracy),), {**BASE, **fields}
    paper = "Weight Compander"
    return PaperRecipe(name=name, paper=paper, row=row, overrides=fields, figures=figures)


def cifar_rows(method: str, form: str, settings: Mapping[str, object]) -> tuple[PaperRecipe, ...]:
    """Build a method's recipes on CIFAR, e.g. weight_compander_erf_cifar10_resnet18."""
    name = method + form
    table = {"_arsinh": "Table VII", "_erf": "Table VII", "_fine": "Table VI"}.get(form)
    rows = []
    for ((source, network), (a, b)), accuracy in zip(
        CIFAR_COLUMNS.items(), CIFAR_ACCURACIES[name], strict=False
    ):
        chosen = {"a": a, "b": b} if method == "weight_compander" else {}
        printed = table or ("Table II" if source == "cifar10" else "Table III")
        column = {"source": source, "architecture": f"cifar/{network}", "input_size": 32}
        fields = {f"{method}.{field}": value for field, value in {**chosen, **settings}.items()}
        schedule = CIFAR["cifar100" if network.startswith("vgg") else source]
        overrides = {**schedule, **column, "plan.epochs": 200, **fields}
        ending, row = f"_{source}_{network}", f"{printed}, {network}"
        rows.append(compander_row(name + ending, row, accuracy, overrides))
    return tuple(rows)


def tinyimagenet_rows() -> tuple[PaperRecipe, ...]:
    """Build the two recipes of Table IV."""
    fields: dict[str, object] = {
        "architecture": "wc_resnet50",
        "plan.epochs": 300,
        "source_size": 256,
        "input_size": 224,
        "weight_decay": 1e-4,
        "milestones": (0.25, 0.5, 0.75),
    }
    row, function = "Table IV, ResNet-50", "weight_compander.function"
    return (
        compander_row("weight_compander", row, 0.6593, {**fields, function: "arctan"}),
        compander_row("weight_compander_control", row, 0.6508, {**fields, function: "identity"}),
    )


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
            # filled by a kernel: a tensor of a number is a copy to the GPU that the host waits for
            limit = (weight.new_ones(()) * self.a).abs() * (1 - MARGIN) * self.function.bound
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
    decay: Literal["w", "v"] | None = None  # type: ignore[assignment]

    SOURCE: ClassVar = "Weight Compander (Cakaj et al.), sections III and IV"
    NEUTRAL: ClassVar[Neutral] = {"function": "identity"}
    PAPER: ClassVar = (
        *tinyimagenet_rows(),
        *cifar_rows("weight_compander", "", {}),
        *cifar_rows("weight_compander", "_control", {"function": "identity"}),
        *cifar_rows("weight_compander", "_arsinh", {"function": "arsinh"}),
        *cifar_rows("weight_compander", "_erf", {"function": "erf"}),
        *cifar_rows("weight_compander", "_fine", {"learnable": "fine", "a": 0.5, "b": 1.0}),
    )

    @property
    def decays(self) -> Literal["w", "v"]:
        if self.function == "identity":  # w is v: exactly the optimizer's decay
            return "v"
        return self.decay or ("w" if self.learnable == "no" else "v")

    def check(self, recipe: Recipe) -> None:
        super().check(recipe)
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
