"""Claims of the papers that a small machine can check, one file each; the file name is the name.

A file defines

    CLAIM   the Claim: its source, statement and rule, and the default number of seeds
    run     (seeds, report) -> ClaimOutcome

`fsbench reproduce` lists and runs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Claim:
    """A claim of a paper. source: paper, section, table or figure; statement: one line.

    rule: which result gives which verdict on a figure; seeds: default number (0: nothing is
    random).
    """

    source: str
    statement: str
    rule: str
    seeds: int = 0

    def judge(
        self,
        seeds: int,
        figures: Iterable[ClaimFigure],
        notes: Iterable[str] = (),
        panels: Iterable[Panel] = (),
    ) -> ClaimOutcome:
        """Return the outcome of the claim over this many seeds."""
        figures = tuple(figures)
        return ClaimOutcome(
            source=self.source,
            claim=self.statement,
            rule=f"{self.rule}; {OVERALL}",
            seeds=seeds,
            figures=figures,
            verdict=judge_claim(figures),
            notes=tuple(notes),
            panels=tuple(panels),
        )


def judge_claim(figures: Iterable[ClaimFigure]) -> ClaimVerdict:
    """Return the verdict on a claim by the rule OVERALL."""
    verdicts = [figure.verdict for figure in figures]
    directed = sum(verdict != "not reproduced" for verdict in verdicts)
    return choose_verdict(
        all(verdict == "reproduced" for verdict in verdicts),
        directed >= DIRECTED_SHARE * len(verdicts),
    )


def judge_gains(gains: Sequence[float]) -> ClaimVerdict:
    """Return `reproduced` if every seed gains, `direction only` if the mean does."""
    return choose_verdict(min(gains) > 0, fmean(gains) > 0)


def choose_verdict(reproduced: bool, directed: bool = False) -> ClaimVerdict:
    """Return the first that holds: reproduced, direction only if `directed`, not reproduced."""
    return "reproduced" if reproduced else "direction only" if directed else "not reproduced"


def require_two_seeds(seeds: int) -> None:
    """Raise UsageError for fewer than two seeds, which have no standard deviation."""
    if seeds < 2:
        raise UsageError(f"--seeds {seeds} gives no standard deviation", fix="use at least 2")


PARTS = ("CLAIM", "run")


def _pick(module: ModuleType) -> Any:
    missing = [part for part in PARTS if not hasattr(module, part)]
    if missing:
        raise LookupError(f"it defines no {', '.join(missing)}")
    return module


CLAIMS: Registry[Any] = Registry("claim", "fsbench.reproductions", _pick)
"""Module of a claim by name."""
