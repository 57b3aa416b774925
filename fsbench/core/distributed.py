"""The processes of one run, as torchrun starts them, and what they tell each other."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor, distributed

from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.process import is_one_of_several

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

    from fsbench.core.seeding import Name

T = TypeVar("T")


@dataclass(frozen=True)
class Ranks:
    """The processes of a run, and which of them this one is; store: what they share by name."""

    rank: int = 0
    size: int = 1
    backend: str | None = None
    store: "Store | None" = None

    @property
    def first(self) -> bool:
        """Return whether this is the rank that writes."""
        return self.rank == 0

    @property
    def names(self) -> "tuple[Name, ...]":
        """Return the extra key of streams that must differ between ranks, such as dropout's."""
        return ("rank", self.rank) if self.size > 1 else ()

    def rows(self, n: int, unit: int = 1) -> slice:
        """Return this rank's rows of a batch of n, in whole units: together all, in order."""
        units = n // unit
        start, stop = (units * r // self.size * unit for r in (self.rank, self.rank + 1))
        return slice(start, stop)

    def sum(self, tensors: Sequence[Tensor]) -> None:
        """Replace the tensors by their sums over the ranks, the same bits on each of them."""
        self._apply(distributed.all_reduce, tensors)

    def lead(self, tensors: Sequence[Tensor]) -> None:
        """Replace the tensors by those of rank 0."""
        self._apply(lambda flat: distributed.broadcast(flat, src=0), tensors)

    def collect(self, number: int, device: torch.device | str = "cpu") -> list[int]:
        """Return the numbers of all ranks, in order."""
        if self.size == 1:  # without a wait for the device
            return [number]
        tensor = torch.tensor([number * (r == self.rank) for r in range(self.size)], device=device)
        self.sum([tensor])
        return tensor.tolist()

    def gather(self, tensor: Tensor) -> list[Tensor]:
        """Return the tensors of all ranks, of equal shapes, in order on rank 0; none elsewhere."""
        if self.size == 1:
            return [tensor]
        parts = [torch.empty_like(tensor) for _ in range(self.size)] if self.first else []
        with watched_peers():
            distributed.gather(tensor, parts or None, dst=0)
        return parts

    def share(self, items: Iterable[T], name: str) -> Iterator[T]:
        """Yield the items that fall to this rank: each to the one that asks for its next item.

        So no rank waits while items are left, whatever each of them costs. All ranks give the same
        items in the same order, under the same name, which no other items have.
        """
        if self.store is None:
            yield from items
            return
        turn = self.store.add(name, 1)
        for number, item in enumerate(items, 1):
            if number == turn:
                yield item
                turn = self.store.add(name, 1)

    @torch.no_grad()
    def _apply(self, collective: Callable[[Tensor], object], tensors: Sequence[Tensor]) -> None:
        """Run one collective operation in place for all tensors of a type, in their order."""
        for dtype in dict.fromkeys(tensor.dtype for tensor in tensors) if self.size > 1 else ():
            alike = [tensor for tensor in tensors if tensor.dtype == dtype]
            flat = torch.cat([tensor.reshape(-1) for tensor in alike])
            with watched_peers():
                collective(flat)
            parts = torch.split(flat, [tensor.numel() for tensor in alike])
            torch._foreach_copy_(alike, list(map(Tensor.view_as, parts, alike)))

    def wait(self) -> None:
        if self.size > 1:
            with watched_peers():
                distributed.barrier()

    def facts(self) -> dict[str, Any]:
        """Return facts for the run's record; none for a single process."""
        return {"processes": self.size, "backend": self.backend} if self.size > 1 else {}


ALONE = Ranks()


@contextmanager
def watched_peers() -> Iterator[None]:
    """Raise FsbenchError where another rank has gone."""
    try:
        yield
    except RuntimeError as error:
        raise FsbenchError(
            f"another process of this run has ended ({str(error).splitlines()[0]})",
            fix="see what it said, then run the same command again: it goes on from the checkpoint",
        ) from error


@contextmanager
def open_ranks(
    device: str, backend: str = "", patience: timedelta = timedelta(hours=1)
) -> Iterator[tuple[Ranks, torch.device]]:
    """Yield the ranks and the device of this process: of torchrun or of an open process group.

    Under torchrun a GPU is that of the local rank. patience: the wait for others. Raises UsageError
    for too few GPUs.
    """
    if distributed.is_available() and distributed.is_initialized():
        yield current_ranks(), torch.device(device)
    elif is_one_of_several():
        local = device_of_rank(torch.device(device))
        backend = backend or ("nccl" if local.type == "cuda" else "gloo")
        with watched_peers():
            distributed.init_process_group(backend, timeout=patience)
        yield current_ranks(), local
        distributed.destroy_process_group()  # after an error the process ends: others may hang
    else:
        yield ALONE, torch.device(device)


def launch_ranks(size: int, function: Callable[..., object], *args: object) -> None:
    """Call a function in so many ranks of torchrun's launcher. Raise FsbenchError if one fails."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(1, 1, size, rdzv_backend="c10d", rdzv_endpoint="localhost:0")
    config.max_restarts = 0  # whether to call again is for the caller to decide
    try:
        elastic_launch(config, function)(*args)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        raise FsbenchError(f"rank {rank} of {size}: {failure.message}") from error


RUNS = count()
"""Numbers of the runs of this process, the same ones at all ranks."""


def current_ranks() -> Ranks:
    size = distributed.get_world_size()
    if size == 1:
        return ALONE
    c10d: Any = distributed.distributed_c10d
    store = c10d.PrefixStore(f"fsbench-{next(RUNS)}", c10d._get_default_store())
    return Ranks(distributed.get_rank(), size, distributed.get_backend(), store)


def device_of_rank(device: torch.device) -> torch.device:
    """Return the device of this rank under torchrun. Raise UsageError if it has none."""
    if device.type == "cpu":
        return device
    local, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if device.type != "cuda" or local >= count:
        raise UsageError(
            f"torchrun wants a GPU for local rank {local}; {count} are here",
            fix=f"--nproc-per-node {count}" if count else "--device cpu",
        )
    torch.cuda.set_device(local)
    return torch.device("cuda", local)
