"""Training of one run by several processes: `torchrun --nproc-per-node N -m fsbench pretrain ...`.

Every process (rank) has the whole state of the run and takes its rows of the same global batch.
Gradients are summed, so each step is the step of the mean loss over that batch, and everything
after the gradients (penalties, masks, SWR, the optimizer) happens identically on every rank. Random
streams are keyed by names, not by ranks, so masks, re-draws, NIO scales and layerwise statistics
are the same everywhere. Only rank 0 writes files.

DistributedDataParallel is not used: it averages gradients in hooks on the backward pass of its own
forward. Meta-learners call copies of the network, metasgd trains tensors that are in no module,
penalties on reparametrized weights need a second backward pass per step, ranks with unequal rows
need unequal weights, and `after_backward` needs the final gradients. One all-reduce after the
backward pass is correct for all of these.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from fsbench.backbones.base import weights_hash
from fsbench.core.distributed import Ranks
from fsbench.core.errors import FsbenchError, UsageError
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import BatchLoader
from pretrain.training.checkpoint import pack_state
from pretrain.training.context import Context

MIN_ROWS = 2
"""Images per step that a rank needs: batch norm has no statistics of a single image."""


def require_enough_images(
    recipe: Recipe, loader: BatchLoader, ranks: Ranks, device: torch.device
) -> None:
    """Raise UsageError if a step has too few images for the ranks, or sync_bn cannot run."""
    if ranks.size == 1:
        return
    if recipe.sync_bn and device.type == "cpu":
        raise UsageError(
            "sync_bn=true: torch.nn.SyncBatchNorm runs on GPUs only",
            fix="--set sync_bn=false, train on GPUs, or use one process",
        )
    shortest = min(loader.epoch_size(stage) for stage in range(len(loader.stages)))
    images, need = min(recipe.batch_size, shortest), ranks.size * max(MIN_ROWS, loader.unit)
    if images < need:
        raise UsageError(
            f"a step of {images} images is too small for {ranks.size} processes: each needs"
            f" {need // ranks.size}",
            fix=f"--nproc-per-node {max(1, images * ranks.size // need)}, or raise batch_size"
            f" to {need}",
        )


def copy_first_rank(ctx: Context, ranks: Ranks) -> None:
    """Copy weights and memories of rank 0 to every GPU, whose last bits may differ."""
    if ctx.device.type != "cpu":
        values = [value for memory in ctx.memories.values() for value in memory.values()]
        tensors = [v for v in values if isinstance(v, Tensor) and v.device == ctx.device]
        ranks.lead([*ctx.model.state_dict().values(), *tensors])


def backward(ctx: Context, ranks: Ranks, loss: Tensor, share: float) -> None:
    """Compute the gradients of the whole step's loss, of which this rank has a share.

    Afterwards all ranks have the same gradients, and the running statistics of rank 0.
    """
    torch.autograd.backward(loss if share == 1 else share * loss)
    if ranks.size > 1:
        ranks.sum([p.grad for p in ctx.parameters.values() if p.grad is not None])
        ranks.lead([b for b in ctx.model.buffers() if b.is_floating_point()])


def check_ranks_agree(ctx: Context, ranks: Ranks) -> None:
    """Raise FsbenchError if ranks differ in a bit of weights, buffers, memories or the step."""
    if ranks.size == 1:
        return
    digest = int(weights_hash(pack_state(ctx)[0])[:15], 16)
    if not ranks.agree((ctx.clock.step, digest), ctx.device):
        raise FsbenchError(
            f"the processes of {ctx.recipe.name} have different states at step {ctx.clock.step}",
            fix="use the same folder, machine and versions for all; on GPUs, try --set"
            " deterministic=true",
        )


PER_RANK = {
    "batch norm": "normalises by a rank's own images and keeps the statistics of rank 0",
    "dropout": "every rank draws a mask of its own",
}
"""Layers that make several ranks differ from one process by more than rounding, and why."""


def describe_rank_effects(recipe: Recipe, model: nn.Module, ranks: Ranks) -> dict[str, Any]:
    """Return the parts of PER_RANK in the model, for the run's record; {} for one process."""
    if ranks.size == 1:
        return {}
    modules = list(model.modules())
    norms = [m for m in modules if isinstance(m, _BatchNorm)]
    norms = [m for m in norms if not isinstance(m, nn.SyncBatchNorm)]
    dropouts = [m for m in modules if isinstance(m, _DropoutNd) and m.p > 0]
    present = {"batch norm": bool(norms), "dropout": recipe.dropout > 0 or bool(dropouts)}
    return {"unlike_one_process": {name: PER_RANK[name] for name in present if present[name]}}
