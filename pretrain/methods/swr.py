"""Soft weight rescaling (SWR): after every step, pull the norm of each layer to its initial value.

Recovering Plasticity of Neural Networks via Soft Weight Rescaling. S. Oh, S. Park, I. Han,
K.-J. Kim, 2025.
Paper: https://arxiv.org/abs/2507.04683, Algorithm 1
Code:  https://github.com/CILAB-RL-TEAM/soft-weight-rescaling, src/common/interventions.py

    n_l = |W_l| at the start; after every step, in forward order, C = 1 at first:
    c_l = (lam n_l + (1 - lam) |W_l|) / |W_l|
    C   = c_l C  after the last norm layer k (everywhere without norm layers), else c_l
    W_l <- c_l W_l,    b_l <- C b_l

Layers are convolutions, linear and norm layers (scale as W, shift as b). The network then computes
a multiple of what it computed before. This is exact for chains of layers with ReLU and pooling, and
with norm layers in training mode; it is approximate for residual networks, whose branches are
scaled separately.

| setting             | paper                | official code        | here                         |
|---------------------|----------------------|----------------------|------------------------------|
| lambda_f, lambda_c  | 1e-4 .. 1            | swapped in CNN(-BN)  | 0.01, 0.01                   |
| first factor of C   | c of layer k - 1     | c of layer k - 1     | c of k; paper_literal: k - 1 |
| time of the call    | after the step       | before the next one  | after the step               |
| running statistics  | left alone           | left alone           | option scale_running_stats   |

Differences: the printed product C starts one layer too early (l >= k), which breaks the paper's
Theorem 1; here its first factor is that of layer k. The rows `paper/swr...` follow the printed rule
(`paper_literal`), as does the code that made their figures; other recipes have the corrected one.
The official code swaps the two lambdas in its CNNs. A layer whose norm is or was zero is skipped,
because the rule would pull it to zero for good. The rule does not depend on the learning rate.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from fsbench.core.errors import UsageError
from pretrain.method import Method
from pretrain.recipes import swr_study
from pretrain.recipes.recipe import ActingOrder, Neutral
from pretrain.training.context import Context
from pretrain.weights import surgery
from pretrain.weights.surgery import frobenius_norms, has_tensor, tied_names


def get_layer_weights(ctx: Context) -> list[Tensor]:
    """Return the effective weights of all layers, norm scales included, in forward order."""
    names = (f"{layer}.weight" for layer in ctx.roles.weighted)
    plain = ctx.parameters
    return [plain[n] if n in plain else surgery.get_weight(ctx.model, n) for n in names]


def get_bias_names(ctx: Context) -> dict[int, str]:
    """Return the name of the bias by position of the layer, for layers that have one."""
    names = enumerate(f"{layer}.bias" for layer in ctx.roles.weighted)
    return {i: name for i, name in names if name in ctx.parameters}


def rescaling_coefficients(now: Tensor, target: Tensor, lam: Tensor) -> Tensor:
    """Return c (L,) with c |W| = lam target + (1 - lam) |W|; 1 where a norm or a target is zero.

    A target of zero (a zero-initialized residual scale) would switch its layer off for good.
    """
    c = lam * target / now + (1 - lam)
    return torch.where((now > 0) & (target > 0), c, torch.ones_like(c))


def bias_factors(c: Tensor, last_norm: int | None, literal: bool = False) -> Tensor:
    """Return the factors (L,) of biases: products of c from the last norm layer k on, c before it.

    last_norm: k, counted from 0; None for a network without norm layers. literal: Algorithm 1 as
    printed, which starts one layer early, so that the shift of norm k gets c_(k-1) c_k and
    proportionality fails.
    """
    if last_norm is None:
        return c.cumprod(0)
    tail = c[last_norm:].cumprod(0)
    early = c[last_norm - 1] if literal and last_norm > 0 else 1
    return torch.cat([c[:last_norm], tail * early])


def input_scales(c: Tensor, norm_layers: Sequence[int]) -> dict[int, Tensor]:
    """Return the factor by which the input of every norm layer of a chain has changed."""
    starts = [0, *norm_layers]
    return {at: c[start:at].prod() for start, at in zip(starts, norm_layers, strict=False)}


@torch.no_grad()
def multiply_tensors(
    model: nn.Module, factors: Mapping[str, Tensor], parameters: Mapping[str, Tensor] | None = None
) -> None:
    """Multiply effective tensors by a number each; a tensor with two names by the first only.

    parameters: plain parameters by name, if the caller has them; it saves walking the model.
    """
    plain: dict[int, tuple[Tensor, Tensor]] = {}
    for name, factor in factors.items():
        tensor = (parameters or {}).get(name)
        if tensor is None:
            tensor = surgery.get_weight(model, name)
            if surgery.trained_names(model, name) != (name,):
                surgery.set_weight(model, name, tensor * factor)
                continue
        plain.setdefault(id(tensor), (tensor, factor))
    if plain:
        surgery.scale_tensors(*zip(*plain.values(), strict=True))


class Swr(Method):
    """Settings of soft weight rescaling.

    lambda_f, lambda_c: strength per step for the feature extractor and the fully-connected layers,
    0: off, 1: norms stay constant; lam: sets both; paper_literal: the bias rule as printed;
    scale_running_stats: also scale batch norm's running statistics, chains only; allow_tied: accept
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
    RANK: ClassVar = ActingOrder.STEP
    NEUTRAL: ClassVar[Neutral] = {"lam": 0.0}
    REGIME: ClassVar = {"swr.lambda_f": 0.1, "swr.lambda_c": 0.1}
    PAPER: ClassVar = swr_study.paper_rows("swr")

    @model_validator(mode="before")
    @classmethod
    def _set_both(cls, settings: dict[str, object]) -> dict[str, object]:
        lam = settings.get("lam")
        both = {} if lam is None else {"lambda_f": lam, "lambda_c": lam}
        return {**settings, **both, "lam": None}

    def setup(self, ctx: Context) -> None:
        """Record the norms. Raises UsageError for a network for which the rule is not defined."""
        self.check_network(ctx)
        classifier = set(ctx.roles.fully_connected)
        norms = frobenius_norms(get_layer_weights(ctx))
        lam = [
            self.lambda_c if name in classifier else self.lambda_f for name in ctx.roles.weighted
        ]
        ctx.memory.update(norms=norms, lambdas=norms.new_tensor(lam))

    def check_network(self, ctx: Context) -> None:
        """Raise UsageError for a network for which the rule is not defined."""
        roles, name = ctx.roles, ctx.recipe.architecture
        if not set(roles.layers) <= set(roles.weighted):
            raise UsageError(
                f"{self.name} needs the norm layers of {name}, which its roles do not name",
                fix="make its RoleMap by RoleMap.of(model, ...)",
            )
        tied = tied_names(ctx.model)
        if tied and not self.allow_tied:
            raise UsageError(
                f"{self.name} has no bias rule for shared weights: {', '.join(tied)}",
                fix=f"--set {self.name}.allow_tied=true scales them once",
            )
        tracked = any(has_tensor(ctx.model, f"{norm}.running_mean") for norm in roles.norms)
        if self.scale_running_stats and not (roles.chain and tracked):
            raise UsageError(
                f"{self.name}.scale_running_stats needs a chain of layers with batch norm, which"
                f" {name} is not",
                fix="leave it off, or use cnn_bn or swr_vgg16",
            )

    @torch.no_grad()
    def after_step(self, ctx: Context) -> None:
        names = ctx.roles.weighted
        norms = [i for i, name in enumerate(names) if name in ctx.roles.norms]
        sizes = frobenius_norms(get_layer_weights(ctx))
        c = rescaling_coefficients(sizes, ctx.memory["norms"], ctx.memory["lambdas"])
        bias = bias_factors(c, norms[-1] if norms else None, self.paper_literal)
        if self.scale_running_stats:
            scale_statistics(ctx, c, bias, norms)
        factors = {f"{name}.weight": c[i] for i, name in enumerate(names)}
        factors |= {name: bias[i] for i, name in get_bias_names(ctx).items()}
        multiply_tensors(ctx.model, factors, ctx.parameters)

    def rewritten(self, ctx: Context, names: tuple[str, ...]) -> None:
        """Make the new norm of a layer that another method rewrote its target."""
        rewritten = set(names)
        for i, name in enumerate(ctx.roles.weighted):
            if f"{name}.weight" in rewritten:
                ctx.memory["norms"][i] = frobenius_norms([get_layer_weights(ctx)[i]])[0]


def scale_statistics(ctx: Context, c: Tensor, bias: Tensor, norms: list[int]) -> None:
    """Scale the running statistics of the norm layers as their inputs; call before scaling biases.

    An input W x + b becomes q W x + s b: its mean q mean + (s - q) b, its variance q^2 variance.
    """
    names = get_bias_names(ctx)
    for at, q in input_scales(c, norms).items():
        layer = ctx.roles.weighted[at]
        if not has_tensor(ctx.model, f"{layer}.running_mean"):
            continue
        mean = surgery.get_weight(ctx.model, f"{layer}.running_mean").mul_(q)
        surgery.get_weight(ctx.model, f"{layer}.running_var").mul_(q * q)
        if at - 1 in names:
            mean += (bias[at - 1] - q) * surgery.get_weight(ctx.model, names[at - 1])
