"""Estimates of work, and the rule that work of over an hour starts only with --yes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fsbench.core.errors import UsageError

HOUR = 3600.0
MEGABYTE = 1e6


@dataclass(frozen=True)
class WorkEstimate:
    """Estimated cost of a piece of work for one process.

    what: the work in words; steps: optimizer steps; disk: bytes; flops: of training steps.
    """

    what: str = ""
    seconds: float = 0.0
    steps: int = 0
    disk: float = 0
    flops: float = 0.0

    def times(self, factor: float) -> WorkEstimate:
        """Return the cost of `factor` times the work."""
        return replace(self, seconds=self.seconds * factor, flops=self.flops * factor)

    def __str__(self) -> str:
        steps = f"{self.steps} steps, " if self.steps else ""
        disk = f", {self.disk / MEGABYTE:.0f} MB on disk" if self.disk else ""
        work = f"{self.what}: " if self.what else ""
        return f"{work}{steps}about {format_duration(self.seconds)}{disk}"


def require_consent(
    who: str,
    estimates: Sequence[WorkEstimate],
    yes: bool,
    log: Callable[[str], None],
    fix: str,
) -> None:
    """Log how long work will take. Raise UsageError above an hour unless `yes`.

    who: what is worked on; fix: what else makes the work shorter; nothing is logged for no work.
    """
    seconds = sum(estimate.seconds for estimate in estimates)
    text = f"{who}: {'; '.join(map(str, estimates))}"
    if seconds > HOUR and not yes:
        total = f"; {format_duration(seconds)} in all" if len(estimates) > 1 else ""
        raise UsageError(text + total, fix=f"add --yes (yes=True) to start it, or {fix}")
    if estimates:
        log(text)


def format_duration(seconds: float) -> str:
    """Return e.g. 40 s, 12 min or 5.5 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.1f} h"
