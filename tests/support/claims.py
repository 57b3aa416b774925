"""Claims judged on planted quantities, and measurements that run in another process."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from fsbench.claims.engine import (
    Claim,
    ClaimCondition,
    ClaimFigure,
    ClaimJob,
    Runs,
    StatementOutcome,
)

FOUND, NOT_FOUND = (
    ClaimCondition(what="colour images", required="on disk", ours=ours, holds=ours == "found")
    for ours in ("found", "not found")
)


def judge_planted(
    claim: Claim, runs: Mapping[Any, list[Mapping[str, Any]]], images: ClaimCondition = FOUND
) -> dict[str, StatementOutcome]:
    """Return the outcome of every statement by name."""
    return {outcome.name: outcome for outcome in claim.judge(Runs(runs), images).statements}


def list_verdicts(figures: Sequence[ClaimFigure]) -> list[str]:
    return [figure.verdict for figure in figures]


def square_seed(job: ClaimJob) -> dict[str, Any]:
    """Measure the seed, the process and its folder for temporary files."""
    place = {"pid": os.getpid(), "folder": tempfile.gettempdir()}
    return {"square": job.seed**2, **place}
