"""Where what can be made again is kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(given: Path | None = None) -> Path:
    """--cache, else FSBENCH_CACHE, else the user's cache folder."""
    if named := given or os.environ.get("FSBENCH_CACHE"):
        return Path(named).expanduser()
    import pooch

    return Path(pooch.os_cache("fsbench"))
