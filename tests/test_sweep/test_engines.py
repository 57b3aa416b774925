"""Sweeps on clusters: kills of a node and of the driver end at the bits of a sweep left alone."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from support import slurm
from support.sweep import hashes, start, sweep, wait_for_training, write

from fsbench.api.options import SweepOptions
from fsbench.core.errors import UsageError
from fsbench.sweep import engines

SLURM = ("--engine", "slurm", "--device", "cpu", "--slurm", "time=60")
RAY = ("--engine", "ray")


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
    with slurm.open_cluster(folder) as opened:
        yield opened


@pytest.mark.slow
def test_slurm_survives_a_killed_node_and_a_killed_driver(
    tmp_path: Path, whole: dict[str, str], cluster: slurm.Cluster
) -> None:
    file = tmp_path / "sweep.yaml"
    sweeping = start(tmp_path, "node", file, *SLURM)
    wait_for_training(sweeping, tmp_path / "node")
    cluster.kill_node()
    _, said = sweeping.communicate()
    assert sweeping.returncode == 0, said
    assert hashes(tmp_path / "node") == whole

    sweeping = start(tmp_path, "driver", file, *SLURM)
    wait_for_training(sweeping, tmp_path / "driver")
    sweeping.kill()
    sweeping.communicate()
    _, said = start(tmp_path, "driver", file, *SLURM).communicate()
    assert hashes(tmp_path / "driver") == whole, said


class RayCluster:
    """A head without CPUs and a node of one, both on this machine."""

    def __init__(self, stack: ExitStack) -> None:
        (port,), self.stack = slurm.free_ports(1), stack
        self.address = f"127.0.0.1:{port}"
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ray-"))
        self.start("--head", f"--port={port}", "--num-cpus=0", f"--temp-dir={folder}")
        self.node = self.start(f"--address={self.address}", "--num-cpus=1")

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.stack.callback(kill_tree, process)
        assert process.stdout is not None
        for line in process.stdout:
            if b"Ray runtime started" in line:
                break
        return process

    def kill_node(self) -> None:
        kill_tree(self.node)
        self.node = self.start(f"--address={self.address}", "--num-cpus=1")


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    for pid in (*slurm.descendants(process.pid), process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_ray_survives_a_killed_node_and_a_killed_driver(
    tmp_path: Path, whole: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    file = tmp_path / "sweep.yaml"
    with ExitStack() as stack:
        cluster = RayCluster(stack)
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        sweeping = start(tmp_path, "node", file, *RAY)
        wait_for_training(sweeping, tmp_path / "node")
        cluster.kill_node()
        _, said = sweeping.communicate()
        assert sweeping.returncode == 0, said
        assert hashes(tmp_path / "node") == whole

        sweeping = start(tmp_path, "driver", file, *RAY)
        wait_for_training(sweeping, tmp_path / "driver")
        sweeping.kill()
        sweeping.communicate()
        _, said = start(tmp_path, "driver", file, *RAY).communicate()
        assert hashes(tmp_path / "driver") == whole, said
