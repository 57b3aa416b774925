"""A node of a Ray cluster dies while a sweep runs on it; where Ray is installed."""

import importlib.util
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stress.tally import Row
from stress.trial import Trials
from support.sweep import ENTRY, hashes, place, read, sweep

from fsbench.sweep.file import SweepFile
from fsbench.sweep.job import Workplace
from fsbench.sweep.schedule import EngineOptions, plan_sweep, run_sweep
from fsbench.sweep.status import StateFiles

METHODS = ("seal", "llf", "welsr", "swr")
JOBS_AT_LEAST = 12
EPOCHS = 200
"""Of a round: long enough for both nodes to be seen at work."""


def killed(trials: Trials, seeds: Iterable[int]) -> Row:
    """Of two busy nodes one dies: the sweep ends with the hashes and entries of local processes."""
    row = Row("node killed", "sweep on Ray")
    if importlib.util.find_spec("ray") is None:
        return row
    for seed in seeds:
        folder = trials.work / f"nodes-{seed}"
        folder.mkdir()
        retries = {kind: {"retries": 3} for kind in ("round", "pretrain", "evaluate")}
        data = sweep(folder, methods=METHODS, submit=ENTRY, jobs=retries)
        data["pretrain"][0]["set"]["plan.epochs"] = EPOCHS
        file = read(data)
        alone, there = (place(folder, name, board=folder / f"{name} board") for name in "ab")
        failed = run_sweep(file, alone, EngineOptions(jobs=2))
        with cluster() as nodes:
            victim, _ = nodes.add_node(num_cpus=1), nodes.add_node(num_cpus=1)
            killer = threading.Thread(target=when_busy, args=(nodes, victim, there), daemon=True)
            killer.start()
            failed |= run_sweep(file, there, EngineOptions(engine="ray", address=nodes.address))
            killer.join()
        problems = f"{failed or ''}{complaints(file, there)}"
        row.judge(outcome(alone), outcome(there), [], problems)
    return row


@contextmanager
def cluster() -> Iterator[Any]:
    """A cluster on this machine: a head that takes no job."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield made
    finally:
        made.shutdown()


def when_busy(nodes: Any, victim: Any, there: Workplace) -> None:
    """Once two trainings are under way, one on each of the nodes, kill one of these."""
    until = time.monotonic() + 120
    while len(training(there)) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    nodes.remove_node(victim, allow_graceful=False)


def training(there: Workplace) -> list[Path]:
    """Runs that have a checkpoint and no end yet."""
    begun = [path.parent for path in there.output.glob("runs/*/checkpoint.json")]
    return [folder for folder in begun if not (folder / "run.json").exists()]


def outcome(there: Workplace) -> dict[str, str]:
    """Hashes of weights and records, and the entries' names."""
    return {**hashes(there.output), **dict.fromkeys(entries(there.board), "entry")}


def entries(board: Path) -> list[str]:
    return sorted(path.parent.name for path in board.glob("*/entry.json"))


def complaints(file: SweepFile, there: Workplace) -> str:
    """What shows that the trial was none: too few jobs, none tried again, or one not done."""
    keys = plan_sweep(file, there).graph.jobs
    states = [StateFiles(there.output).read(key) for key in keys]
    problems = "" if len(keys) >= JOBS_AT_LEAST else f"only {len(keys)} jobs"
    if max((state.attempt for state in states if state), default=0) < 2:
        problems += " no job was tried again"
    if any(state is None or state.state != "done" for state in states):
        problems += f" states {states}"
    return problems
