"""Sweeps on clusters: kills of a node and of the driver end at the bits of a sweep left alone."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from support import slurm
from support.sweep import hashes, start, sweep, wait_for_training, write

from fsbench.api.options import SweepOptions
from fsbench.core.errors import UsageError
from fsbench.sweep import engines


def test_an_engine_that_is_not_installed_is_an_error_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("ray", "submitit"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setenv("PATH", "")
    for engine in ("ray", "slurm"):
        with pytest.raises(UsageError, match=r"pip install 'fsbench\[cluster\]'"):
            engines.make_engine(SweepOptions(output=tmp_path, engine=engine))
    with pytest.raises(UsageError, match="where sbatch and sacct work"):
        engines.ask_slurm("sacct", "--noheader")


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
