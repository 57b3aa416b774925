"""What users install: the built wheel alone in an empty environment, used from another folder.

    python tests/support/wheel.py [ENVIRONMENT]

The source distribution and the wheel that is built from it are left in dist/. ENVIRONMENT is a
folder that does not exist yet; a temporary one when left out. The standard library is enough, so
that this runs before anything is installed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"fsbench", "pretrain", "protocols", "leaderboard"}
PUBLISHED = sorted(ROOT.glob("leaderboard/published/*.json"))
BOARDS = sorted(ROOT.glob("leaderboard/boards/*.json"))
LARGEST = 2_000_000
"""Bytes of the wheel. Measured entries alone would take 7 MB."""
EPISODES = """episodic -m fsbench/toy_resnet --random-init 0 -t toy --shots 1 --episodes 4
--input-size native -o results"""


def build(work: Path) -> Path:
    """Build both distributions into dist/, with a tool that users do not need."""
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    python = install(work / "tools", "build")
    call(python, "-m", "build", "--outdir", ROOT / "dist", ROOT, cwd=work)
    return next(ROOT.glob("dist/fsbench-*.whl"))


def install(environment: Path, package: str | Path) -> Path:
    """Make an environment that holds one package and what it needs. Return its interpreter."""
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    call(python, "-m", "pip", "install", "--quiet", package, cwd=ROOT.parent)
    return python


def require_packages(wheel: Path) -> None:
    """Require the packages, their types, boards and published rows, and no measured entry."""
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tops = {name.split("/")[0] for name in names}
    require(tops == PACKAGES, f"the wheel holds {sorted(tops)}")
    needed = {f"{top}/py.typed" for top in PACKAGES}
    needed |= {path.relative_to(ROOT).as_posix() for path in (*PUBLISHED, *BOARDS)}
    require(needed <= names, f"the wheel lacks {sorted(needed - names)}")
    measured = sorted(name for name in names if name.startswith("leaderboard/studies/"))
    require(not measured, f"the wheel holds {len(measured)} files of measurements: {measured[:3]}")
    size = wheel.stat().st_size
    require(size < LARGEST, f"the wheel has {size:,} bytes, more than {LARGEST:,}")


def require_use(python: Path, work: Path) -> None:
    """Require that the installed commands evaluate, show results and rank the clone's entries."""

    def run(*arguments: str | Path) -> str:
        return call(*arguments, cwd=work, FSBENCH_CACHE=str(work / "cache"), HF_HUB_OFFLINE="1")

    source = run(python, "-c", "import fsbench; print(fsbench.__file__)")
    require(str(python.parents[1]) in source, f"fsbench comes from {source}")
    fsbench = python.with_name("fsbench")
    run(fsbench, *EPISODES.split())
    require("5w1s" in run(fsbench, "show", "results"), "no result is shown")
    listed = json.loads(run(fsbench, "ls", "published", "--json"))
    require(len(listed) == len(PUBLISHED), f"{len(listed)} of {len(PUBLISHED)} entries are listed")
    board = ("--board", ROOT / "leaderboard" / "studies" / "pilot" / "entries")
    shown = run(fsbench, "leaderboard", "show", *board, "--wide")
    require("pilot-normal" in shown, "no measured entry of the clone is shown")
    require("seal-paper-seal" in shown, "no published row is shown beside the clone's board")
    run(fsbench, "leaderboard", "check", *board)


def call(*command: str | Path, cwd: Path, **env: str) -> str:
    """Return what a command prints; `env` is added to this environment without Python's settings.

    Raises SystemExit with all that it printed when it fails.
    """
    texts = [str(part) for part in command]
    plain = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(texts, capture_output=True, text=True, cwd=cwd, env=plain | env)
    require(done.returncode == 0, f"{' '.join(texts)}\n{done.stdout}{done.stderr}")
    return done.stdout


def require(is_met: bool, otherwise: str) -> None:
    if not is_met:
        raise SystemExit(otherwise)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(*sys.argv[1:2] or [folder, "environment"]).absolute()
        require(not environment.exists(), f"{environment} exists: name a new folder")
        wheel = build(Path(folder))
        require_packages(wheel)
        require_use(install(environment, wheel), Path(folder))
