"""Badges: the outcome of recomputing episodes of an entry from its weights.

    BOARD/<entry>/badges/<date>-<digest8>.json
    BOARD/<entry>/badges/<date>-<digest8>.json.sig

A badge is valid for one hash chain (leaderboard/submission/chain.py): resubmitted results start
without badges unless they are equal. Whoever can write a file can write a badge, so only one that
carries the signature of a key in board.json counts (leaderboard/board/signatures.py); any other one
is an unsigned claim, whatever it says.
"""

import math
import shutil
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fsbench.core import seeding
from fsbench.core.errors import ValidationFailed
from fsbench.core.io import read_record, write_record
from fsbench.core.schema import Sha256, Text
from fsbench.core.specs import Frozen
from fsbench.core.tasks import ColumnId
from fsbench.results.names import BADGES
from leaderboard.board.signatures import BADGE_NAMESPACE, is_signed, signature_path

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


def allow_flips(outcomes: int, adaptation: str, differs: bool) -> int:
    """Return how many of these outcomes may flip: none in the environment of the entry."""
    rate = AFFINE_FLIPS if adaptation == "affine" else FLIPS
    return math.ceil(rate * outcomes) if differs else 0


class FlipCount(Frozen):
    """Outcomes of one kind that were compared, and how many of them differ."""

    outcomes: int = Field(ge=0, description="queries compared")
    flipped: int = Field(ge=0, description="of them, with another outcome")
    gained: int = Field(description="of them, right in the entry minus right when run again")
    allowed: int = Field(ge=0, description="flips that this result may have")

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
    """The comparison of one recomputed result with the entry's.

    Its own counts are those of the queries that are scored; a badge of schema 1 counts dense ones
    among them.
    """

    cell: Text = Field(description="board column, e.g. eurosat:5w1s/linear@ibm 224px")
    drawn: tuple[int, ...] = Field(description="numbers of the episodes that were drawn")
    episodes: int = Field(ge=1, description="recomputed: those drawn and all of their blocks")
    dense: FlipCount | None = Field(
        None, exclude_if=lambda value: value is None, description="of dense queries"
    )
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


class Badge(Frozen):
    """One verification of an entry. In schema 1 the seed alone decided all draws."""

    schema_version: Literal[1, 2] = 2
    chain: Sha256 = Field(description="end of the chain of the results that were verified")
    date: Text = Field(description="UTC, ISO 8601")
    environment: dict[str, str]
    seed: int = Field(ge=0, description="decides half of the draws; the chain decides the others")
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
        """The outcome, e.g. 'verified 2026-01-31: 20 episodes, 1 of 8 results'."""
        done, total = len(self.cells), len(self.cells) + len(self.not_verified)
        return (
            f"{self.verdict} {self.date[:10]}: {self.episodes} episodes, {done} of {total} results"
        )


def draw_seeds(chain: str, seed: int) -> list[tuple[str | int, ...]]:
    """Return the names of two random orders of episodes, which take turns.

    The first follows from the entry's chain, so nobody can choose it to avoid an episode. The
    second needs a number that the submitter could not foresee, so that no entry can be made for it.
    """
    return [(chain,), (chain, seed)]


def draw_rows(
    lengths: Sequence[int], n: int, seeds: Sequence[tuple[str | int, ...]]
) -> list[NDArray[np.int64]]:
    """Draw n rows in all from results with so many episodes; return the rows of each result.

    The order over the episodes of all results is random, but the first one of every result comes
    before all others: no result is missed, and n is at least their number.
    """
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    orders = [np.argsort(seeding.words(total, "verify", *seed), kind="stable") for seed in seeds]
    turns = np.stack(orders, axis=1).ravel()
    order = turns[np.sort(np.unique(turns, return_index=True)[1])]
    result_of = np.searchsorted(ends, order, side="right")
    leading = np.sort(np.unique(result_of, return_index=True)[1])
    ranked = np.concatenate([order[leading], np.delete(order, leading)])
    picked = np.sort(ranked[: max(n, len(lengths))])
    starts = ends - lengths
    return [
        picked[(start <= picked) & (picked < end)] - start
        for start, end in zip(starts, ends, strict=True)
    ]


@dataclass(frozen=True)
class Verification:
    """Summary of the signed badges of an entry.

    results: number of its results; verdicts: column -> worst verdict that a signed badge gives it;
    date: of the newest one; claims: number of badges that are not signed by a key of the board.
    """

    results: int = 0
    verdicts: Mapping[str, BadgeVerdict] = field(default_factory=dict)
    date: str = ""
    claims: int = 0

    @property
    def verdict(self) -> BadgeVerdict | None:
        """The worst verdict; None without a signed badge."""
        return max(self.verdicts.values(), key=BADGE_VERDICTS.index, default=None)

    @property
    def is_trusted(self) -> bool:
        """Return whether a signed badge covers a result, and none says that one failed."""
        return self.verdict not in {None, "failed"}

    @property
    def words(self) -> str:
        """The text for a table, e.g. 'verified 1 of 8 results, 2026-01-31'; '' without a badge."""
        if not self.verdicts:
            return UNSIGNED if self.claims else ""
        counts = Counter(self.verdicts.values())
        worst_first = [v for v in reversed(BADGE_VERDICTS) if v in counts]
        levels = ", ".join(f"{verdict} {counts[verdict]}" for verdict in worst_first)
        return f"{levels} of {self.results} results, {self.date[:10]}"


def read_verification(
    entry: Path, columns: Collection[ColumnId], chain: str, signers: Sequence[str]
) -> Verification:
    """Return what the signed badges of these results say.

    A failed result stays failed; else the newest badge counts. Raises ValidationFailed for a
    changed badge.
    """
    valid = [(path, badge) for path, badge in read_badges(entry) if badge.chain == chain]
    signed = [badge for path, badge in valid if is_trusted(path, badge, signers)]
    verdicts: dict[str, BadgeVerdict] = {}
    names = {str(column) for column in columns} if signed else set()
    for badge in sorted(signed, key=lambda badge: badge.date):
        for cell in badge.cells:
            if cell.cell in names and verdicts.get(cell.cell) != "failed":
                verdicts[cell.cell] = cell.verdict
    date = max((badge.date for badge in signed), default="")
    return Verification(len(columns), verdicts, date, len(valid) - len(signed))


def is_trusted(path: Path, badge: Badge, signers: Sequence[str]) -> bool:
    """Return whether a key of the board signed a badge; those of schema 1 had no signatures."""
    return badge.schema_version > 1 and is_signed(path, signers, BADGE_NAMESPACE)


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


def copy_badges(old: Path, new: Path, chain: str) -> None:
    """Copy the badges of this chain, with their signatures, from one entry folder to another."""
    for path, badge in read_badges(old):
        if badge.chain == chain:
            (new / BADGES).mkdir(exist_ok=True)
            for file in (path, signature_path(path)):
                if file.is_file():
                    shutil.copyfile(file, new / BADGES / file.name)
