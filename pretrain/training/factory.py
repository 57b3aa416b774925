"""Dropout in front of the head, on any architecture, without a module of its own.

"The Impact of Reinitialization", appendix C, draws it in front of the classifier head of scnn and
does not say where the other networks have it; here it is the same place in all. A hook leaves the
names of all weights alone, so an exported run is the plain architecture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from fsbench.backbones.architectures import ARCHITECTURES
from fsbench.core import seeding
from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import DataError
from pretrain.meta.episodes import EpisodeLoader, EpisodicValidation
from pretrain.recipes.plan import TrainingClock
from pretrain.training.batches import BatchLoader, FullBatchLoader
from pretrain.training.context import Context, Rewrite
from pretrain.training.distributed import require_enough_images
from pretrain.training.validation import Validation


def add_dropout(head: nn.Module, rate: float) -> None:
    """Values reaching the head in training are zeroed with this probability, others scaled up."""

    def drop(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        values, *rest = inputs
        return (functional.dropout(values, rate, module.training), *rest)

    head.register_forward_pre_hook(drop)


if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe

LOADERS: dict[str, type[BatchLoader]] = {
    "batches": BatchLoader,
    "full_batch": FullBatchLoader,
    "episodes": EpisodeLoader,
}
"""Recipe field `loader` -> what hands out the batches."""


def build_context(
    recipe: Recipe,
    source: SourceDataset,
    device: torch.device,
    log_rewrite: Callable[[Rewrite], None],
    ranks: Ranks = ALONE,
) -> Context:
    """A context at step 0.

    Raises DataError when the source's images have another size, UsageError where the ranks cannot
    train the recipe.
    """
    side = source.train.images.shape[-1]
    if side != recipe.input_size:
        raise DataError(
            f"{source.name} was loaded at {side} px, recipe {recipe.name} trains at"
            f" {recipe.input_size} px",
            fix=f"load it at {recipe.input_size} px, or use --set input_size={side}",
        )
    loader = LOADERS[recipe.loader](recipe, source, device)
    require_enough_images(recipe, loader, ranks, device)
    architecture = ARCHITECTURES.load(recipe.architecture).at(recipe.input_size)
    with seeding.stream(*recipe.stream("init")):
        model = architecture.build(loader.classes, recipe.width)
    if recipe.dropout:
        add_dropout(model.get_submodule(architecture.roles(model).head), recipe.dropout)
    layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
    model = model.to(device=device, memory_format=layout)  # type: ignore[call-overload]
    if recipe.sync_bn and ranks.size > 1:
        from timm.layers.norm_act import convert_sync_batchnorm  # torch's drops timm's activations

        model = convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
    return Context(
        recipe, architecture, model, loader, TrainingClock(recipe.plan), device, log_rewrite
    )


def build_validation(
    recipe: Recipe, source: SourceDataset, device: torch.device, ranks: Ranks = ALONE
) -> Validation | EpisodicValidation:
    """What measures a run: as its loader has it."""
    kind = EpisodicValidation if recipe.loader == "episodes" else Validation
    return kind(recipe, source, device, ranks)


@contextmanager
def deterministic_kernels(wanted: bool) -> Iterator[None]:
    """Deterministic kernels inside, if wanted; a GPU also needs CUBLAS_WORKSPACE_CONFIG=:4096:8."""
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(wanted or before[0])
    torch.backends.cudnn.benchmark = before[1] and not wanted
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.benchmark = before[1]
