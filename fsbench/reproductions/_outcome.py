"""What re-running a claim gives: figures beside the published ones, each with a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from fsbench.core.specs import Frozen

Verdict = Literal["reproduced", "direction only", "not reproduced"]
MOST = 0.9
"""Part of a claim's figures that must have the published direction for `direction only`."""
OVERALL = (
    "the claim: reproduced when all figures are; direction only when at least 9 in 10 have at"
    " least the published direction; else not reproduced"
)


class Figure(Frozen):
    """One checkable statement of a paper, theirs and ours in words or numbers."""

    what: str
    published: str
    ours: str
    verdict: Verdict


class Curve(Frozen):
    """Values over a common axis, ours or (published) the paper's own.

    low, high: a range around every value, where there is one.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    published: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


class Panel(Frozen):
    """One picture of an outcome; x and y name the axes with their units.

    ticks: names of the positions 1, 2, ...; bars: every curve is one value, its label its name.
    """

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    log_x: bool = False
    y_scale: Literal["linear", "log", "symlog"] = "linear"
    from_zero: bool = False
    ticks: tuple[str, ...] = ()
    bars: bool = False


class Outcome(Frozen):
    """A claim re-run."""

    source: str
    claim: str
    rule: str
    seeds: int
    figures: tuple[Figure, ...]
    verdict: Verdict
    notes: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()


def overall(figures: Iterable[Figure]) -> Verdict:
    """The claim's verdict by the rule OVERALL."""
    verdicts = [figure.verdict for figure in figures]
    if all(verdict == "reproduced" for verdict in verdicts):
        return "reproduced"
    directed = sum(verdict != "not reproduced" for verdict in verdicts)
    return "direction only" if directed >= MOST * len(verdicts) else "not reproduced"
