"""Provenance of a number, collected without torch: versions, platform, command, commit."""

import platform
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from fsbench.core import __version__
from fsbench.core.schema import Provenance

PACKAGES = ("torch", "torchvision", "timm", "numpy", "pillow", "scikit-learn", "pyarrow")
"""Packages that numbers may depend on."""


def describe_software() -> dict[str, Any]:
    """Return versions, commit and platform of this process, as fields of a Provenance."""
    return {
        "fsbench": __version__,
        "git_commit": git_commit(),
        "python": platform.python_version(),
        "packages": {p: metadata.version(p) for p in PACKAGES if [*metadata.distributions(name=p)]},
        "platform": f"{platform.system()} {platform.machine()}",
    }


def environment_of(provenance: Provenance) -> dict[str, str]:
    """Return the parts that equal bits depend on; results that differ here are not mixed."""
    parts = {
        "torch": provenance.packages.get("torch", "none"),
        "device": provenance.device,
        "device of features": provenance.features_device,
        "cpu capability": provenance.cpu_capability,
        "threads": provenance.threads,
        "batch size": provenance.batch_size,
        "halvings": provenance.halvings,
    }
    return {part: str(value) for part, value in parts.items() if value}


def describe_changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Return what differs, e.g. 'threads: 1 -> 2'; `default` is a part that one leaves out."""
    both = [(p, before.get(p, "default"), now.get(p, "default")) for p in {**before, **now}]
    return [f"{part}: {old} -> {new}" for part, old, new in both if old != new]


@cache
def git_commit() -> str | None:
    """Return the commit of this checkout when loaded, `-dirty` if changed; None if installed."""
    home = Path(__file__).resolve().parents[2]
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
