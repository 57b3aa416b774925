"""How and where a number was made: collected without torch, so that any command can state it."""

from __future__ import annotations

import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from fsbench import __version__
from fsbench.schema import Provenance

PACKAGES = ("torch", "torchvision", "timm", "numpy", "pillow", "scikit-learn", "pyarrow")
"""What numbers may depend on."""


def collect(
    *,
    command: str,
    device: str,
    cpu_capability: str,
    threads: int,
    started: str,
    seconds: float,
) -> Provenance:
    """Versions, commit and platform of this process with the given facts of the run.

    command: as typed, paths untouched; device: cpu or the GPU's name; started: UTC, ISO 8601.
    """
    return Provenance(
        command=command,
        fsbench=__version__,
        git_commit=git_commit(),
        python=platform.python_version(),
        packages={name: v for name in PACKAGES if (v := version(name))},
        platform=f"{platform.system()} {platform.machine()}",
        device=device,
        cpu_capability=cpu_capability,
        threads=threads,
        started=started,
        seconds=seconds,
    )


def environment(provenance: Provenance) -> dict[str, str]:
    """What equal bits depend on (design.md 5); results that differ here are not mixed."""
    return {
        "torch": provenance.packages.get("torch", "none"),
        "device": provenance.device,
        "cpu capability": provenance.cpu_capability,
        "threads": str(provenance.threads),
    }


def differences(a: Provenance, b: Provenance) -> str:
    """The fields of the environment that differ, with both values; empty when none does."""
    mine, other = environment(a), environment(b)
    return ", ".join(f"{k} {mine[k]} and {other[k]}" for k in mine if mine[k] != other[k])


def version(package: str) -> str | None:
    """Installed version of a distribution, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def git_commit() -> str | None:
    """Commit of the checkout this package lies in, `-dirty` when changed; None if installed."""
    home = Path(__file__).resolve().parent.parent
    git = shutil.which("git")
    if git is None or not (home / ".git").exists():
        return None
    done = subprocess.run(
        [git, "-C", str(home), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None
