"""Measurements during training: validation accuracy, sums of an epoch, outputs of inner modules.

None of them changes the model, its batch-norm statistics or a random stream.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fsbench.backbones.architectures import record_outputs
from fsbench.core.distributed import ALONE, Ranks
from fsbench.data.augmentation import crop_centre
from fsbench.data.source import SourceDataset
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import BatchLoader, InputNormalizer, load_split
from pretrain.training.context import Context

PIXELS, MIN_IMAGES = 512_000, 32
"""Size of a validation batch in pixels and in images at least: 500 images of 32 px, 125 of 64 px.

Validation then needs the same memory at every resolution.
"""

TRAINING_IMAGES = 1000
"""Images of which `training_accuracy` is measured: a random part of the stage."""


def autocast(recipe: Recipe, device: torch.device) -> AbstractContextManager[object]:
    """Return bfloat16 autocast if the recipe's precision is bf16, else a null context."""
    if recipe.precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def frozen_modules(model: nn.Module) -> list[str]:
    """Return the names of the modules that are in eval mode."""
    return [name for name, module in model.named_modules() if not module.training]


def freeze_modules(model: nn.Module, names: list[str]) -> None:
    """Put these modules in eval mode and all others in training mode."""
    for name, module in model.named_modules():
        module.training = name not in names


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Put the model in eval mode for the block, then restore the mode of every module."""
    frozen = frozen_modules(model)
    model.eval()
    try:
        yield
    finally:
        freeze_modules(model, frozen)


@torch.no_grad()
def count_classified(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    normalise: InputNormalizer,
    recipe: Recipe,
    ranks: Ranks = ALONE,
) -> int:
    """Return how many of this process's images have their largest logit at their label.

    The labels are on the device of the model, the images there or on the CPU.
    """
    correct = torch.zeros((), dtype=torch.int64, device=labels.device)
    with eval_mode(model), autocast(recipe, labels.device):
        size = max(MIN_IMAGES, PIXELS // recipe.input_size**2)
        for start in range(0, len(labels), size)[ranks.rank :: ranks.size]:
            block = slice(start, start + size)
            logits: Tensor = model(normalise(images[block].to(labels.device)))
            correct += (logits.argmax(dim=1) == labels[block]).sum()
    return int(correct)


def training_accuracy(ctx: Context) -> float:
    """Return the current accuracy on TRAINING_IMAGES images of the stage without augmentation."""
    loader = ctx.loader
    chosen = torch.from_numpy(loader.stages[ctx.clock.stage][:TRAINING_IMAGES]).to(loader.home)
    images, labels = loader.take(chosen)
    images = crop_centre(images, ctx.recipe.input_size)
    return count_classified(ctx.model, images, labels, loader.normalise, ctx.recipe) / len(chosen)


class Validation:
    """Accuracy on the source's validation split; processes share its batches."""

    column = "val_accuracy"

    def __init__(self, loader: BatchLoader, source: SourceDataset, ranks: Ranks = ALONE) -> None:
        self.recipe, self.device, self.ranks = loader.recipe, loader.device, ranks
        images, labels = load_split(source.val, loader.home)
        self.labels = labels.to(loader.device)
        self.images = crop_centre(images, loader.recipe.input_size)
        self.normalise = loader.normalise

    def measure(self, ctx: Context) -> float:
        """Return the current accuracy of the run."""
        return self.accuracy(ctx.model)

    def accuracy(self, model: nn.Module) -> float:
        """Return the fraction of validation images whose largest logit is that of their label."""
        correct = count_classified(
            model, self.images, self.labels, self.normalise, self.recipe, self.ranks
        )
        return sum(self.ranks.collect(correct, self.device)) / len(self.labels)


class EpochSums:
    """Sums of loss and correct predictions over an epoch's training batches, over all processes.

    Each batch counts as it was before its step. The numbers of a batch stay on the device until a
    sum is read, so that no step waits for a GPU.
    """

    def __init__(self, ranks: Ranks = ALONE) -> None:
        self.ranks = ranks
        self.reset()

    def reset(self) -> None:
        self._loss = self._correct = 0.0
        self._images = 0
        self._unread: list[tuple[Tensor, Tensor, int]] = []

    def add(self, loss: Tensor, correct: Tensor, images: int, step_images: int) -> None:
        """Add a batch's mean loss, correct predictions (nan: not measured) and images."""
        self._unread.append((loss, correct, images))
        self._images += step_images

    def _read(self) -> None:
        """Read the numbers of all batches so far, which waits for the device.

        All processes read after the same batches and get the sums of all, so they decide alike.
        """
        if not self._unread:
            return
        losses, correct, images = zip(*self._unread, strict=True)
        loss_sums, correct_sums = torch.stack(losses), torch.stack(correct)
        if self.ranks.size > 1:
            counts = torch.tensor(images, device=loss_sums.device)
            sums = torch.stack([loss_sums.float() * counts, correct_sums.float()])
            self.ranks.sum([sums])
            (loss_sums, correct_sums), images = sums, (1,) * len(images)
        for loss, count in zip(loss_sums.tolist(), images, strict=True):
            self._loss += loss * count
        self._correct += sum(correct_sums.tolist())
        self._unread.clear()

    @property
    def finite(self) -> bool:
        """Return whether the sum of the losses is finite."""
        self._read()
        return math.isfinite(self._loss)

    def means(self) -> tuple[float, float | None]:
        """Return mean loss and training accuracy (fraction; None: not measured)."""
        self._read()
        measured = math.isfinite(self._correct)
        return self._loss / self._images, self._correct / self._images if measured else None

    def sums(self) -> Tensor:
        """Return loss times images, correct predictions, images: (3,) float64, for a checkpoint."""
        self._read()
        return torch.tensor([self._loss, self._correct, self._images], dtype=torch.float64)

    def load(self, sums: Tensor) -> None:
        """Continue from the sums of a checkpoint."""
        self.reset()
        self._loss, self._correct, images = sums.tolist()
        self._images = int(images)


@contextmanager
def use_batch_statistics(model: nn.Module, everywhere: bool = False) -> Iterator[None]:
    """Let batch norm in training mode use batch statistics without updating the running ones.

    everywhere: put all batch norm in training mode, for `eval_mode` around it to restore.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    for norm in norms if everywhere else ():
        norm.train()
    tracked = [norm.track_running_stats for norm in norms]
    for norm in norms:
        norm.track_running_stats = norm.track_running_stats and not norm.training
    try:
        yield
    finally:
        for norm, before in zip(norms, tracked, strict=True):
            norm.track_running_stats = before


@torch.no_grad()
def read_outputs(model: nn.Module, modules: Iterable[str], images: Tensor) -> dict[str, Tensor]:
    """Return the outputs of these modules for the images, before their normalizers."""
    with record_outputs(model, modules, prepend=True) as outputs:
        model(images)
    return outputs
