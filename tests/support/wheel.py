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
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"fsbench", "pretrain", "protocols", "leaderboard"}
PUBLISHED = sorted(ROOT.glob("leaderboard/published/*.json"))
BOARDS = sorted(ROOT.glob("leaderboard/boards/*.json"))
MEASURED = ("leaderboard/studies/",)
LARGEST = 2_000_000
"""Bytes of the wheel. Measured entries alone would take 7 MB."""
EPISODES = """episodic -m fsbench/toy_resnet --random-init 0 -t toy --shots 1 --episodes 4
--input-size native -o results"""


def main(environment: Path, work: Path) -> None:
    if environment.exists():
        raise SystemExit(f"{environment} is there already: name a folder that does not exist")
    wheel = build(work)
    require_packages(wheel)
    install(environment, wheel)
    require_use(environment, work)


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
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    require(tops == PACKAGES, f"the wheel holds {sorted(tops)}")
    typed = {f"{top}/py.typed" for top in PACKAGES}
    require(typed <= set(names), f"the wheel lacks {sorted(typed - set(names))}")
    data = {str(path.relative_to(ROOT)) for path in (*PUBLISHED, *BOARDS)}
    require(data <= set(names), f"the wheel lacks {sorted(data - set(names))}")
    measured = [name for name in names if name.startswith(MEASURED) and name not in data]
    require(not measured, f"the wheel holds {len(measured)} files of measurements: {measured[:3]}")
    size = wheel.stat().st_size
    require(size < LARGEST, f"the wheel has {size:,} bytes, more than {LARGEST:,}")


def require_use(environment: Path, work: Path) -> None:
    """Require that the installed commands evaluate, show results and rank the clone's entries."""
    env = {"FSBENCH_CACHE": str(work / "cache"), "HF_HUB_OFFLINE": "1"}
    where = "import fsbench; print(fsbench.__file__)"
    result = call(environment / "bin" / "python", "-c", where, cwd=work, env=env)
    require(str(environment) in result, f"fsbench comes from {result}")
    fsbench = environment / "bin" / "fsbench"
    call(fsbench, *EPISODES.split(), cwd=work, env=env)
    require("5w1s" in call(fsbench, "show", "results", cwd=work, env=env), "no result is shown")
    listed = json.loads(call(fsbench, "ls", "entries", "--json", cwd=work, env=env))
    require(len(listed) == len(PUBLISHED), f"{len(listed)} of {len(PUBLISHED)} entries are listed")
    board = ("--board", ROOT / "leaderboard" / "studies" / "pilot" / "entries")
    shown = call(fsbench, "leaderboard", "show", *board, "--wide", cwd=work, env=env)
    require("pilot-normal" in shown, "no measured entry of the clone is shown")
    require("seal-paper-seal" in shown, "no published row is shown beside the clone's board")
    call(fsbench, "leaderboard", "check", *board, cwd=work, env=env)


def call(*command: str | Path, cwd: Path, env: Mapping[str, str] = MappingProxyType({})) -> str:
    """What the command prints; `env` is added to this environment without Python's own settings.

    Raises SystemExit with all that it said when it fails.
    """
    words = [str(part) for part in command]
    plain = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=plain | dict(env))
    require(done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(otherwise)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        main(Path(sys.argv[1]).absolute() if sys.argv[1:] else work / "environment", work)
