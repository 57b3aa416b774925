"""Badges: the outcome of recomputing episodes of an entry from its weights.

    BOARD/<entry>/badges/<date>-<digest8>.json
    BOARD/<entry>/badges/<date>-<digest8>.json.sig

A badge names the entry and its digest, which covers everything that is shown of it: of a replaced
entry no badge is valid. Whoever can write a file can write a badge, so only one that carries the
signature of a key in board.json counts (trust.py). Any other one is an unsigned claim.

Episodes are drawn in every column on its own, spread over its whole range. If a share s of them is
forged, n draws miss all of these with (1 - s)^n. A forged gain over the accuracy a needs a share of
gain / (1 - a) or more: thirty draws find 3.8 points over 60 % with 95 %.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fsbench.core import seeding
from fsbench.core.io import read_record, write_record
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Date, Name, Printable, Sha256, Text
from fsbench.core.specs import Frozen, omitted
from fsbench.core.tasks import ColumnId
from fsbench.results.entry import Loaded
from fsbench.results.names import BADGES
from leaderboard.signatures import BADGE_NAMESPACE, sign_file

BadgeVerdict = Literal["verified", "tolerant", "undecided", "failed"]
BADGE_VERDICTS: tuple[BadgeVerdict, ...] = ("verified", "tolerant", "undecided", "failed")
"""Verdicts, from best to worst; a badge has the worst verdict of its results. verified: every
outcome is equal in the environment of the entry; tolerant: recomputed in another one."""
UNSIGNED, SELF_REPORTED, FAILED = "unsigned claim", "self-reported", "failed verification"
OWN_CODE = "own code, not verifiable"
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


class FlipCount(Frozen):
    """Outcomes of one kind that were compared, and how many of them differ."""

    outcomes: int = Field(ge=0, description="queries compared")
    flipped: int = Field(ge=0, description="of them, with another outcome")
    gained: int = Field(description="of them, right in the entry minus right when run again")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        is_even = (self.flipped + self.gained) % 2 == 0
        if not (abs(self.gained) <= self.flipped <= self.outcomes and is_even):
            raise ValueError(f"{self.flipped} flips and {self.gained} gained are impossible counts")
        return self

    @classmethod
    def of(cls, gaps: NDArray[np.int64], outcomes: int) -> Self:
        """Return the count of so many outcomes. gaps: of the entry minus recomputed, any parts."""
        return cls(outcomes=outcomes, flipped=int(np.abs(gaps).sum()), gained=int(gaps.sum()))

    def is_excessive(self, allowed: int) -> bool:
        """Return whether there are more flips than allowed, or whether they favour one side."""
        if not 0 < self.flipped <= allowed:
            return self.flipped > 0
        from scipy.stats import binomtest

        up = (self.flipped + self.gained) // 2
        return bool(binomtest(up, self.flipped).pvalue < SIGN_ALPHA)

    @property
    def moves_mean(self) -> bool:
        """Return whether the mean changes by more than 0.1 point."""
        return MAX_SHIFT * abs(self.gained) > self.outcomes


class ColumnCheck(Frozen):
    """The comparison of one recomputed result with the entry's."""

    column: ColumnId = Field(description="e.g. eurosat:5w1s/linear@ibm 224px")
    mean: float = Field(ge=0, le=1, description="accuracy of the entry on the column")
    drawn: tuple[int, ...] = Field(description="numbers of the episodes that were drawn")
    episodes: int = Field(ge=1, description="recomputed: those drawn and all of their blocks")
    scored: FlipCount
    dense: FlipCount | None = omitted(None, description="of dense queries")
    differs: tuple[Text, ...] = Field((), description="parts of the environment that are not equal")
    wrong: tuple[int, ...] = Field(
        (), max_length=MAX_WRONG, description="the first episodes that differ"
    )
    other: Text | None = Field(None, description="what differs and is no outcome of a query")

    @property
    def flips(self) -> dict[str, FlipCount]:
        """Kind of queries -> count."""
        return {"scored": self.scored} | ({} if self.dense is None else {"dense": self.dense})

    def allow_flips(self, count: FlipCount) -> int:
        """Return how many of the outcomes may flip: none in the environment of the entry."""
        rate = AFFINE_FLIPS if self.column.task.head == "affine" else FLIPS
        return math.ceil(rate * count.outcomes) if self.differs else 0

    @property
    def verdict(self) -> BadgeVerdict:
        """Return the verdict; undecided if there are too few episodes to tell chance from gain."""
        counts = self.flips.values()
        if self.other or any(count.is_excessive(self.allow_flips(count)) for count in counts):
            return "failed"
        if not self.differs:
            return "verified"
        return "undecided" if any(count.moves_mean for count in counts) else "tolerant"

    def __str__(self) -> str:
        """Return what differs, e.g. '3 of 75 scored outcomes (+3 for the entry), 0 may; ...'."""
        flips = [
            f"{count.flipped} of {count.outcomes} {kind} outcomes differ ({count.gained:+} for the "
            f"entry), {self.allow_flips(count)} may"
            for kind, count in self.flips.items()
            if count.flipped
        ]
        others = [self.other] if self.other else []
        parts = [*flips, *others, f"episodes {', '.join(map(str, self.wrong))}"]
        return f"{self.column}: {'; '.join(parts)}"

    @property
    def detectable(self) -> float:
        """The forged gain of the column, a fraction, that the draw finds with 95 %."""
        return float((1 - MISSED ** (1 / max(1, len(self.drawn)))) * (1 - self.mean))


