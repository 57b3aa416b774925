"""What re-running a claim gives: figures beside the published ones, each with a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from fsbench.core.panels import Panel
from fsbench.core.specs import Frozen

ClaimVerdict = Literal["reproduced", "direction only", "not reproduced"]
MOST = 0.9
"""Part of a claim's figures that must have the published direction for `direction only`."""
OVERALL = (
    "the claim: reproduced when all figures are; direction only when at least 9 in 10 have at"
    " least the published direction; else not reproduced"
)


class ClaimFigure(Frozen):
    """One checkable statement of a paper, theirs and ours in words or numbers."""

    what: str
    published: str
    ours: str
    verdict: ClaimVerdict


class ClaimOutcome(Frozen):
    """A claim re-run."""

    source: str
    claim: str
    rule: str
    seeds: int
    figures: tuple[ClaimFigure, ...]
    verdict: ClaimVerdict
    notes: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()


def judge_claim(figures: Iterable[ClaimFigure]) -> ClaimVerdict:
    """The claim's verdict by the rule OVERALL."""
    verdicts = [figure.verdict for figure in figures]
    if all(verdict == "reproduced" for verdict in verdicts):
        return "reproduced"
    directed = sum(verdict != "not reproduced" for verdict in verdicts)
    return "direction only" if directed >= MOST * len(verdicts) else "not reproduced"
