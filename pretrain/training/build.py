"""From a recipe to the objects of a run: the network under its init stream, loader, context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from fsbench.backbones.architectures import ARCHITECTURES
from fsbench.core import seeding
from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import DataError
from pretrain.meta.episodes import Episodes
from pretrain.meta.validation import EpisodicValidation
from pretrain.recipes.plan import Clock
from pretrain.training.batches import Batches
from pretrain.training.context import Context, Rewrite
from pretrain.training.distributed import refuse
from pretrain.training.full_batch import FullBatch
from pretrain.training.validation import Validation
from pretrain.weights.dropout import drop_before

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe

LOADERS: dict[str, type[Batches]] = {
    "batches": Batches,
    "full_batch": FullBatch,
    "episodes": Episodes,
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
    refuse(recipe, loader, ranks, device)
    architecture = ARCHITECTURES.load(recipe.architecture).at(recipe.input_size)
    with seeding.stream(*recipe.stream("init")):
        model = architecture.build(loader.classes, recipe.width)
    if recipe.dropout:
        drop_before(model.get_submodule(architecture.roles(model).head), recipe.dropout)
    layout = torch.channels_last if recipe.channels_last else torch.contiguous_format
    model = model.to(device=device, memory_format=layout)  # type: ignore[call-overload]
    if recipe.sync_bn and ranks.size > 1:
        from timm.layers.norm_act import convert_sync_batchnorm  # torch's drops timm's activations

        model = convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
    return Context(recipe, architecture, model, loader, Clock(recipe.plan), device, log_rewrite)


def build_validation(
    recipe: Recipe, source: SourceDataset, device: torch.device, ranks: Ranks = ALONE
) -> Validation | EpisodicValidation:
    """What measures a run: as its loader has it."""
    kind = EpisodicValidation if recipe.loader == "episodes" else Validation
    return kind(recipe, source, device, ranks)


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Deterministic kernels inside, if wanted; a GPU also needs CUBLAS_WORKSPACE_CONFIG=:4096:8."""
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(wanted or before[0])
    torch.backends.cudnn.benchmark = before[1] and not wanted
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.benchmark = before[1]
