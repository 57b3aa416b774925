"""Accuracy on the source's validation split, without leaving a trace in the model or a stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from fsbench.core.distributed import ALONE, Ranks
from pretrain.training.batches import Normalise, in_memory

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context

PIXELS, FEWEST = 512_000, 32
"""Of the validation images of a forward pass: 500 of 32 px, 125 of 64 px, and never fewer than 32.

Validation then takes the same memory at 32 px and at 64 px.
"""


def autocast(recipe: Recipe, device: torch.device) -> AbstractContextManager[object]:
    """bfloat16 autocast where the recipe wants it."""
    if recipe.precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def frozen_modules(model: nn.Module) -> list[str]:
    """Names of the modules that are in eval mode."""
    return [name for name, module in model.named_modules() if not module.training]


def freeze_modules(model: nn.Module, names: list[str]) -> None:
    """Training mode everywhere but in these modules."""
    for name, module in model.named_modules():
        module.training = name not in names


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode inside; afterwards every module has the mode that it had."""
    frozen = frozen_modules(model)
    model.eval()
    try:
        yield
    finally:
        freeze_modules(model, frozen)


class Validation:
    """The validation split on the device; ranks take turns at its blocks."""

    column = "val_accuracy"

    def __init__(
        self,
        recipe: Recipe,
        source: SourceDataset,
        device: torch.device,
        ranks: Ranks = ALONE,
    ) -> None:
        self.recipe, self.device, self.ranks = recipe, device, ranks
        self.images, self.labels = in_memory(source.val, device)
        self.normalise = Normalise(source, device, recipe.channels_last)

    def measure(self, ctx: Context) -> float:
        """The accuracy of the run as it stands."""
        return self.accuracy(ctx.model)

    @torch.no_grad()
    def accuracy(self, model: nn.Module) -> float:
        """Fraction of the validation images whose largest logit is their label's."""
        right = torch.zeros((), dtype=torch.int64, device=self.device)
        with evaluating(model), autocast(self.recipe, self.device):
            size = max(FEWEST, PIXELS // self.recipe.input_size**2)
            every = range(0, len(self.labels), size)
            for start in every[self.ranks.rank :: self.ranks.size]:
                block = slice(start, start + size)
                logits: Tensor = model(self.normalise(self.images[block]))
                right += (logits.argmax(dim=1) == self.labels[block]).sum()
        return self.ranks.total(int(right), self.device) / len(self.labels)
