"""Claims of the papers that a small machine can check, one file each; the file name is the name.

A file defines

    SOURCE  paper, section, table or figure
    CLAIM   the claim in one line
    RULE    which result gives which verdict
    SEEDS   default number of seeds (0: nothing is random)
    run     (seeds, report) -> ClaimOutcome

All files share these names because the registry reads them. `fsbench reproduce` lists and runs
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from types import ModuleType
from typing import Any, Literal

from fsbench.core.errors import UsageError
from fsbench.core.panels import Panel
from fsbench.core.registry import Registry
from fsbench.core.specs import Frozen

ClaimVerdict = Literal["reproduced", "direction only", "not reproduced"]
DIRECTED_SHARE = 0.9
"""Part of a claim's figures that must have the published direction for `direction only`."""
OVERALL = (
    "claim: reproduced if all figures are; direction only if at least 9 in 10 figures have at"
    " least the published direction; otherwise not reproduced"
)


class ClaimFigure(Frozen):
    """One checkable statement of a paper: what it says, what was measured here, and the verdict."""

    what: str
    published: str
    ours: str
    verdict: ClaimVerdict


class ClaimOutcome(Frozen):
    """The result of re-running a claim."""

    source: str
    claim: str
    rule: str
    seeds: int
    figures: tuple[ClaimFigure, ...]
    verdict: ClaimVerdict
    notes: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()


def judge_claim(figures: Iterable[ClaimFigure]) -> ClaimVerdict:
    """Return the verdict on a claim by the rule OVERALL."""
    verdicts = [figure.verdict for figure in figures]
    if all(verdict == "reproduced" for verdict in verdicts):
        return "reproduced"
    directed = sum(verdict != "not reproduced" for verdict in verdicts)
    return "direction only" if directed >= DIRECTED_SHARE * len(verdicts) else "not reproduced"


def judge_gains(gains: Sequence[float]) -> ClaimVerdict:
    """Return `reproduced` if every seed gains, `direction only` if the mean does."""
    if min(gains) > 0:
        return "reproduced"
    return "direction only" if fmean(gains) > 0 else "not reproduced"


def require_two_seeds(seeds: int) -> None:
    """Raise UsageError for fewer than two seeds, which have no standard deviation."""
    if seeds < 2:
        raise UsageError(f"--seeds {seeds} gives no standard deviation", fix="use at least 2")


PARTS = ("SOURCE", "CLAIM", "RULE", "SEEDS", "run")


def _pick(module: ModuleType) -> Any:
    missing = [part for part in PARTS if not hasattr(module, part)]
    if missing:
        raise LookupError(f"it defines no {', '.join(missing)}")
    return module


CLAIMS: Registry[Any] = Registry("claim", "fsbench.reproductions", _pick)
"""Module of a claim by name."""