class Verdict(Frozen):
    """What a signed badge said about these weights on a column of this entry."""

    date: Date = Field(description="of the badge")
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
    date: Date
    environment: dict[Printable, Printable]
    seed: int = Field(ge=0, description="decides the draws, with the digest")
    checks: tuple[ColumnCheck, ...] = Field(min_length=1)
    not_verified: tuple[Text, ...] = Field((), description="columns that were not recomputed")

    @property
    def verdict(self) -> BadgeVerdict:
        return max((check.verdict for check in self.checks), key=BADGE_VERDICTS.index)

    @property
    def verdicts(self) -> list[Verdict]:
        """The verdict of each recomputed result."""
        facts = self.model_dump(include={"date", "weights", "entry", "entry_digest"})
        return [Verdict(**facts, column=str(c.column), verdict=c.verdict) for c in self.checks]

    def __str__(self) -> str:
        verdicts = [check.verdict for check in self.checks]
        total = len(self.checks) + len(self.not_verified)
        return describe_verdicts(verdicts, total, self.checks, self.date)


def describe_verdicts(
    verdicts: Iterable[BadgeVerdict], results: int, checks: Sequence[ColumnCheck], date: str
) -> str:
    """Return e.g. 'verified 1 of 8 results (30 episodes each, ...), 2026-01-31'.

    results: number of results of the entry; checks: made of its present state, whose episodes and
    forged gain that they find with 95 % are given.
    """
    counts = Counter(verdicts)
    levels = [f"{v} {counts[v]}" for v in reversed(BADGE_VERDICTS) if counts[v]]
    coverage = ""
    if checks:
        episodes = min(len(check.drawn) for check in checks)
        gain = 100 * max(check.detectable for check in checks)
        coverage = f" ({episodes} episodes each, a forged gain of {gain:.1f} is found with 95 %)"
    return f"{', '.join(levels)} of {results} results{coverage}, {date[:10]}"


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


def draw_episodes(loaded: Loaded, n: int | None, digest: str, seed: int) -> tuple[int, ...]:
    """Return the numbers of n episodes that `draw_rows` draws, all for None; none of a probe."""
    if not isinstance(loaded.records, EpisodeRecords):
        return ()
    index = loaded.records.index
    n = len(index) if n is None else n
    rows = draw_rows(len(index), n, digest, seed, str(loaded.result.column))
    return tuple(index[rows].tolist())


def write_badge(entry: Path, badge: Badge, sign_with: Path | None = None) -> Path:
    """Write a badge into the folder of its entry, signed if there is an SSH key."""
    stamp = "".join(c for c in badge.date if c.isdecimal())[:14]
    path = entry / BADGES / f"{stamp}-{badge.digest()[:8]}.json"
    write_record(path, badge)
    if sign_with is not None:
        sign_file(path, sign_with, BADGE_NAMESPACE)
    return path


def read_badges(entry: Path) -> list[tuple[Path, Badge]]:
    """Return all badges of an entry with their files, the oldest first. Raises ValidationFailed."""
    return [(path, read_record(path, Badge)) for path in sorted((entry / BADGES).glob("*.json"))]
