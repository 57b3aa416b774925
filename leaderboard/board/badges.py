"""Badges: the outcome of recomputing episodes of an entry from its weights.

    BOARD/<entry>/badges/<date>-<digest8>.json

A badge is valid for one hash chain (leaderboard/submission/chain.py): resubmitted results start
without badges. It is a claim of whoever ran `fsbench leaderboard verify`, with everything needed to
repeat the check; on a board under git it is added by pull request.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field

from fsbench.core.errors import ValidationFailed
from fsbench.core.io import read_record, write_record
from fsbench.core.schema import Sha256, Text
from fsbench.core.specs import Frozen
from fsbench.results.names import BADGES

BadgeVerdict = Literal["verified", "within tolerance", "failed"]
BADGE_VERDICTS: tuple[BadgeVerdict, ...] = ("verified", "within tolerance", "failed")
"""Verdicts, from best to worst; a badge has the worst verdict of its results."""


class CellCheck(Frozen):
    """The comparison of one recomputed result with the entry's."""

    cell: Text = Field(description="board column, e.g. eurosat:5w1s/linear@ibm 224px")
    drawn: tuple[int, ...] = Field(description="numbers of the episodes that were drawn")
    episodes: int = Field(ge=1, description="recomputed: those drawn and all of their blocks")
    outcomes: int = Field(ge=1, description="queries compared, dense ones among them")
    flipped: int = Field(ge=0, description="of them, with another outcome")
    gained: int = Field(description="of them, right in the entry minus right when run again")
    allowed: int = Field(ge=0, description="flips that this result may have")
    differs: tuple[Text, ...] = Field((), description="parts of the environment that are not equal")
    wrong: tuple[int, ...] = Field((), description="the first episodes that differ, at most 20")
    other: Text | None = Field(None, description="what differs and is no outcome of a query")

    @property
    def verdict(self) -> BadgeVerdict:
        if self.other is not None or self.flipped > self.allowed:
            return "failed"
        return "within tolerance" if self.flipped else "verified"


class Badge(Frozen):
    """One verification of an entry."""

    schema_version: Literal[1] = 1
    chain: Sha256 = Field(description="end of the chain of the results that were verified")
    date: Text = Field(description="UTC, ISO 8601")
    environment: dict[str, str]
    seed: int = Field(ge=0, description="with the entry's name it says which episodes are drawn")
    cells: tuple[CellCheck, ...] = Field(min_length=1)
    not_verified: tuple[Text, ...] = Field((), description="results that were not recomputed")

    @property
    def verdict(self) -> BadgeVerdict:
        return max((cell.verdict for cell in self.cells), key=BADGE_VERDICTS.index)

    @property
    def episodes(self) -> int:
        return sum(cell.episodes for cell in self.cells)

    @property
    def words(self) -> str:
        """The text for a table, e.g. 'verified 2026-01-31: 20 episodes'."""
        return f"{self.verdict} {self.date[:10]}: {self.episodes} episodes"


def write_badge(entry: Path, badge: Badge) -> Path:
    """Write a badge into the folder of its entry."""
    stamp = "".join(c for c in badge.date if c.isdecimal())[:14]
    path = entry / BADGES / f"{stamp}-{badge.digest()[:8]}.json"
    write_record(path, badge)
    return path


def read_badges(entry: Path) -> list[Badge]:
    """Return all badges of an entry, the oldest first. Raises ValidationFailed."""
    paths = sorted((entry / BADGES).glob("*.json"))
    badges = [read_record(path, Badge) for path in paths]
    for path, badge in zip(paths, badges, strict=True):
        if path.stem.rpartition("-")[2] != badge.digest()[:8]:
            fix = "verify the entry again"
            raise ValidationFailed(f"{path} was changed after it was written", fix=fix)
    return badges


def select_badge(badges: Iterable[Badge], chain: str) -> Badge | None:
    """Return the badge that counts for these results: the newest failed one, else the newest."""
    valid = sorted((b for b in badges if b.chain == chain), key=lambda b: b.date)
    failed = [badge for badge in valid if badge.verdict == "failed"]
    return next(reversed(failed or valid), None)
