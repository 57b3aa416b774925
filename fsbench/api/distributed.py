"""Evaluation by several processes: `torchrun --nproc-per-node N -m fsbench benchmark ...`.

Rank r computes the blocks of --shard r/N of every cell and every Nth probe, all ranks into one
results folder, whose locks make shards come together there. Features are extracted by the first who
needs them, while the others wait. At the end rank 0 reads the whole, and alone reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from fsbench.api import evaluate as alone
from fsbench.api.evaluate import Evaluation, Models
from fsbench.api.machine import Machine
from fsbench.api.request import EvaluationRequest
from fsbench.backbones import devices
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import TaskId

PATIENCE = timedelta(days=30)
"""Ranks end at different times; one that has failed is noticed at once."""


def evaluate(
    models: Models,
    request: EvaluationRequest,
    *,
    roots: Sequence[str] = (),
    output: Path = Path("results"),
    machine: Machine | None = None,
    yes: bool = False,
    report: Reporter = SILENT,
) -> list[Result]:
    """As run_request, by all processes that torchrun started; [] on every rank but the first.

    The records are those of one process with the same `machine.threads`. Raises UsageError for a
    shard besides those of the ranks, FsbenchError when another rank has failed.
    """
    from fsbench.core.distributed import several

    settings: dict[str, Any] = {"roots": roots, "output": output, "report": report}
    if not several():
        return alone.run_request(models, request, machine=machine, yes=yes, **settings)[0]
    if request.shard != (0, 1):
        raise UsageError("--shard under torchrun, which makes shards", fix="leave one of them out")
    settings["machine"] = placed(machine or Machine())
    with gathered() as rank:
        if request.overwrite and rank.first:
            clear(models, request, yes, settings)
        rank.wait()
        request = replace(request, overwrite=False)
        work(models, replace(request, shard=(rank.rank, rank.size)), yes, settings)
        rank.wait()
        return alone.run_request(models, request, yes=yes, **settings)[0] if rank.first else []


@contextmanager
def gathered() -> Iterator[Any]:
    """The ranks, joined. The process group is left open after an error: the process ends then."""
    from torch import distributed

    from fsbench.core.distributed import present, together

    with together():
        distributed.init_process_group("gloo", timeout=PATIENCE)
    yield present()
    distributed.destroy_process_group()


def placed(machine: Machine) -> Machine:
    """The machine with this rank's own GPU, where it has GPUs."""
    import torch

    from fsbench.core.distributed import own_device

    return replace(machine, device=str(own_device(torch.device(devices.resolve(machine.device)))))


def work(models: Models, request: EvaluationRequest, yes: bool, settings: dict[str, Any]) -> None:
    """Compute what the rank of the request's shard is to do."""
    for bench in alone.start_evaluations(models, request, **settings):
        bench.refuse_long(yes)
        for task in tasks(bench):
            bench.evaluate(task)


def tasks(bench: Evaluation) -> Iterator[TaskId]:
    """Its share of the probes, and cells in which it has blocks: there may be more ranks."""
    rank, size = bench.request.shard
    probes = [task for task in bench.request.tasks if task.probe]
    for task in bench.request.tasks:
        spec = bench.spec(task)
        if bench.blocks(spec) if isinstance(spec, EpisodicSpec) else task in probes[rank::size]:
            yield task


def clear(models: Models, request: EvaluationRequest, yes: bool, settings: dict[str, Any]) -> None:
    """Forget the results that are to be replaced (--overwrite)."""
    for bench in alone.start_evaluations(models, request, **settings):
        bench.refuse_long(yes)
        for task in request.tasks:
            bench.cell(task).clear()
