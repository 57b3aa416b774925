"""Kernel launches and host copies of a training step on a GPU, counted without a GPU.

    PYTHONPATH=tests python -m benchmarks.launches [METHOD ...]

The network, its optimizer and the source are on torch's meta device, which stands for the GPU: ops
there compute nothing, and each is counted as one launch. Views and allocations are none. A foreach
op is one launch where torch has a kernel for its list (one dtype; equal sizes and strides), else
one for every tensor. A host copy is a transfer between meta and CPU tensors; it synchronizes unless
it goes to the GPU with `non_blocking`, from pinned memory. The host also waits for a number, a
boolean mask or `nonzero` on the GPU. Kernels that an op launches beside its first are not counted.

A step is that of the loop, in a later round or stage, where masks are applied and SEAL ascends. The
bare loop has the same network and optimizer, and a batch on the GPU: no augmentation, no sums.

The bound of 1.15 is for methods that leave the forward pass alone. Reparametrizations do not: each
step computes their weights. weight_norm takes one fused kernel for each of 54 layers forward and
one backward, 108 of its 127 launches beyond the bare loop (1.30); torch has none for all layers.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from benchmarks.methods import Network, generate_source, make_recipe, start_later
from torch import Tensor, distributed
from torch.nn.functional import cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.progress import SILENT
from pretrain import METHODS
from pretrain.training import loop
from pretrain.training.loop import Trainer

GPU = torch.device("meta")
PAIR = Ranks(0, 2, "nccl")
RESNET = Network("timm/resnet50", 64, 32)
STEPS = 2
COUNTED = [name for name in METHODS.names() if name != "protonet"]
"""Methods: learn2learn's prototypes ask the GPU for the classes of every task, and wait for it."""
ALLOCATIONS = ("empty", "new_empty", "empty_like", "empty_strided", "new_empty_strided", "detach")
NO_LAUNCH = {*ALLOCATIONS, "_unsafe_view", "_reshape_alias", "lift_fresh", "set_", "is_same_size"}


class Counts(NamedTuple):
    """What a step takes on average."""

    launches: float
    copies: float
    waits: float
    collectives: float


class DeviceCounter(TorchDispatchMode):
    """Counter of what a block does on the meta device; numbers that the host reads are 1."""

    def __init__(self) -> None:
        super().__init__()
        self.launches = self.copies = self.waits = self.collectives = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name.partition("::")[2]
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if any(tensor.device == GPU for tensor in inputs) and self._is_read(name, args, kwargs):
            self.waits += 1
            return self._read(name, args)
        result = func(*args, **kwargs)
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        if name in ("_to_copy", "copy_") and len({t.device for t in (*inputs, *outputs)}) > 1:
            self.copies += 1
            blocking = not (kwargs.get("non_blocking") or args[2:3] == (True,))
            self.waits += blocking
        elif any(tensor.device == GPU for tensor in (*inputs, *outputs)):
            launched = not (func.is_view or name in NO_LAUNCH)
            self.launches += launched * (foreach_launches(args) if "_foreach" in name else 1)
        return result

    def _is_read(self, name: str, args: Any, kwargs: Any) -> bool:
        """Return whether the host waits for the result of an op."""
        masks = args[1] if name in ("index", "index_put", "index_put_") else []
        to_host = name == "_to_copy" and kwargs.get("device", GPU) != GPU
        has_mask = any(mask is not None and mask.dtype == torch.bool for mask in masks)
        return name in ("_local_scalar_dense", "nonzero", "equal") or to_host or has_mask

    def _read(self, name: str, args: Any) -> Any:
        """Return ones in place of what the host reads; a mask selects every element."""
        if name == "_local_scalar_dense":
            return torch.ones((), dtype=args[0].dtype).item()
        if name == "_to_copy":
            self.copies += 1
            return torch.ones(args[0].shape, dtype=args[0].dtype)
        if name == "index":
            return args[0].new_empty(args[1][0].numel())
        return {"nonzero": args[0].new_empty(args[0].numel(), args[0].ndim), "equal": False}.get(
            name, args[0]
        )

    def copying(self, make: Callable[..., Tensor], data_at: int) -> Callable[..., Tensor]:
        """Return `make`, counted where it copies numbers to the GPU, which torch does unseen here.

        data_at: position of its argument `data`.
        """

        def make_counted(*args: Any, **kwargs: Any) -> Tensor:
            tensor = make(*args, **kwargs)
            data = args[data_at] if len(args) > data_at else kwargs["data"]
            if tensor.device == GPU and not isinstance(data, Tensor):
                self.copies += 1
                self.waits += 1
            return tensor

        return make_counted

    def collect(self, flat: Tensor, *args: object, **options: object) -> "DeviceCounter":
        """Count an all-reduce or a broadcast, which leaves the tensor as it is."""
        self.launches += 1
        self.collectives += 1
        return self

    def wait(self) -> None:
        """End a collective that another stream has run."""


