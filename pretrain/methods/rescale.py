"""Rescaling: at every round start every layer gets the size back that it had at the start.

"The Impact of Reinitialization", appendix B, Table 5 (5 rounds), and the ablation of appendix E
(methods.md A7). The rescaling step of `lw` alone, on all layers.

    before training:    s_l = |W_l|
    round start r > 0:  W_l <- (s_l / |W_l|) W_l, for every convolution and linear layer l

| setting   | study                  | Niehaus et al. 2024               | here   |
|-----------|------------------------|-----------------------------------|--------|
| statistic | Frobenius norm         | standard deviation of the weights | `norm` |

Nothing else is touched: no re-draw, no bias. A layer whose size is or was zero is left alone and
named in the note. Without biases and norm layers a ReLU network keeps every prediction. No figure
on TinyImageNet was published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor

from pretrain import masks, surgery
from pretrain.events import need_rounds
from pretrain.method import Method, Neutral, Rank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pretrain.context import Context
    from pretrain.recipe import Recipe

Statistic = Literal["norm", "std"]


def size(weight: Tensor, statistic: Statistic) -> float:
    """Frobenius norm or standard deviation (no correction) of a kernel."""
    if statistic == "norm":
        return surgery.norm(weight)
    return float(torch.std(weight.detach().double(), correction=0))


def restore_sizes(
    ctx: Context, sizes: Mapping[str, float], note: str, by: Statistic = "norm"
) -> None:
    """Rewrite the tensors so that they have these sizes; a size of zero is left alone."""
    old = {name: surgery.get_weight(ctx.model, name).detach() for name in sizes}
    now = {name: size(weight, by) for name, weight in old.items()}
    chosen = [name for name in sizes if sizes[name] > 0 and now[name] > 0]
    left = sorted(sizes.keys() - set(chosen))
    note += f"; left alone, of size zero: {', '.join(left)}" if left else ""
    ctx.rewrite({n: old[n] * (sizes[n] / now[n]) for n in chosen}, note)


class Rescale(Method):
    """statistic: what is brought back to its initial value."""

    statistic: Statistic = "norm"

    SOURCE: ClassVar = "reinitialization study, appendix B; Niehaus et al. 2024"
    RANK: ClassVar = Rank.ROUND
    PLAIN_ROUND_0: ClassVar = True
    NEUTRAL: ClassVar[Neutral] = "it always rescales"

    def check(self, recipe: Recipe) -> None:
        need_rounds(self, recipe)

    def setup(self, ctx: Context) -> None:
        weights = masks.kernels(ctx)
        ctx.memory["sizes"] = {name: size(w, self.statistic) for name, w in weights.items()}

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round > 0:
            restore_sizes(ctx, ctx.memory["sizes"], "layers at their initial size", self.statistic)
