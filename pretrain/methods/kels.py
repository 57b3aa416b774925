"""KELS: at every round start all but a fixed slim sub-network goes back to random.

Kernel-level convolutional-aware splitting: Taha et al. 2021, "Knowledge Evolution in Neural
Networks", code ahmdtaha/knowledge_evolution (methods.md A4b).

    kept of a kernel:   the first ceil(keep C_out) filters x the first ceil(keep C_in) channels
    round start r > 0:  every other element <- fresh draw

The first layer keeps all inputs, the head all outputs, a depthwise convolution has one input a
filter. After a flattening, a linear layer keeps the inputs that come from kept channels. Biases of
convolutions follow the filters; biases of linear layers and norm layers are untouched.

| setting | Knowledge Evolution | here |
|---------|---------------------|------|
| keep    | split_rate 0.5      | 0.5  |

The kept part is itself a network, `slim`: with everything else at zero, the dense net gives its
outputs (eval mode, batch norm). The official re-draw of convolution biases refers to a name that
does not exist and never ran; ours does. Concatenated channels and grouped convolutions are refused:
there the kept channels are no prefix. No figure on TinyImageNet was published.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from fsbench.errors import UsageError
from pretrain import masks, surgery
from pretrain.blueprint import blueprint
from pretrain.events import need_rounds
from pretrain.method import Method, Neutral, Rank

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fsbench.backbones.architectures import RoleMap
    from pretrain.context import Context
    from pretrain.recipe import Recipe

Kept = dict[str, tuple[int, int]]
"""Layer -> how many outputs and inputs of its kernel are kept, from the first one on."""


def part(keep: float, n: int) -> int:
    """ceil(keep n), without gaining one by rounding: 0.07 of 100 is 7."""
    return math.ceil(keep * n - 1e-9)


def kept(model: nn.Module, roles: RoleMap, keep: float) -> Kept:
    """The slim part of every layer. Raises UsageError for concatenated or grouped channels."""
    found: Kept = {}
    outputs = [0]
    for name in roles.layers:
        layer = model.get_submodule(name)
        n_out, n_in = surgery.get_weight(model, f"{name}.weight").shape[:2]
        own = _channels(layer, n_in, outputs)
        if found and own is None:
            raise UsageError(
                f"kels cannot split {name}: its {n_in} inputs are not those of one earlier layer",
                fix="use an architecture without concatenated channels and grouped convolutions",
            )
        inputs = part(keep, own) * (n_in // own) if found and own else n_in
        found[name] = (n_out if name == roles.head else part(keep, n_out), inputs)
        outputs.append(n_out)
    return found


def _channels(layer: nn.Module, n_in: int, outputs: list[int]) -> int | None:
    """Channels that the inputs of a layer come from; None where that is unknown.

    outputs: channels of the layers before it.
    """
    if isinstance(layer, nn.Conv2d):
        if layer.groups > 1:
            return 1 if layer.groups == layer.in_channels == layer.out_channels else None
        return n_in if n_in in outputs else None
    return outputs[-1] if outputs[-1] and n_in % outputs[-1] == 0 else None


def outside(model: nn.Module, name: str, n_out: int, n_in: int) -> dict[str, Tensor]:
    """Masks of what is re-drawn in a layer."""
    layer = model.get_submodule(name)
    weight = torch.ones_like(surgery.get_weight(model, f"{name}.weight"), dtype=torch.bool)
    weight[:n_out, :n_in] = False
    taken = {f"{name}.weight": weight}
    if isinstance(layer, nn.Conv2d) and layer.bias is not None:
        taken[f"{name}.bias"] = torch.arange(len(weight), device=weight.device) >= n_out
    return taken


def slim(weights: Mapping[str, Tensor], found: Kept, keep: float) -> dict[str, Tensor]:
    """The kept part of a state dict of the plain network, as a state dict of the slim one."""
    small = {}
    for name, value in weights.items():
        owner = name.rpartition(".")[0]
        n_out, n_in = found.get(owner, (0, 0))
        if owner in found:
            small[name] = value[:n_out, :n_in] if value.ndim > 1 else value[:n_out]
        else:
            small[name] = value[: part(keep, len(value))] if value.ndim else value
    return small


class Kels(Method):
    """keep: part of the outputs and of the inputs of every layer that is never re-drawn."""

    keep: float = Field(0.5, gt=0, le=1)

    SOURCE: ClassVar = "KELS (Taha et al. 2021); code ahmdtaha/knowledge_evolution"
    RANK: ClassVar = Rank.ROUND
    PLAIN_ROUND_0: ClassVar = True
    NEUTRAL: ClassVar[Neutral] = {"keep": 1.0}

    def check(self, recipe: Recipe) -> None:
        need_rounds(self, recipe)
        kept(*blueprint(recipe), self.keep)

    def round_start(self, ctx: Context) -> None:
        if ctx.clock.round == 0:
            return
        taken = {
            tensor: mask
            for layer, sizes in kept(ctx.model, ctx.roles, self.keep).items()
            for tensor, mask in outside(ctx.model, layer, *sizes).items()
        }
        masks.refill(ctx, taken, f"outside the slim network of {self.keep:g}")
