"""Accuracy on the source's validation split, without leaving a trace in the model or a stream."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fsbench.core.distributed import ALONE, Ranks
from pretrain.training.batches import InputNormalizer, load_split

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context

PIXELS, MIN_IMAGES = 512_000, 32
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
def eval_mode(model: nn.Module) -> Iterator[None]:
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
        self.images, self.labels = load_split(source.val, device)
        self.normalise = InputNormalizer(source, device, recipe.channels_last)

    def measure(self, ctx: Context) -> float:
        """The accuracy of the run as it stands."""
        return self.accuracy(ctx.model)

    @torch.no_grad()
    def accuracy(self, model: nn.Module) -> float:
        """Fraction of the validation images whose largest logit is their label's."""
        right = torch.zeros((), dtype=torch.int64, device=self.device)
        with eval_mode(model), autocast(self.recipe, self.device):
            size = max(MIN_IMAGES, PIXELS // self.recipe.input_size**2)
            every = range(0, len(self.labels), size)
            for start in every[self.ranks.rank :: self.ranks.size]:
                block = slice(start, start + size)
                logits: Tensor = model(self.normalise(self.images[block]))
                right += (logits.argmax(dim=1) == self.labels[block]).sum()
        return self.ranks.total(int(right), self.device) / len(self.labels)


class EpochSums:
    """Sums of an epoch's training batches, each as it was before its step, over all ranks.

    A batch waits on the device until somebody asks, so that no step has to wait for a GPU.
    """

    def __init__(self, ranks: Ranks = ALONE) -> None:
        self.ranks = ranks
        self.reset()

    def reset(self) -> None:
        self._loss = self._right = 0.0
        self._images = 0
        self._unread: list[tuple[Tensor, Tensor, int]] = []

    def add(self, loss: Tensor, right: Tensor, images: int, of: int) -> None:
        """The mean loss of a batch, its right answers (nan: not measured) and its images.

        Every rank adds its own part `of` the step's images and sees the sums, so that all of them
        decide alike.
        """
        if self.ranks.size > 1:
            seen = torch.stack([loss.float() * images, right.float()])
            self.ranks.sum([seen])
            loss, right, images = seen[0], seen[1], 1
        self._unread.append((loss, right, images))
        self._images += of

    def _read(self) -> None:
        """Wait for the device."""
        for loss, right, images in self._unread:
            self._loss += loss.item() * images
            self._right += right.item()
        self._unread.clear()

    @property
    def finite(self) -> bool:
        """Whether the loss is."""
        self._read()
        return math.isfinite(self._loss)

    def means(self) -> tuple[float, float | None]:
        """Loss and training accuracy (fraction; None: not measured)."""
        self._read()
        measured = math.isfinite(self._right)
        return self._loss / self._images, self._right / self._images if measured else None

    def sums(self) -> Tensor:
        """Loss times images, right answers, images, shape (3,) float64, for a checkpoint."""
        self._read()
        return torch.tensor([self._loss, self._right, self._images], dtype=torch.float64)

    def load(self, sums: Tensor) -> None:
        """Go on from these sums."""
        self.reset()
        self._loss, self._right, images = sums.tolist()
        self._images = int(images)


@contextmanager
def use_batch_statistics(model: nn.Module) -> Iterator[None]:
    """Inside, batch norm in training mode uses the batch's statistics and keeps its own."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    tracked = [norm.track_running_stats for norm in norms]
    for norm in norms:
        norm.track_running_stats = norm.track_running_stats and not norm.training
    try:
        yield
    finally:
        for norm, before in zip(norms, tracked, strict=True):
            norm.track_running_stats = before


@torch.no_grad()
def module_outputs(model: nn.Module, modules: Iterable[str], images: Tensor) -> dict[str, Tensor]:
    """What these modules give for the images, before their normalisers."""
    found: dict[str, Tensor] = {}

    def hook(name: str) -> torch.utils.hooks.RemovableHandle:
        def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            found[name] = output.clone()

        return model.get_submodule(name).register_forward_hook(keep, prepend=True)

    hooks = [hook(name) for name in modules]
    try:
        model(images)
    finally:
        for handle in hooks:
            handle.remove()
    return found
