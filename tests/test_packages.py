"""What users install: the built wheel, in an empty environment, used from another folder."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow


def call(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, cwd=cwd, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "build", "--wheel", "--outdir", out, ROOT, cwd=out)
    return next(out.glob("fsbench-*.whl"))


def test_the_wheel_holds_the_four_packages_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"fsbench", "pretrain", "protocols", "leaderboard"}
    assert {f"{top}/py.typed" for top in tops} <= set(names)
    for folder in ("entries", "boards"):
        assert any(name.startswith(f"leaderboard/{folder}/") for name in names)


def test_an_installed_wheel_evaluates_and_ranks_from_another_folder(
    wheel: Path, tmp_path: Path
) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    call(python, "-m", "pip", "install", "--quiet", "--no-compile", wheel, cwd=tmp_path)
    work = tmp_path / "elsewhere"
    work.mkdir()
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env |= {"FSBENCH_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    where = call(python, "-c", "import fsbench; print(fsbench.__file__)", cwd=work, env=env)
    assert str(home) in where
    fsbench = home / "bin" / "fsbench"
    call(
        fsbench,
        "episodic",
        "-m",
        "fsbench/toy_resnet",
        "--random-init",
        "0",
        "-t",
        "toy",
        "--shots",
        "1",
        "--episodes",
        "4",
        "--input-size",
        "native",
        "-o",
        "results",
        cwd=work,
        env=env,
    )
    shown = call(fsbench, "show", "results", cwd=work, env=env)
    assert "5w1s" in shown
    assert "SEAL" in call(fsbench, "ls", "entries", cwd=work, env=env)
