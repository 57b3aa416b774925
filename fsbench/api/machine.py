"""Run context: device, batch size, provenance and progress of a run."""

import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from fsbench.api.options import Machine
from fsbench.core import process
from fsbench.core.progress import SILENT, Reporter, console_reporter
from fsbench.core.schema import FeatureCost, Provenance, make_printable
from fsbench.results import provenance


@dataclass(frozen=True)
class RunContext:
    """Device and batch size of a run, and when it started.

    halvings: of the episodes that share a forward pass, where memory was too small for all;
    features_device: model of the device that extracted the features.
    """

    device: str
    batch_size: int | None = None
    halvings: int = 0
    features_device: str | None = None
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    start_time: float = field(default_factory=time.monotonic)

    @classmethod
    def start(cls, machine: Machine) -> "RunContext":
        """Set the threads, resolve the device and return the context of a run that starts now."""
        import torch

        if machine.threads is not None:
            torch.set_num_threads(machine.threads)
        return cls(process.resolve_device(machine.device), machine.batch_size)

    def provenance(self, cost: FeatureCost | None = None) -> Provenance:
        """Return how and where the run computes, the seconds since its start, and this cost."""
        import torch

        from fsbench.backbones.kernels import PRECISION

        device = process.device_model(self.device)
        return Provenance(
            **provenance.describe_software(),
            command=make_printable(" ".join(["fsbench", *sys.argv[1:]])),
            device=device,
            features_device=None if self.features_device == device else self.features_device,
            cpu_capability=torch.backends.cpu.get_cpu_capability(),
            threads=torch.get_num_threads(),
            batch_size=self.batch_size,
            halvings=self.halvings,
            precision=PRECISION,
            started=self.started,
            seconds=time.monotonic() - self.start_time,
            cost=cost,
        )

    @cached_property
    def environment(self) -> dict[str, str]:
        """Facts on which equal bits depend; results of other environments are not mixed."""
        return provenance.environment_of(self.provenance())


def progress_reporter(progress: bool | Reporter) -> Reporter:
    """Return the reporter of the first process; under torchrun the other ranks are silent."""
    if progress is False or not process.is_first_process():
        return SILENT
    return console_reporter() if progress is True else progress
