"""Shared fixtures: no network but loopback, one torch thread, caches in temporary folders."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from support.cli import CommandLine

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
# `deterministic=true` sets it; torch looks for it once, at the first matrix product on a GPU
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("any pace", deadline=None)  # a busy machine is no fault
settings.load_profile("any pace")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections leave this machine in no test; loopback and local sockets work."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        host = address[0] if isinstance(address, tuple) else "localhost"
        if host not in {"127.0.0.1", "::1", "localhost"}:
            raise OSError(f"tests reach no network: {address}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's cache and data settings never reach a test."""
    monkeypatch.setenv("FSBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FSBENCH_DATA", raising=False)


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The width of the user's terminal never reaches a test; tests of widths state them."""
    monkeypatch.delenv("COLUMNS", raising=False)
    os.unsetenv("COLUMNS")  # import readline sets it for child processes, behind os.environ


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Torch runs on one thread, so two workers do not fight and bits do not depend on the host."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test for which too few GPUs are here, before its fixtures are made."""
    if mark := item.get_closest_marker("gpu"):
        import torch

        (needed,), count = mark.args or (1,), torch.cuda.device_count()
        if count < needed:
            pytest.skip(f"GPUs: {needed} needed, {count} here")


@pytest.fixture(params=["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> str:
    """The CPU, and under `-m gpu` the first GPU."""
    return str(request.param)


@pytest.fixture(scope="session")
def packs() -> Path:
    """The folder of real image packs (FSBENCH_TEST_DATA, else ../shared/data); skips without it."""
    folder = Path(os.environ.get("FSBENCH_TEST_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "eurosat").is_dir():
        pytest.skip(f"no real image packs at {folder}: set FSBENCH_TEST_DATA to run this test")
    return folder


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> "CommandLine":
    """Commands of fsbench in this process, and what they print."""
    from support.cli import CommandLine

    return CommandLine(capfd)
