"""KELS: at every round start, redraw all weights outside a fixed slim sub-network.

Knowledge Evolution in Neural Networks. A. Taha, A. Shrivastava, L. Davis, CVPR 2021
(kernel-level convolutional-aware splitting).
Paper: https://arxiv.org/abs/2103.05152
Code:  https://github.com/ahmdtaha/knowledge_evolution

    slim part of a kernel:  the first ceil(keep C_out) filters x the first ceil(keep C_in) channels
    round start r > 0:      every other element <- fresh draw

The first layer keeps all inputs, the head all outputs; a depthwise convolution has one input per
filter. After a flattening, a linear layer keeps the inputs that come from kept channels. Biases of
convolutions follow the filters; biases of linear layers and norm layers are untouched.

| setting | paper           | official code   | here |
|---------|-----------------|-----------------|------|
| keep    | split rate 0.5  | split_rate 0.5  | 0.5  |

The slim part is itself a network: with every other weight at zero, the dense network gives
the same outputs (eval mode, batch norm).

Differences: the official code for convolution biases refers to an undefined name and fails; here
they are redrawn. Concatenated channels and grouped convolutions are refused, because their kept
channels are not the first ones. The paper reports no accuracy on TinyImageNet.
"""

import math
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from fsbench.backbones.architectures import RoleMap
from fsbench.core.errors import UsageError
from pretrain.bases import masks
from pretrain.method import RoundMethod
from pretrain.recipes.recipe import Neutral, Recipe
from pretrain.training.context import Context
from pretrain.weights import surgery

SlimSizes = dict[str, tuple[int, int]]
"""Layer -> number of outputs and inputs of its kernel in the slim part, from the first one on."""


def compute_slim_size(keep: float, n: int) -> int:
    """Return ceil(keep n), safe against rounding errors: 0.07 of 100 is 7."""
    return math.ceil(keep * n - 1e-9)


def compute_slim_sizes(model: nn.Module, roles: RoleMap, keep: float) -> SlimSizes:
    """Return every layer's slim part. Raises UsageError for concatenated or grouped channels."""
    sizes: SlimSizes = {}
    outputs = [0]
    for name in roles.layers:
        layer = model.get_submodule(name)
        n_out, n_in = surgery.get_weight(model, f"{name}.weight").shape[:2]
        channels = _input_channels(layer, n_in, outputs)
        if sizes and channels is None:
            raise UsageError(
                f"kels cannot split {name}: its {n_in} inputs are not those of one earlier layer",
                fix="use an architecture without concatenated channels and grouped convolutions",
            )
        inputs = n_in
        if sizes and channels:
            inputs = compute_slim_size(keep, channels) * (n_in // channels)
        sizes[name] = (n_out if name == roles.head else compute_slim_size(keep, n_out), inputs)
        outputs.append(n_out)
    return sizes


def _input_channels(layer: nn.Module, n_in: int, outputs: list[int]) -> int | None:
    """Return the channels behind a layer's inputs, None if unknown; outputs: of earlier layers."""
    if isinstance(layer, nn.Conv2d):
        if layer.groups > 1:
            return 1 if layer.groups == layer.in_channels == layer.out_channels else None
        return n_in if n_in in outputs else None
    return outputs[-1] if outputs[-1] and n_in % outputs[-1] == 0 else None


def build_redraw_masks(model: nn.Module, name: str, n_out: int, n_in: int) -> dict[str, Tensor]:
    """Return the masks of the elements of a layer outside its slim part."""
    layer = model.get_submodule(name)
    weight = torch.ones_like(surgery.get_weight(model, f"{name}.weight"), dtype=torch.bool)
    weight[:n_out, :n_in] = False
    outside = {f"{name}.weight": weight}
    if isinstance(layer, nn.Conv2d) and layer.bias is not None:
        outside[f"{name}.bias"] = torch.arange(len(weight), device=weight.device) >= n_out
    return outside


class Kels(RoundMethod):
    """Settings of KELS; keep: part of every layer's outputs and inputs that is never redrawn."""

    keep: float = Field(0.5, gt=0, le=1)

    SOURCE: ClassVar = "KELS (Taha et al. 2021); code ahmdtaha/knowledge_evolution"
    NEUTRAL: ClassVar[Neutral] = {"keep": 1.0}
    REGIME: ClassVar = {"kels.keep": 0.8}

    def check(self, recipe: Recipe) -> None:
        super().check(recipe)
        compute_slim_sizes(*surgery.build_on_meta(recipe), self.keep)

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round == 0:
            return
        outside = {
            tensor: mask
            for layer, sizes in compute_slim_sizes(ctx.model, ctx.roles, self.keep).items()
            for tensor, mask in build_redraw_masks(ctx.model, layer, *sizes).items()
        }
        masks.refill_masked(ctx, outside, f"outside the slim network of {self.keep:g}")
