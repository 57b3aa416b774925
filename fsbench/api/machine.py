"""Where work runs: device, threads, workers, batch size and the cache folder."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from fsbench.backbones import devices
from fsbench.core.folders import cache_folder as cache_folder
from fsbench.core.schema import Provenance
from fsbench.results import provenance


@dataclass(frozen=True)
class Machine:
    """Settings of the machine; recorded in every result, never part of what is computed.

    threads: CPU threads of torch, None keeps torch's own choice; workers: image decoding threads;
    batch_size: images a forward pass, None lets the suite choose from the shapes.
    """

    device: str = "auto"
    threads: int | None = None
    workers: int = 2
    batch_size: int | None = None
    cache: Path = field(default_factory=cache_folder)

    def start(self) -> RunContext:
        """Set the threads, settle the device and start the clock of the provenance."""
        import torch

        if self.threads is not None:
            torch.set_num_threads(self.threads)
        return RunContext(devices.resolve(self.device), self.batch_size)


@dataclass(frozen=True)
class RunContext:
    """A settled device, the batch size asked for, and the moment the work began.

    halvings: of the episodes of a forward pass, where memory was too small
    (protocols/heads/execution.py).
    """

    device: str
    batch_size: int | None = None
    halvings: int = 0
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    tick: float = field(default_factory=time.monotonic)

    def provenance(self) -> Provenance:
        """How and where, with the seconds since the start."""
        import torch

        return provenance.collect(
            command=" ".join(["fsbench", *sys.argv[1:]]),
            device=devices.model_name(self.device),
            cpu_capability=torch.backends.cpu.get_cpu_capability(),
            threads=torch.get_num_threads(),
            batch_size=self.batch_size,
            halvings=self.halvings,
            started=self.started,
            seconds=time.monotonic() - self.tick,
        )

    @property
    def environment(self) -> dict[str, str]:
        """What equal bits depend on (design.md 5)."""
        return provenance.environment(self.provenance())
