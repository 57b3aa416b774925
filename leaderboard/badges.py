"""Badges: the outcome of recomputing episodes of an entry from its weights.

    BOARD/<entry>/badges/<date>-<digest8>.json
    BOARD/<entry>/badges/<date>-<digest8>.json.sig

A badge names the entry and its digest, which covers everything that is shown of it: of a replaced
entry no badge is valid. Whoever can write a file can write a badge, so only one that carries the
signature of a key in board.json counts (trust.py); any other one is an unsigned claim, whatever it
says.

Episodes are drawn in every column on its own, spread over its whole range, by a number that is
chosen after the entry is frozen. If a share s of a column's episodes is forged, n draws miss all of
them with (1 - s)^n: thirty find a forged gain of 3.8 points over 60 % with 95 %, if the forged
episodes are all right, and a smaller one if more episodes share it.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fsbench.core import seeding
from fsbench.core.errors import ValidationFailed
from fsbench.core.io import read_record, write_record
from fsbench.core.schema import Name, Result, Sha256, Text
from fsbench.core.specs import Frozen, omitted
from fsbench.results import provenance
from fsbench.results.names import BADGES

BadgeVerdict = Literal["verified", "tolerant", "undecided", "failed"]
BADGE_VERDICTS: tuple[BadgeVerdict, ...] = ("verified", "tolerant", "undecided", "failed")
"""Verdicts, from best to worst; a badge has the worst verdict of its results. verified: every
outcome is equal in the environment of the entry; tolerant: recomputed in another one."""
UNSIGNED, SELF_REPORTED, FAILED = "unsigned claim", "self-reported", "failed verification"
AFFINE_FLIPS = 0.02
"""Share of queries that affine tuning may flip in another environment. It is chaotic: the float32
test of the schedule against float64 allows as many."""
FLIPS = 0.002
"""The same for all other heads: only queries on the border between two classes can flip. Between
AVX-512 and no vector instructions, none of 258,000 outcomes of five heads did."""
MAX_SHIFT = 1000
"""The mean may move by one part of this in another environment: 0.1 point."""
SIGN_ALPHA = 0.001
"""Level of the sign test: flips between environments favour neither side."""
MISSED = 0.05
"""Probability that no forged episode is drawn, for the gain that a badge states."""
FEWEST = 30
"""Episodes of each column that are drawn, if it has so many."""
MAX_WRONG = 20
"""Episodes that a badge lists at most."""


def allow_flips(outcomes: int, adaptation: str, differs: bool) -> int:
    """Return how many of these outcomes may flip: none in the environment of the entry."""
    rate = AFFINE_FLIPS if adaptation == "affine" else FLIPS
    return math.ceil(rate * outcomes) if differs else 0


def list_differences(result: Result, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return in which parts an environment is not that of a result, e.g. 'threads: 1 -> 2'."""
    before = provenance.environment_of(result.provenance)
    changes = provenance.differing_parts(before, environment)
    return tuple(f"{part}: {theirs} -> {here}" for part, (theirs, here) in changes.items())


class FlipCount(Frozen):
    """Outcomes of one kind that were compared, and how many of them differ."""

    outcomes: int = Field(ge=0, description="queries compared")
    flipped: int = Field(ge=0, description="of them, with another outcome")
    gained: int = Field(description="of them, right in the entry minus right when run again")
    allowed: int = Field(ge=0, description="flips that this result may have")

    @classmethod
    def of(cls, gaps: NDArray[np.int64], outcomes: int, adaptation: str, differs: bool) -> Self:
        """Return the count of so many outcomes. gaps: of the entry minus recomputed, any parts."""
        return cls(
            outcomes=outcomes,
            flipped=int(np.abs(gaps).sum()),
            gained=int(gaps.sum()),
            allowed=allow_flips(outcomes, adaptation, differs),
        )

    @property
    def is_excessive(self) -> bool:
        """Return whether there are too many flips, or whether they favour one side."""
        if not 0 < self.flipped <= self.allowed:
            return self.flipped > 0
        from scipy.stats import binomtest

        up = (self.flipped + self.gained) // 2
        return bool(binomtest(up, self.flipped).pvalue < SIGN_ALPHA)

    @property
    def moves_mean(self) -> bool:
        """Return whether the mean changes by more than 0.1 point."""
        return MAX_SHIFT * abs(self.gained) > self.outcomes


