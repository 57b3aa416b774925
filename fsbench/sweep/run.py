"""A sweep from its file: planned, run on an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fsbench.core.progress import SILENT, Reporter
from fsbench.sweep import committed, graph
from fsbench.sweep.engine import Engine
from fsbench.sweep.file import SweepFile
from fsbench.sweep.place import Place
from fsbench.sweep.plan import Plan, plan
from fsbench.sweep.schedule import Schedule
from fsbench.sweep.states import States

EngineName = Literal["local", "ray"]


@dataclass(frozen=True)
class How:
    """Where the jobs run. jobs: processes of the local engine; address: of the Ray cluster."""

    engine: EngineName = "local"
    jobs: int = 1
    address: str | None = None


def planned(file: SweepFile, place: Place, report: Reporter = SILENT) -> Plan:
    """The jobs of the file and which of them are done."""
    place.machine.start()
    committed.forget()
    return plan(graph.build(file, place, report), place)


def run(
    file: SweepFile, place: Place, how: How, report: Reporter = SILENT, seen: Plan | None = None
) -> dict[str, str]:
    """Run what is missing; title -> reason of every job that failed, in the order of the graph.

    seen: the plan, where it was made already. Raises FsbenchError when another sweep runs in the
    folder, UsageError for an engine that is not installed.
    """
    states = States(place.output)
    with states.owned():
        todo = seen or planned(file, place, report)
        if not todo.missing:
            return {}
        engine = start(file, place, how, report)
        failed = Schedule(file, todo, engine, states, report).run()
    return {job.title: failed[key] for key, job in todo.graph.jobs.items() if key in failed}


def start(file: SweepFile, place: Place, how: How, report: Reporter) -> Engine:
    """The engine asked for."""
    if how.engine == "ray":
        from fsbench.sweep.cluster import RayEngine

        return RayEngine(file, place, how.address, report)
    import torch

    from fsbench.sweep.local import LocalEngine

    return LocalEngine(file, place, how.jobs, torch.cuda.device_count())
