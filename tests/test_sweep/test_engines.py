"""Sweeps on clusters: kills of a node and of the driver end at the bits of a sweep left alone."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from support import slurm
from support.jobs import Fake
from support.sweep import hashes, make_options, start, sweep, wait_for_training, write

from fsbench.api.options import SweepOptions
from fsbench.core import clusters
from fsbench.core.errors import FsbenchError, UsageError
from fsbench.sweep.file import GpuShares
from fsbench.sweep.job import UserMethods, run_job
from fsbench.sweep.schedule import find_gpus, make_engine


def test_a_time_limit_of_slurm_is_in_minutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitit = {name: Mock() for name in ("submitit", "submitit.core", "submitit.core.utils")}
    monkeypatch.setattr(sys, "modules", sys.modules | submitit)
    for time in ("time=24:00:00", "time"):
        options = make_options(tmp_path, engine="slurm", slurm=(time,))
        with pytest.raises(UsageError, match="write minutes"):
            make_engine(options)


def test_an_engine_that_is_not_installed_is_an_error_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("ray", "submitit"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setenv("PATH", "")
    for engine in ("ray", "slurm"):
        with pytest.raises(UsageError, match=r"pip install 'fsbench\[cluster\]'"):
            make_engine(SweepOptions(output=tmp_path, engine=engine))
    with pytest.raises(UsageError, match="where sbatch and sacct work"):
        clusters.ask_slurm("sacct", "--noheader")


@pytest.mark.parametrize(
    ("nodes", "shares", "message"),
    [
        ([(8, 1), (8, 2)], {"pretrain": 2}, ""),
        ([(8, 1), (8, 1)], {"pretrain": 2}, "2 for a training, and a machine has 1"),
        ([(2, 2), (8, 1)], {"pretrain": 2}, "2 for a training, and a machine has 1"),
        ([(8, 0), (2, 1)], {}, ""),
        ([(2, 1), (2, 1)], {}, "no node of Ray has 4 CPUs"),
    ],
)
def test_a_job_that_fits_on_no_node_of_ray_is_refused(
    nodes: list[tuple[int, int]],
    shares: dict[str, int],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nodes are pairs of CPUs and GPUs; jobs have 4 threads. Dead nodes do not count."""
    alive = [{"Alive": True, "Resources": {"CPU": c, "GPU": g}} for c, g in nodes]
    dead = {"Alive": False, "Resources": {"CPU": 99, "GPU": 99}}
    ray = SimpleNamespace(init=Mock(), remote=Mock(), nodes=lambda: [*alive, dead])
    monkeypatch.setitem(sys.modules, "ray", ray)
    options = SweepOptions(engine="ray", threads=4)
    with pytest.raises(UsageError, match=message) if message else nullcontext():
        gpus = find_gpus(options, GpuShares.model_validate(shares))
        assert len(gpus) == sum(gpus for cpus, gpus in nodes if cpus >= 4)


def test_too_few_gpus_are_an_error_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.device_count", iter((0, 2, 1)).__next__)
    assert [len(find_gpus(SweepOptions(), GpuShares(pretrain=n))) for n in (1, 2)] == [0, 2]
    with pytest.raises(UsageError, match=r"and a machine has 1 .*\n.*`gpus: {pretrain: 1}`"):
        find_gpus(SweepOptions(), GpuShares(pretrain=2))


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, str]:
    """Outcomes of a sweep that nothing disturbs; its file is sweep.yaml."""
    file = write(tmp_path / "sweep.yaml", sweep(tmp_path, methods=("llf",)))
    sweeping = start(tmp_path, "whole", file)
    _, said = sweeping.communicate()
    assert sweeping.returncode == 0, said
    return hashes(tmp_path / "whole")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[slurm.Cluster]:
    pytest.importorskip("submitit")
    if missing := slurm.find_programs():
        pytest.skip(f"not installed: {', '.join(missing)} (apt-get: slurm-wlm, slurmdbd, mariadb)")
    if os.getuid() != 0:
        pytest.skip("the programs of SLURM start as root")
    folder = tmp_path / "slurm"
    folder.mkdir()
    with ExitStack() as stack:
        yield slurm.Cluster(folder, stack)


@pytest.mark.slow
def test_slurm_says_what_it_refuses_and_where_a_failed_job_wrote(
    tmp_path: Path, cluster: slurm.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flag has no value; a job of two GPUs finds none, and one that ends has no result."""
    options = make_options(tmp_path, threads=1, slurm=("exclusive", "time=5"))
    options.output.mkdir()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of the job
    with clusters.SlurmEngine(2, options.output, options.slurm) as engine:
        with pytest.raises(UsageError, match="--device cpu where the cluster has no GPUs"):
            engine.submit(run_job, UserMethods(()), Fake(name="a"), replace(options, gpus=2))
        done, dead = (
            engine.submit(run_job, UserMethods(()), Fake(name=name, does=does), options)
            for name, does in {"b": "", "c": "crash"}.items()
        )
        assert done.result() == ""
        with pytest.raises(FsbenchError, match=r"has no result, .*\n.*see .*_0_log.out"):
            dead.result()


def check_kills(
    root: Path, whole: dict[str, str], kill_node: Callable[[], None], *engine: str
) -> None:
    """Kill the node under a sweep, then the driver of another sweep, which a third one ends."""
    file = root / "sweep.yaml"
    sweeping = start(root, "node", file, *engine)
    wait_for_training(sweeping, root / "node")
    kill_node()
    _, said = sweeping.communicate()
    assert sweeping.returncode == 0, said
    assert hashes(root / "node") == whole

    sweeping = start(root, "driver", file, *engine)
    wait_for_training(sweeping, root / "driver")
    sweeping.kill()
    sweeping.communicate()
    _, said = start(root, "driver", file, *engine).communicate()
    assert hashes(root / "driver") == whole, said


@pytest.mark.slow
def test_slurm_survives_a_killed_node_and_a_killed_driver(
    tmp_path: Path, whole: dict[str, str], cluster: slurm.Cluster
) -> None:
    engine = ("--engine", "slurm", "--device", "cpu", "--slurm", "time=60")
    check_kills(tmp_path, whole, cluster.kill_node, *engine)


@pytest.mark.slow
def test_ray_survives_a_killed_node_and_a_killed_driver(
    tmp_path: Path, whole: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a head without CPUs and a node of one, both on this machine."""
    ray_cluster = pytest.importorskip("ray.cluster_utils")
    cluster = ray_cluster.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    node = cluster.add_node(num_cpus=1)

    def kill_node() -> None:
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=1)

    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    try:
        check_kills(tmp_path, whole, kill_node, "--engine", "ray")
    finally:
        cluster.shutdown()
