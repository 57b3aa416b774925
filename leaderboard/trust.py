"""What signed badges say about the results of an entry, and about its weights.

A badge counts if it names the entry's digest and a key of board.json signed it. A failed verdict
stays with its weights and column under any name until a badge of the entry itself passes: entries
that came after it, and the one that failed, have it too (history.py). A badge of an earlier state
of the entry counts only if it failed.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leaderboard.badges import (
    BADGE_VERDICTS,
    UNSIGNED,
    Badge,
    BadgeVerdict,
    CellCheck,
    read_badges,
)
from leaderboard.history import History, Verdict
from leaderboard.signatures import BADGE_NAMESPACE, is_signed

Key = tuple[str, str]
"""Identity of a network, and a column."""


@dataclass(frozen=True)
class Verification:
    """Summary of what counts for an entry.

    results: number of its results; verdicts: network and column -> verdict; date: of the newest
    signed badge; claims: number of badges that are not signed by a key of the board; detectable:
    the forged gain of a column, a fraction, that the widest draw finds with 95 %.
    """

    results: int = 0
    verdicts: Mapping[Key, BadgeVerdict] = field(default_factory=dict)
    date: str = ""
    claims: int = 0
    detectable: float | None = None

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
        gain = ""
        if self.detectable is not None:
            gain = f" (would find a forged gain of {100 * self.detectable:.1f} points)"
        return f"{levels} of {self.results} results{gain}, {self.date[:10]}"


def read_verification(
    folder: Path,
    digest: str,
    results: Sequence[Key],
    signers: Sequence[str],
    history: History,
    recorded: Iterable[Verdict],
) -> Verification:
    """Return what counts for the results of the entry in a folder.

    recorded: verdicts of the board. Raises ValidationFailed for a changed badge.
    """
    name, known = folder.name, set(results)
    every = read_badges(folder)
    trusted = [badge for path, badge in every if is_trusted(path, signers)]
    badges = [badge for _, badge in every if badge.entry_digest == digest]
    signed = [badge for badge in trusted if badge.entry_digest == digest]
    verdicts: dict[Key, tuple[str, BadgeVerdict]] = {}
    recorded = [*recorded, *(record_verdict(b, check) for b in trusted for check in b.cells)]
    for line in sorted(recorded, key=lambda line: line.date):
        key = (line.weights, line.column)
        later = line.entry == name or history.added.get(name, line.date) >= line.date
        if line.verdict == "failed" and key in known and later:
            verdicts[key] = line.date, "failed"
    checks = [(badge.date, badge.weights, check) for badge in signed for check in badge.cells]
    for date, weights, check in sorted(checks, key=lambda item: item[0]):
        key = (weights, check.cell)
        if key in known and date >= verdicts.get(key, ("", ""))[0]:
            verdicts[key] = date, check.verdict
    return Verification(
        len(results),
        {key: verdict for key, (_, verdict) in verdicts.items()},
        max((date for date, _ in verdicts.values()), default=""),
        len(badges) - len(signed),
        max((check.detectable for _, _, check in checks), default=None),
    )


def is_trusted(path: Path, signers: Sequence[str]) -> bool:
    """Return whether a key of the board signed a badge."""
    return is_signed(path, signers, BADGE_NAMESPACE)


def list_verdicts(folder: Path, signers: Sequence[str]) -> Iterator[Verdict]:
    """Yield the verdicts of the signed badges in the folder of an entry."""
    for path, badge in read_badges(folder):
        if is_trusted(path, signers):
            yield from (record_verdict(badge, check) for check in badge.cells)


def record_verdict(badge: Badge, check: CellCheck) -> Verdict:
    return Verdict(
        date=badge.date,
        weights=badge.weights,
        column=check.cell,
        verdict=check.verdict,
        entry=badge.entry,
        entry_digest=badge.entry_digest,
    )
