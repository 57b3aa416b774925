"""Rescaling: at every round start, rescale every layer to the norm it had before training.

The Impact of Reinitialization on Generalization in Convolutional Neural Networks.
I. Alabdulmohsin, H. Maennel, D. Keysers, 2021.
Paper: https://arxiv.org/abs/2109.00267, appendix B, Table 5 (5 rounds), and the ablation of
appendix E; no public code
Related: Weight Rescaling: Applying Initialization Strategies During Training. L. Niehaus,
U. Krumnack, G. Heidemann, Swedish AI Society 2024.

    before training:    s_l = |W_l|                              (Frobenius norm)
    round start r > 0:  W_l <- (s_l / |W_l|) W_l, for every convolution and linear layer l

| setting   | paper          | Niehaus et al.                    | official code | here   |
|-----------|----------------|-----------------------------------|---------------|--------|
| statistic | Frobenius norm | standard deviation of the weights | none          | `norm` |

This is the rescaling step of `lw` on all layers. Biases and norm layers are untouched. A layer
whose norm is or was zero is skipped and named in the log. Without biases and norm layers, a ReLU
network keeps every prediction.

Differences: none known; the paper reports no accuracy on TinyImageNet.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal

import torch
from torch import Tensor

from pretrain.bases import masks
from pretrain.method import RoundMethod
from pretrain.recipes.recipe import Neutral
from pretrain.training.context import Context
from pretrain.weights import surgery

Statistic = Literal["norm", "std"]


def measure_size(weight: Tensor, statistic: Statistic = "norm") -> float:
    """Return the Frobenius norm or the standard deviation (no correction) of a kernel."""
    if statistic == "norm":
        return float(torch.linalg.vector_norm(weight.detach(), dtype=torch.float64))
    return float(torch.std(weight.detach().double(), correction=0))


def restore_sizes(
    ctx: Context, sizes: Mapping[str, float], note: str, by: Statistic = "norm"
) -> None:
    """Rescale the tensors to these sizes; skip a tensor of size zero, then or now."""
    old = {name: surgery.get_weight(ctx.model, name).detach() for name in sizes}
    current = {name: measure_size(weight, by) for name, weight in old.items()}
    scalable = [name for name in sizes if sizes[name] > 0 and current[name] > 0]
    skipped = sorted(sizes.keys() - set(scalable))
    note += f"; skipped, size zero: {', '.join(skipped)}" if skipped else ""
    ctx.rewrite({n: old[n] * (sizes[n] / current[n]) for n in scalable}, note)


class Rescale(RoundMethod):
    """Settings of rescaling. statistic: what is restored to its initial value."""

    statistic: Statistic = "norm"

    SOURCE: ClassVar = "reinitialization study, appendix B; Niehaus et al. 2024"
    NEUTRAL: ClassVar[Neutral] = "it always rescales"

    def setup(self, ctx: Context) -> None:
        weights = masks.effective_kernels(ctx)
        ctx.memory["sizes"] = {name: measure_size(w, self.statistic) for name, w in weights.items()}

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round > 0:
            restore_sizes(ctx, ctx.memory["sizes"], "layers at their initial size", self.statistic)
