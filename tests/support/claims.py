"""Conditions of the claims, and a measurement that runs in another process."""

import os
import tempfile
from typing import Any

from fsbench.claims.engine import ClaimCondition, ClaimJob

FOUND, NOT_FOUND = (
    ClaimCondition(what="colour images", required="on disk", ours=ours, holds=ours == "found")
    for ours in ("found", "not found")
)


def measure_seed(job: ClaimJob) -> dict[str, Any]:
    """Measure the seed, the process and its folder for temporary files."""
    return {"square": job.seed**2, "pid": os.getpid(), "folder": tempfile.gettempdir()}
