"""A measurement of a claim that runs in another process."""

import os
import tempfile
from typing import Any

from fsbench.claims.engine import ClaimJob


def measure_seed(job: ClaimJob) -> dict[str, Any]:
    """Measure the seed, the process and its folder for temporary files."""
    return {"square": job.seed**2, "pid": os.getpid(), "folder": tempfile.gettempdir()}