class CellCheck(FlipCount):
    """The comparison of one recomputed result with the entry's; its own counts are of the queries.

    mean: accuracy of the entry on the column, a fraction.
    """

    cell: Text = Field(description="board column, e.g. eurosat:5w1s/linear@ibm 224px")
    mean: float = Field(ge=0, le=1)
    drawn: tuple[int, ...] = Field(description="numbers of the episodes that were drawn")
    episodes: int = Field(ge=1, description="recomputed: those drawn and all of their blocks")
    dense: FlipCount | None = omitted(None, description="of dense queries")
    differs: tuple[Text, ...] = Field((), description="parts of the environment that are not equal")
    wrong: tuple[int, ...] = Field((), description="the first episodes that differ, at most 20")
    other: Text | None = Field(None, description="what differs and is no outcome of a query")

    @property
    def counts(self) -> tuple[FlipCount, ...]:
        return (self,) if self.dense is None else (self, self.dense)

    @property
    def verdict(self) -> BadgeVerdict:
        """Return the verdict; undecided if there are too few episodes to tell chance from gain."""
        if self.other is not None or any(count.is_excessive for count in self.counts):
            return "failed"
        if not self.differs:
            return "verified"
        return "undecided" if any(count.moves_mean for count in self.counts) else "tolerant"

    @property
    def words(self) -> str:
        """e.g. '3 of 75 scored outcomes differ (+3 for the entry), allowed are 0; episodes 5'"""
        flips = [
            f"{count.flipped} of {count.outcomes} {kind} outcomes differ ({count.gained:+} for the "
            f"entry), allowed are {count.allowed}"
            for kind, count in zip(("scored", "dense"), self.counts, strict=False)
            if count.flipped
        ]
        others = [self.other] if self.other else []
        return "; ".join([*flips, *others, f"episodes {', '.join(map(str, self.wrong))}"])

    @property
    def detectable(self) -> float:
        """The forged gain of the column, a fraction, that the draw finds with 95 %."""
        return float((1 - MISSED ** (1 / max(1, len(self.drawn)))) * (1 - self.mean))


class Verdict(Frozen):
    """What a signed badge said about these weights on a column of this entry."""

    date: str = Field(description="UTC, ISO 8601, of the badge")
    weights: Sha256 = Field(description="identity of the backbone")
    column: Text
    verdict: BadgeVerdict
    entry: Name
    entry_digest: Sha256


class Badge(Frozen):
    """One verification of the results of one network of an entry."""

    schema_version: Literal[1] = 1
    entry: Text = Field(description="name of the entry")
    entry_digest: Sha256 = Field(description="of entry.json, which covers the outcomes")
    weights: Sha256 = Field(description="identity of the network")
    date: Text = Field(description="UTC, ISO 8601")
    environment: dict[str, str]
    seed: int = Field(ge=0, description="decides the draws, with the digest")
    cells: tuple[CellCheck, ...] = Field(min_length=1)
    not_verified: tuple[Text, ...] = Field((), description="columns that were not recomputed")

    @property
    def verdict(self) -> BadgeVerdict:
        return max((cell.verdict for cell in self.cells), key=BADGE_VERDICTS.index)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict of each recomputed result."""
        facts = self.model_dump(include={"date", "weights", "entry", "entry_digest"})
        return [Verdict(**facts, column=cell.cell, verdict=cell.verdict) for cell in self.cells]

    @property
    def episodes(self) -> int:
        return sum(cell.episodes for cell in self.cells)

    @property
    def words(self) -> str:
        """The outcome: verdict, date, coverage, and the forged gain that it excludes."""
        done, total = len(self.cells), len(self.cells) + len(self.not_verified)
        fewest = min(len(cell.drawn) for cell in self.cells)
        gain = 100 * max(cell.detectable for cell in self.cells)
        return (
            f"{self.verdict} {self.date[:10]}: {fewest} episodes or more in each of {done} of "
            f"{total} columns; a forged gain of {gain:.1f} points in one of them is found with 95 %"
        )


def draw_rows(length: int, n: int, digest: str, seed: int, column: str) -> NDArray[np.int64]:
    """Draw n of so many rows, one of each of n equal parts; all rows if there are no more.

    The number that decides is drawn after the entry was frozen, so that no entry can be made for
    it; digest and column keep draws of other entries and columns apart.
    """
    if n >= length:
        return np.arange(length)
    edges = np.arange(n + 1) * length // n
    within = seeding.uniforms((n,), "verify", digest, seed, column)
    return np.asarray(edges[:-1] + within * np.diff(edges), np.int64)


def badge_path(entry: Path, badge: Badge) -> Path:
    """Return the file of a badge in the folder of its entry."""
    stamp = "".join(c for c in badge.date if c.isdecimal())[:14]
    return entry / BADGES / f"{stamp}-{badge.digest()[:8]}.json"


def write_badge(entry: Path, badge: Badge) -> Path:
    """Write a badge into the folder of its entry."""
    path = badge_path(entry, badge)
    write_record(path, badge)
    return path


def read_badges(entry: Path) -> list[tuple[Path, Badge]]:
    """Return all badges of an entry with their files, the oldest first. Raises ValidationFailed."""
    paths = sorted((entry / BADGES).glob("*.json"))
    badges = [(path, read_record(path, Badge)) for path in paths]
    for path, badge in badges:
        if path.stem.rpartition("-")[2] != badge.digest()[:8]:
            fix = "verify the entry again"
            raise ValidationFailed(f"{path} was changed after it was written", fix=fix)
    return badges
