"""What a run costs, over all its parts: samples, floating-point operations, seconds, memory.

FLOPs are those of matrix products and convolutions by the formulas of torch.utils.flop_counter (a
multiply-add is two). Counted are the training steps, forward and backward with everything that
methods add to them, as the first step of every round times the round's steps; and what hooks do
between steps (NIO's search, layerwise statistics). Not counted: validation, elementwise operations.
Of several ranks the steps are summed; what hooks do between them, which each rank repeats, counts
once. Seconds and memory are those of the rank that writes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from fsbench.core.distributed import ALONE, Ranks

KEPT = ("samples", "flops", "event_flops", "step_flops", "seconds", "peak_memory_bytes")


class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the operations that run inside, which run as they would without it.

    FlopCounterMode itself also follows modules by hooks on their tensors, which costs memory.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        formula: Callable[..., int] | None = flop_registry.get(func._overloadpacket)
        if formula is not None:
            self.flops += formula(*args, **(kwargs or {}), out_val=out)
        return out


class Cost:
    """Totals so far. peak_memory_bytes: of the GPU, or resident of the whole process on a CPU."""

    def __init__(self, device: torch.device, ranks: Ranks = ALONE) -> None:
        self.device, self.ranks = device, ranks
        self.samples = self.flops = self.event_flops = self.step_flops = 0
        self.seconds, self.peak_memory_bytes = 0.0, 0
        self._last = time.monotonic()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    @contextmanager
    def event(self) -> Iterator[None]:
        """What hooks do between steps."""
        with Counting() as counter:
            yield
        self.event_flops += counter.flops

    @contextmanager
    def step(self, first: bool) -> Iterator[None]:
        """A training step; the first one of a round is measured."""
        if first:
            with Counting() as counter:
                yield
            self.step_flops = self.ranks.total(counter.flops, self.device)
        else:
            yield
        self.flops += self.step_flops

    @property
    def unsaved(self) -> float:
        """Seconds since the last checkpoint."""
        return time.monotonic() - self._last

    def state(self) -> dict[str, float]:
        """The totals up to now, for a checkpoint."""
        now = time.monotonic()
        self.seconds, self._last = self.seconds + now - self._last, now
        self.peak_memory_bytes = max(self.peak_memory_bytes, peak_memory(self.device))
        return {name: getattr(self, name) for name in KEPT}

    def resume(self, state: dict[str, float]) -> None:
        """Go on from the totals of a checkpoint."""
        for name in KEPT:
            setattr(self, name, state[name])

    def facts(self) -> dict[str, float]:
        """For the run's record; flops: of steps and events, event_flops: of the latter alone."""
        found = self.state()
        del found["step_flops"]
        found["flops"] += found["event_flops"]
        return found | {"seconds": round(self.seconds, 3)}


def peak_memory(device: torch.device) -> int:
    """The most bytes so far: of tensors on a GPU, else of the whole process (0: unknown)."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    if sys.platform == "win32":
        return 0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