def foreach_launches(args: Sequence[Any]) -> int:
    """Return 1 if torch has one kernel for these lists of tensors, else one for every tensor."""
    lists = [arg for arg in args if isinstance(arg, (list, tuple)) and isinstance(arg[0], Tensor)]
    rows = list(zip(*lists, strict=True))
    alike = all(len({(t.shape, t.stride()) for t in row}) == 1 for row in rows)
    return 1 if alike and len({t.dtype for row in rows for t in row}) == 1 else len(rows)


@contextmanager
def counted() -> Iterator[DeviceCounter]:
    """Count a block; collectives are replaced, and optimizers choose as on a GPU."""
    counter, devices = DeviceCounter(), "torch.utils._foreach_utils._get_foreach_kernels_supported"
    with (
        patch.object(distributed, "all_reduce", counter.collect),
        patch.object(distributed, "broadcast", counter.collect),
        patch(f"{devices}_devices", return_value=["meta"]),
        patch.object(torch, "tensor", counter.copying(torch.tensor, 0)),
        patch.object(torch, "as_tensor", counter.copying(torch.as_tensor, 0)),
        patch.object(Tensor, "new_tensor", counter.copying(Tensor.new_tensor, 1)),
        patch.object(loop, "check_ranks_agree"),
        patch.object(loop, "EpisodicValidation", loop.Validation),  # reads labels, in no step
        counter,
    ):
        yield counter


def count_step(
    name: str, network: Network = RESNET, ranks: Ranks = ALONE, steps: int = STEPS
) -> Counts:
    """Return what a step of a method takes, for one of so many processes."""
    source = generate_source(network.side, network.batch, 2 * (steps + 1))
    with tempfile.TemporaryDirectory() as folder, counted() as counter:
        trainer = start_later(name, network, source, Path(folder), GPU, ranks)
        of_epoch = trainer.ctx.loader.steps(trainer.ctx.clock.stage)
        return take_steps(counter, lambda: trainer._step(of_epoch), steps)


def count_bare_step(name: str, network: Network = RESNET, steps: int = 1) -> Counts:
    """Return what a step of the bare loop takes."""
    with tempfile.TemporaryDirectory() as folder, counted() as counter:
        source = generate_source(network.side, network.batch)
        ctx = Trainer(make_recipe(name, network), source, Path(folder), GPU, SILENT).ctx
        ctx.rebuild_optimizer("all")
        images = torch.zeros(network.batch, 3, network.side, network.side, device=GPU)
        labels = torch.zeros(network.batch, dtype=torch.int64, device=GPU)
        smoothing = ctx.recipe.label_smoothing

        def step() -> None:
            ctx.optimizer.zero_grad()
            cross_entropy(ctx.model(images), labels, label_smoothing=smoothing).backward()
            ctx.optimizer.step()

        return take_steps(counter, step, steps)


def take_steps(counter: DeviceCounter, step: Callable[[], object], steps: int) -> Counts:
    """Return what a step takes on average; the first one makes the optimizer's buffers."""
    step()
    counter.launches = counter.copies = counter.waits = counter.collectives = 0
    for _ in range(steps):
        step()
    totals = (counter.launches, counter.copies, counter.waits, counter.collectives)
    return Counts(*(total / steps for total in totals))


def main() -> None:
    print(f"{'ResNet-50, 64 px, batch 32':28}  {'launches':>8} {'of bare':>7} {'copies':>6} waits")
    for name in sys.argv[1:] or COUNTED:
        bare = count_bare_step(name)
        for label, ranks in ((name, ALONE), (f"{name}, one of two ranks", PAIR)):
            counts = count_step(name, ranks=ranks)
            ratio = counts.launches / bare.launches
            print(
                f"{label:28}  {counts.launches:8.1f} {ratio:7.2f} {counts.copies:6.2f}"
                f" {counts.waits:5.2f}  {counts.collectives:.1f} collectives",
                flush=True,
            )


if __name__ == "__main__":
    main()
