"""The Ray engine: a cluster of three nodes of which one is killed gives what processes give."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fsbench.errors import UsageError
from fsbench.sweep import cluster as engine
from fsbench.sweep.run import How, planned, run
from fsbench.sweep.states import States
from tests.fakes_sweep import ENTRY, hashes, place, read, sweep

METHODS = ("seal", "llf", "welsr", "swr")


@pytest.fixture
def _no_network() -> None:
    """Instead of the guard of all tests: Ray talks to itself by this machine's own address."""


@pytest.fixture
def nodes() -> Iterator[Any]:
    """A cluster on this machine: a head that takes no job."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'fsbench[ray]'")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield made
    finally:
        made.shutdown()


def kill_a_busy_node(made: Any, victim: Any, output: Path) -> None:
    """Once a training has written a checkpoint, kill one of the two nodes, each with a job."""
    until = time.monotonic() + 120
    while not list(output.glob("r*/*/checkpoint.json")) and time.monotonic() < until:
        time.sleep(0.02)
    made.remove_node(victim, allow_graceful=False)


@pytest.mark.slow
def test_a_sweep_outlives_a_node_and_gives_what_the_local_engine_gives(
    nodes: Any, tmp_path: Path
) -> None:
    retries = {kind: {"retries": 3} for kind in ("round", "pretrain", "evaluate")}
    file = read(sweep(tmp_path, methods=METHODS, submit=ENTRY, jobs=retries))
    local = place(tmp_path, "local", board=tmp_path / "a")
    assert len(planned(file, local).graph.jobs) >= 12
    assert run(file, local, How(jobs=2)) == {}

    there = place(tmp_path, "ray", board=tmp_path / "b")
    victim, _ = nodes.add_node(num_cpus=1), nodes.add_node(num_cpus=1)
    killer = threading.Thread(
        target=kill_a_busy_node, args=(nodes, victim, there.output), daemon=True
    )
    killer.start()
    assert run(file, there, How(engine="ray", address=nodes.address)) == {}
    killer.join()
    assert hashes(there.output) == hashes(local.output)
    assert len(hashes(there.output)) == 8
    entries = [sorted(p.parent.name for p in (tmp_path / b).glob("*/entry.json")) for b in "ab"]
    assert entries[0] == entries[1]
    seen = [States(there.output).read(key) for key in planned(file, there).graph.jobs]
    assert max(each.attempt for each in seen if each) > 1
    assert {each.state for each in seen if each} == {"done"}


def test_without_ray_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install 'fsbench\[ray\]'"):
        engine.ray()


@pytest.mark.parametrize(("threads", "refused"), [(4, False), (5, True)])
def test_a_job_that_fits_no_node_is_refused(threads: int, refused: bool) -> None:
    nodes = [{"Resources": {"CPU": 4.0}}, {"Resources": {}}]
    if not refused:
        engine.require_cpus(nodes, threads)
        return
    with pytest.raises(UsageError, match="the largest node of the cluster has 4"):
        engine.require_cpus(nodes, threads)
