"""Which code decided: a digest of everything that reads and checks results.

sha-256 over the sources of the core, the data, the results, the protocols (whose files declare the
settings that results may hold) and this folder, and over the versions of Python, NumPy and
pydantic. Wider than needed, so that no change of a rule is missed.
"""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pydantic

PACKAGES = ("fsbench.core", "fsbench.data", "fsbench.results", "leaderboard", "protocols")


@cache
def version() -> str:
    """64 hex digits."""
    versions = (platform.python_version(), np.__version__, pydantic.VERSION)
    digest = hashlib.sha256(" ".join(versions).encode())
    for file in sources():
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"\n{file.parent.name}/{file.name} {content}".encode())
    return digest.hexdigest()


def sources() -> list[Path]:
    """Return the modules of the packages and of their subpackages."""
    specs = [find_spec(name) for name in PACKAGES]
    folders = [Path(p) for spec in specs if spec for p in spec.submodule_search_locations or ()]
    return [file for folder in folders for file in sorted(folder.rglob("*.py"))]
