"""One run by several processes: `torchrun --nproc-per-node N -m fsbench pretrain ...`.

Every rank holds the whole state of the run and takes its rows of the same global batch; gradients
are summed, so that each step is the step of the mean loss over that batch, and everything that
follows a gradient (penalties, masks, SWR, the optimizer) happens on every rank alike and once.
Streams are keyed by names, not by ranks, so masks, re-draws, NIO scales and layerwise statistics
(all of them on the whole batch) are the same everywhere. Rank 0 alone writes.

torch.distributed does the work, its DistributedDataParallel does not: that averages gradients from
hooks on the backward pass of its own forward. Meta-learners call copies of the network, not its
forward; metasgd trains tensors that are in no module; penalties on reparametrized weights take a
second backward pass in a step; ranks of unequal rows need unequal weights; and `after_backward`
must see the gradients when all of them are final. One all-reduce after the backward pass is right
for all of these and knows no method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from fsbench.backbones.weights import weights_hash
from fsbench.core.errors import FsbenchError, UsageError
from pretrain.training.checkpoint import pack_state

if TYPE_CHECKING:
    from fsbench.core.distributed import Ranks
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.batches import BatchLoader
    from pretrain.training.context import Context

MIN_ROWS = 2
"""Images of a step that a rank needs: batch norm has no statistics of a single one."""


def require_enough_images(
    recipe: Recipe, loader: BatchLoader, ranks: Ranks, device: torch.device
) -> None:
    """Raises UsageError for a recipe that these ranks cannot train."""
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
    """Weights and memories of rank 0 on every rank, after hooks that compute on their own.

    Needed on GPUs alone, where two equal computations may differ in the last bits.
    """
    if ctx.device.type != "cpu":
        held = [value for memory in ctx.memories.values() for value in memory.values()]
        tensors = [t for t in held if isinstance(t, Tensor) and t.device == ctx.device]
        ranks.lead([*ctx.model.state_dict().values(), *tensors])


def backward(ctx: Context, ranks: Ranks, loss: Tensor, share: float) -> None:
    """The gradients of the whole step's loss, a share of which is this rank's.

    Afterwards all ranks hold the same gradients, and the running statistics of rank 0.
    """
    torch.autograd.backward(loss if share == 1 else share * loss)
    if ranks.size > 1:
        ranks.sum([p.grad for p in ctx.parameters.values() if p.grad is not None])
        ranks.lead([b for b in ctx.model.buffers() if b.is_floating_point()])


def check_ranks_agree(ctx: Context, ranks: Ranks) -> None:
    """Raises FsbenchError when ranks differ in a bit of weights, buffers, memories or the step."""
    if ranks.size == 1:
        return
    digest = int(weights_hash(pack_state(ctx)[0])[:15], 16)
    if not ranks.agree((ctx.clock.step, digest), ctx.device):
        raise FsbenchError(
            f"the processes of {ctx.recipe.name} hold different states at step {ctx.clock.step}",
            fix="give all of them the same folder, machine and versions; on GPUs, try --set"
            " deterministic=true",
        )


PER_RANK = {
    "batch norm": "normalises by a rank's own images and keeps the statistics of rank 0",
    "dropout": "every rank draws a mask of its own",
}
"""What makes several ranks differ from one process in more than rounding, and why."""


def describe_rank_effects(recipe: Recipe, model: nn.Module, ranks: Ranks) -> dict[str, Any]:
    """For the run's record: which parts of PER_RANK it has; nothing for a single process."""
    if ranks.size == 1:
        return {}
    modules = list(model.modules())
    own = [m for m in modules if isinstance(m, _BatchNorm) and not isinstance(m, nn.SyncBatchNorm)]
    drops = [m for m in modules if isinstance(m, _DropoutNd) and m.p > 0]
    found = {"batch norm": bool(own), "dropout": recipe.dropout > 0 or bool(drops)}
    return {"unlike_one_process": {name: PER_RANK[name] for name in found if found[name]}}
