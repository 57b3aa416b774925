"""What users install: the built wheel alone in an empty environment, used from another folder.

    python tests/wheel.py [ENVIRONMENT]

ENVIRONMENT is a folder that does not exist yet; a temporary one when left out. The standard library
is enough, so that this runs before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"fsbench", "pretrain", "protocols", "leaderboard"}
EPISODES = """episodic -m fsbench/toy_resnet --random-init 0 -t toy --shots 1 --episodes 4
--input-size native -o results"""


def main(environment: Path, work: Path) -> None:
    if environment.exists():
        raise SystemExit(f"{environment} is there already: name a folder that does not exist")
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    wheel = build(python, work)
    require_packages(wheel)
    call(python, "-m", "pip", "install", "--quiet", wheel, cwd=work)
    require_use(environment, work)


def build(python: Path, work: Path) -> Path:
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # it would be packed, too
    call(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", work, ROOT, cwd=work)
    return next(work.glob("fsbench-*.whl"))


def require_packages(wheel: Path) -> None:
    """The four packages with their types and boards, and no tests."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    require(tops == PACKAGES, f"the wheel holds {sorted(tops)}")
    typed = {f"{top}/py.typed" for top in PACKAGES}
    require(typed <= set(names), f"the wheel lacks {sorted(typed - set(names))}")
    for folder in ("leaderboard/entries/", "leaderboard/boards/"):
        require(any(name.startswith(folder) for name in names), f"the wheel lacks {folder}")


def require_use(environment: Path, work: Path) -> None:
    """Installed, it evaluates a backbone, shows the results and ranks the entries it brings."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    env |= {"FSBENCH_CACHE": str(work / "cache"), "HF_HUB_OFFLINE": "1"}
    where = "import fsbench; print(fsbench.__file__)"
    found = call(environment / "bin" / "python", "-c", where, cwd=work, env=env)
    require(str(environment) in found, f"fsbench comes from {found}")
    fsbench = environment / "bin" / "fsbench"
    call(fsbench, *EPISODES.split(), cwd=work, env=env)
    require("5w1s" in call(fsbench, "show", "results", cwd=work, env=env), "no result is shown")
    require("SEAL" in call(fsbench, "ls", "entries", cwd=work, env=env), "no entry is listed")


def call(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """What the command prints. Raises SystemExit with all that it said when it fails."""
    words = [str(part) for part in command]
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=env)
    require(done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise SystemExit(otherwise)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        main(Path(sys.argv[1]).absolute() if sys.argv[1:] else work / "environment", work)
