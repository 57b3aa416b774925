"""Training of one run by several processes: `torchrun --nproc-per-node N -m fsbench pretrain ...`.

Every process (rank) has the whole state of the run and takes its rows of the same global batch.
Gradients are summed, so each step is the step of the mean loss over that batch, and everything
after the gradients (penalties, masks, SWR, the optimizer) happens identically on every rank. Random
streams are keyed by names, not by ranks, so masks, re-draws, NIO scales and layerwise statistics
are the same everywhere. Only rank 0 writes files.

As in DistributedDataParallel, gradients travel in buckets while the backward pass goes on. That
class averages gradients in hooks on its own forward pass; meta-learners call copies of the network,
metasgd trains tensors that are in no module, and ranks with unequal rows need unequal weights.
"""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from fsbench.backbones.base import weights_hash
from fsbench.core.distributed import Ranks, watched_peers
from fsbench.core.errors import FsbenchError, UsageError
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import BatchLoader
from pretrain.training.checkpoint import pack_state
from pretrain.training.context import Context
from pretrain.weights.surgery import views_into

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


BUCKET_BYTES = 25 * 2**20
"""Gradients that travel together: as many as in DistributedDataParallel."""


def split_into_buckets(parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Return buckets of one type each, the last parameters first: their gradients come first."""
    ends = accumulate(parameter.nbytes for parameter in reversed(parameters))
    pairs = zip(reversed(parameters), ends, strict=True)
    groups = groupby(pairs, key=lambda pair: (pair[0].dtype, pair[1] // BUCKET_BYTES))
    return [[parameter for parameter, _ in group] for _, group in groups]


def backward(ctx: Context, ranks: Ranks, loss: Tensor, share: float) -> None:
    """Compute the gradients of the whole step's loss, of which this rank has a share.

    With several ranks, gradients are views into their bucket. A bucket leaves once its gradients
    and those of the buckets before it are complete, so that all ranks keep one order; buckets with
    unused parameters leave after the pass.
    """
    trained = [parameter for parameter in ctx.parameters.values() if parameter.requires_grad]
    buckets = split_into_buckets(trained) if ranks.size > 1 else []
    missing = [len(bucket) for bucket in buckets]
    sums: list[distributed.Work | None] = []

    def arrive(number: int, parameter: Tensor) -> None:
        missing[number] -= 1
        while len(sums) < len(buckets) and not missing[len(sums)]:
            sums.append(start_sum(buckets[len(sums)]))

    hooks = [
        parameter.register_post_accumulate_grad_hook(partial(arrive, number))  # type: ignore[no-untyped-call]
        for number, bucket in enumerate(buckets)
        for parameter in bucket
    ]
    torch.autograd.backward(loss if share == 1 else share * loss)
    sums += map(start_sum, buckets[len(sums) :])
    with watched_peers():
        for work in filter(None, sums):
            work.wait()
    for hook in hooks:
        hook.remove()


@torch.no_grad()
def start_sum(bucket: Sequence[nn.Parameter]) -> distributed.Work | None:
    """Start the sum of these parameters' gradients over the ranks; None where none has one."""
    gradients = {p: gradient for p in bucket if (gradient := p.grad) is not None}
    if not gradients:
        return None
    flat = bucket[0].new_empty(sum(gradient.numel() for gradient in gradients.values()))
    views = views_into(flat, list(gradients.values()))
    torch._foreach_copy_(views, list(gradients.values()))
    for parameter, view in zip(gradients, views, strict=True):
        parameter.grad = view
    with watched_peers():
        return distributed.all_reduce(flat, async_op=True)


def copy_buffers(ctx: Context, ranks: Ranks, of_norms: bool) -> None:
    """Copy the floating-point buffers of rank 0, those of batch norm or all others, to every rank.

    Training steps do not read running statistics, so once an epoch is enough for them.
    """
    if ranks.size > 1:
        chosen = [m for m in ctx.model.modules() if isinstance(m, _BatchNorm) is of_norms]
        buffers = [b for module in chosen for b in module.buffers(recurse=False)]
        ranks.lead([buffer for buffer in buffers if buffer.is_floating_point()])


def check_ranks_agree(ctx: Context, ranks: Ranks) -> None:
    """Raise FsbenchError if ranks differ in a bit of weights, buffers, memories or the step."""
    if ranks.size == 1:
        return
    digest = int(weights_hash(pack_state(ctx)[0])[:15], 16)
    if any(len({*ranks.collect(n, ctx.device)}) > 1 for n in (ctx.clock.step, digest)):
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
