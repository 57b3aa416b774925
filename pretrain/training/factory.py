"""Construction of a run from its recipe: network, loader, context and validation."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from fsbench.backbones.kernels import float32_precision, memory_layout
from fsbench.backbones.networks import load_architecture
from fsbench.core import seeding
from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import DataError, FsbenchError
from fsbench.data.source import SourceDataset
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import BatchLoader, FullBatchLoader
from pretrain.training.context import Context
from pretrain.training.distributed import require_enough_images
from pretrain.training.episodes import EpisodeLoader


def add_dropout(head: nn.Module, rate: float) -> None:
    """Zero inputs of the head with this probability in training, and scale the others up.

    "The Impact of Reinitialization", appendix C, places dropout before the classifier of scnn and
    does not state its place in the other networks; here it is the same in all. A hook leaves the
    names of all weights alone, so an exported run has the plain architecture.
    """

    def drop(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        values, *rest = inputs
        return (functional.dropout(values, rate, module.training), *rest)

    head.register_forward_pre_hook(drop)


LOADERS: dict[str, type[BatchLoader]] = {
    "batches": BatchLoader,
    "full_batch": FullBatchLoader,
    "episodes": EpisodeLoader,
}
"""Classes of batch loaders by recipe field `loader`."""


def build_context(
    recipe: Recipe,
    source: SourceDataset,
    device: torch.device,
    log_rewrite: Callable[[dict[str, Any]], None],
    ranks: Ranks = ALONE,
) -> Context:
    """Return a context at step 0; the network is drawn from the stream `init`.

    Raises DataError if the source's images have another size than the recipe's, UsageError if the
    processes cannot train the recipe.
    """
    side = source.train.images.shape[-1]
    if side != recipe.decoded_size:
        raise DataError(
            f"{source.name} was loaded at {side} px, recipe {recipe.name} reads it at"
            f" {recipe.decoded_size} px",
            fix=f"load it at {recipe.decoded_size} px, or use --set input_size={side}",
        )
    loader = LOADERS[recipe.loader](recipe, source, device)
    require_enough_images(recipe, loader, ranks, device)
    architecture = load_architecture(recipe.architecture).at(recipe.input_size)
    with seeding.stream(*recipe.stream("init")):
        model = architecture.build(loader.classes, recipe.width)
    if recipe.dropout:
        add_dropout(model.get_submodule(architecture.roles(model).head), recipe.dropout)
    layout = memory_layout(model) if recipe.channels_last else torch.contiguous_format
    loader.normalise.layout = layout
    model = model.to(device=device, memory_format=layout)  # type: ignore[call-overload]
    if recipe.sync_bn and ranks.size > 1:
        from timm.layers.norm_act import convert_sync_batchnorm  # torch's drops timm's activations

        model = convert_sync_batchnorm(model)  # type: ignore[no-untyped-call]
    clock = TrainingClock(recipe.plan)
    return Context(recipe, architecture, model, loader, clock, device, log_rewrite)


@contextmanager
def use_precision(recipe: Recipe, device: torch.device) -> Iterator[None]:
    """Multiply in the recipe's precision in the block. Raise FsbenchError if memory is too small.

    What autocast leaves in float32 under bf16 is not rounded to TF32.
    """
    try:
        with float32_precision("tf32" if recipe.precision == "tf32" else "ieee"):
            yield
    except torch.OutOfMemoryError as error:
        smaller = [] if recipe.precision == "bf16" else ["--set precision=bf16"]
        smaller += [f"--set batch_size={max(2, recipe.batch_size // 2)}", "--device cpu"]
        raise FsbenchError(
            f"a step of {recipe.name}, {recipe.batch_size} images of {recipe.input_size} px, does"
            f" not fit into the memory of {device}",
            fix="share every step between two GPUs: torchrun --nproc-per-node 2 -m fsbench pretrain"
            f" ...; or change the recipe: {', '.join(smaller)}",
        ) from error


@contextmanager
def deterministic_kernels(enabled: bool) -> Iterator[None]:
    """Use deterministic kernels in the block, with the workspace that torch asks for on GPUs."""
    if enabled:  # torch looks for it once, at the first matrix product on a GPU
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark
    torch.use_deterministic_algorithms(enabled or before[0])
    torch.backends.cudnn.benchmark = before[1] and not enabled
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        torch.backends.cudnn.benchmark = before[1]
