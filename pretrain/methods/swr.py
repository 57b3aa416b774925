"""Soft weight rescaling: after every step each layer's norm is drawn towards its initial value.

"Soft Weight Rescaling", Algorithm 1 (methods.md B6); official code
CILAB-RL-TEAM/soft-weight-rescaling.

    n_l = |W_l| at the start; after every step, in forward order, C = 1 at first:
    c_l = (lam n_l + (1 - lam) |W_l|) / |W_l|
    C   = c_l C  after the last norm layer k (everywhere without norm layers), else c_l
    W_l <- c_l W_l,    b_l <- C b_l

Layers are convolutions, linear and norm layers (scale as W, shift as b). The network then computes
a multiple of what it computed: exactly so for chains of layers with ReLU and pooling, under norm
layers in training mode. Residual branches are scaled apart, so there it holds only roughly.

| setting             | paper                | code                 | here                         |
|---------------------|----------------------|----------------------|------------------------------|
| lambda_f, lambda_c  | 1e-4 .. 1            | swapped in CNN(-BN)  | 0.01, 0.01                   |
| product of c starts | at k - 1             | at k - 1             | at k; paper_literal: k - 1   |
| when                | after the step       | before the next one  | after the step               |
| running statistics  | left alone           | left alone           | option scale_running_stats   |

Differs from the paper: the start of the product, where the printed rule breaks its own theorem; the
official code swaps the lambdas in its CNNs. A layer of norm zero, then or now, is left alone: it
would stay zero for good. The rule is not multiplied by the learning rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor

from fsbench.errors import UsageError
from pretrain import scaling, surgery, swr_study
from pretrain.method import Method, Neutral, Rank

if TYPE_CHECKING:
    from pretrain.context import Context


def weights(ctx: Context) -> list[Tensor]:
    """Effective weights of all layers, norm layers' scales included, in forward order."""
    names = (f"{layer}.weight" for layer in ctx.roles.weighted)
    plain = ctx.parameters
    return [plain[n] if n in plain else surgery.get_weight(ctx.model, n) for n in names]


def biases(ctx: Context) -> dict[int, str]:
    """Position of a layer -> name of its bias, where it has one."""
    names = enumerate(f"{layer}.bias" for layer in ctx.roles.weighted)
    return {i: name for i, name in names if name in ctx.parameters}


def norm_positions(ctx: Context) -> list[int]:
    """Positions of the norm layers among all layers."""
    normal = set(ctx.roles.norms)
    return [i for i, name in enumerate(ctx.roles.weighted) if name in normal]


class Swr(Method):
    """lambda_f, lambda_c: strength a step for the feature extractor and the fully-connected layers,
    0 off, 1 pins the norms; lam: sets both; paper_literal: the bias rule as printed;
    scale_running_stats: keep batch norm's statistics in step, chains only; allow_tied: accept
    shared weights, scaled once, for which the bias rule is undefined.
    """

    lam: float | None = Field(None, ge=0, le=1)
    lambda_f: float = Field(0.01, ge=0, le=1)
    lambda_c: float = Field(0.01, ge=0, le=1)
    paper_literal: bool = False
    scale_running_stats: bool = False
    allow_tied: bool = False

    SOURCE: ClassVar = (
        "Soft Weight Rescaling, Algorithm 1; code CILAB-RL-TEAM/soft-weight-rescaling"
    )
    RANK: ClassVar = Rank.STEP
    NEUTRAL: ClassVar[Neutral] = {"lam": 0.0}
    PAPER: ClassVar = swr_study.rows("swr", 0.4348, 0.5221)

    @model_validator(mode="before")
    @classmethod
    def _set_both(cls, settings: dict[str, object]) -> dict[str, object]:
        lam = settings.get("lam")
        both = {} if lam is None else {"lambda_f": lam, "lambda_c": lam}
        return {**settings, **both, "lam": None}

    def setup(self, ctx: Context) -> None:
        """Record the norms. Raises UsageError for a network that the rule is not defined for."""
        self.refuse(ctx)
        classifier = set(ctx.roles.fully_connected)
        now = scaling.norms(weights(ctx))
        lam = [
            self.lambda_c if name in classifier else self.lambda_f for name in ctx.roles.weighted
        ]
        ctx.memory.update(norms=now, lambdas=now.new_tensor(lam))

    def refuse(self, ctx: Context) -> None:
        """The reasons for which `setup` raises."""
        roles, name = ctx.roles, ctx.recipe.architecture
        if not set(roles.layers) <= set(roles.weighted):
            raise UsageError(
                f"{self.name} needs the norm layers of {name}, which its roles do not name",
                fix="give its RoleMap `weighted=weighted_names(model)`",
            )
        tied = scaling.tied(ctx.model)
        if tied and not self.allow_tied:
            raise UsageError(
                f"{self.name} has no bias rule for shared weights: {', '.join(tied)}",
                fix=f"--set {self.name}.allow_tied=true scales them once",
            )
        tracked = any(scaling.has(ctx.model, f"{norm}.running_mean") for norm in roles.norms)
        if self.scale_running_stats and not (roles.chain and tracked):
            raise UsageError(
                f"{self.name}.scale_running_stats needs a chain of layers with batch norm, which"
                f" {name} is not",
                fix="leave it off, or use cnn_bn or swr_vgg16",
            )

    @torch.no_grad()
    def after_step(self, ctx: Context) -> None:
        names, normal = ctx.roles.weighted, norm_positions(ctx)
        now = scaling.norms(weights(ctx))
        c = scaling.coefficients(now, ctx.memory["norms"], ctx.memory["lambdas"])
        bias = scaling.bias_factors(c, normal[-1] if normal else None, self.paper_literal)
        if self.scale_running_stats:
            scale_statistics(ctx, c, bias, normal)
        factors = {f"{name}.weight": c[i] for i, name in enumerate(names)}
        factors |= {name: bias[i] for i, name in biases(ctx).items()}
        scaling.multiply(ctx.model, factors, ctx.parameters)

    def rewritten(self, ctx: Context, names: tuple[str, ...]) -> None:
        """A layer that another method rewrote is drawn to its new norm (methods.md G4)."""
        chosen = set(names)
        for i, name in enumerate(ctx.roles.weighted):
            if f"{name}.weight" in chosen:
                ctx.memory["norms"][i] = scaling.norms([weights(ctx)[i]])[0]


def scale_statistics(ctx: Context, c: Tensor, bias: Tensor, normal: list[int]) -> None:
    """Running mean and variance of the scaled inputs of the norm layers, before biases are scaled.

    An input W x + b becomes q W x + s b: its mean q mean + (s - q) b, its variance q^2 variance.
    """
    own = biases(ctx)
    for at, q in scaling.input_scales(c, normal).items():
        layer = ctx.roles.weighted[at]
        if not scaling.has(ctx.model, f"{layer}.running_mean"):
            continue
        mean = surgery.get_weight(ctx.model, f"{layer}.running_mean").mul_(q)
        surgery.get_weight(ctx.model, f"{layer}.running_var").mul_(q * q)
        if at - 1 in own:
            mean += (bias[at - 1] - q) * surgery.get_weight(ctx.model, own[at - 1])
