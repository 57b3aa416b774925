"""What signed badges say about the results of an entry, and about its weights.

A badge counts if it names the entry's digest and a key of board.json signed it. A failed verdict
stays with its weights and column under any name until a badge of the entry itself passes: entries
that came after it, and the one that failed, have it too (history.py). A badge of an earlier state
of the entry counts only if it failed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fsbench.results.entry import Entry
from leaderboard.badges import (
    BADGE_VERDICTS,
    UNSIGNED,
    BadgeVerdict,
    ColumnCheck,
    Verdict,
    describe_verdicts,
    read_badges,
)
from leaderboard.history import History
from leaderboard.signatures import BADGE_NAMESPACE, is_signed

Key = tuple[str, str]
"""Identity of a network, and a column."""


@dataclass(frozen=True)
class Verification:
    """Summary of what counts for an entry.

    results: number of its results; verdicts: network and column -> verdict; date: of the newest
    signed badge; claims: number of badges that are not signed by a key of the board; checks: those
    of signed badges of its present state.
    """

    results: int = 0
    verdicts: Mapping[Key, BadgeVerdict] = field(default_factory=dict)
    date: str = ""
    claims: int = 0
    checks: tuple[ColumnCheck, ...] = ()

    @property
    def verdict(self) -> BadgeVerdict | None:
        """The worst verdict; None without a signed badge."""
        return max(self.verdicts.values(), key=BADGE_VERDICTS.index, default=None)

    def __str__(self) -> str:
        """Return the text for a table; '' without a badge."""
        if not self.verdicts:
            return UNSIGNED if self.claims else ""
        return describe_verdicts(self.verdicts.values(), self.results, self.checks, self.date)


def read_verification(
    entry: Entry, signers: Sequence[str], history: History, recorded: Iterable[Verdict]
) -> Verification:
    """Return what counts for the results of an entry.

    recorded: verdicts of the board. Raises ValidationFailed for a file that is no badge.
    """
    results = {(one.result.backbone.identity, str(one.result.column)) for one in entry.loaded}
    badges = read_badges(entry.folder)
    trusted = [badge for path, badge in badges if is_signed(path, signers, BADGE_NAMESPACE)]
    current = [badge for badge in trusted if badge.entry_digest == entry.digest]
    lines = [(verdict, False) for verdict in recorded]
    lines += [(verdict, badge in current) for badge in trusted for verdict in badge.verdicts]
    newest: dict[Key, Verdict] = {}
    for line, is_current in sorted(lines, key=lambda pair: (pair[0].date, pair[1])):
        key = (line.weights, line.column)
        came = history.added.get(entry.name, line.date)
        is_later = line.entry == entry.name or came >= line.date
        if key in results and (is_current or (line.verdict == "failed" and is_later)):
            newest[key] = line
    n_badges = sum(badge.entry_digest == entry.digest for _, badge in badges)
    return Verification(
        len(results),
        {key: line.verdict for key, line in newest.items()},
        max((line.date for line in newest.values()), default=""),
        n_badges - len(current),
        tuple(check for badge in current for check in badge.checks),
    )
