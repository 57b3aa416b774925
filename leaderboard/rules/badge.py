"""Rules that a badge must satisfy: everything in it that follows from the entry is recomputed.

They show that `fsbench leaderboard verify` could have written the badge. Whether it did is what a
signature says (leaderboard/board/signatures.py).
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodicSpec
from fsbench.results import provenance
from fsbench.results.entry import Entry, Loaded
from fsbench.results.verification import Problem
from leaderboard.badges import (
    FEWEST,
    Badge,
    CellCheck,
    FlipCount,
    allow_flips,
    badge_path,
    draw_rows,
)

FIX = "remove the badge, or verify the entry again"
SHOWN = 3
"""Maximum number of names in a message."""
MAX_WRONG = 20
"""Episodes that a badge lists at most."""
Contradiction = tuple[object, object]
"""Value in a badge, and the value that it must have."""


def find_badge_problems(path: Path, badge: Badge, entry: Entry) -> Iterator[Problem]:
    """Yield a Problem for everything in a badge that contradicts its entry.

    A badge of an earlier state of the entry counts for nothing and is not checked further.
    """
    contradictions = [*check_date(path, badge)]
    if badge.entry != entry.name:
        contradictions.append((f"a badge of {badge.entry[:60]!r}", f"of {entry.name!r}"))
    results = {
        str(cell.result.column): cell
        for cell in entry.cells
        if cell.result.backbone.identity == badge.weights
    }
    if badge.entry_digest == entry.digest and not contradictions:
        contradictions += check_coverage(badge, list(results.values()))
        if not contradictions:
            for cell in badge.cells:
                contradictions += check_draws(badge, cell, results[cell.cell])
                contradictions += check_cell(badge, cell, results[cell.cell])
    for actual, expected in contradictions:
        yield Problem.contrast("badge", path, actual, expected, FIX)


def check_date(path: Path, badge: Badge) -> Iterator[Contradiction]:
    """Check that the date is one in UTC that has passed, and that the file is named after it."""
    try:
        date = datetime.fromisoformat(badge.date)
    except ValueError:
        yield f"date {badge.date[:40]!r}", "a date as ISO 8601"
        return
    if date.utcoffset() is None or date.utcoffset() != UTC.utcoffset(None):
        yield f"date {badge.date}", "a date with the offset of UTC"
    elif date > datetime.now(UTC):
        yield f"date {badge.date}", "a date that has passed"
    if path.name != badge_path(path.parent.parent, badge).name:
        yield f"file {path.name}", badge_path(path.parent.parent, badge).name


def check_coverage(badge: Badge, results: Sequence[Loaded]) -> Iterator[Contradiction]:
    """Check that the badge names every result of the entry once, and recomputes only episodes."""
    names = [cell.cell for cell in badge.cells] + list(badge.not_verified)
    columns = sorted(str(loaded.result.column) for loaded in results)
    if sorted(names) != columns:
        yield (
            f"results {', '.join(sorted(names)[:SHOWN])}",
            f"{', '.join(columns[:SHOWN])}, each once",
        )
    episodic = {str(c.result.column) for c in results if isinstance(c.records, EpisodeRecords)}
    if others := [cell.cell for cell in badge.cells if cell.cell not in episodic]:
        yield f"recomputed {', '.join(others[:SHOWN])}", "few-shot results of the entry"


def check_draws(badge: Badge, cell: CellCheck, loaded: Loaded) -> Iterator[Contradiction]:
    """Check that the drawn episodes follow from digest and seed, and that they are enough."""
    records = loaded.records
    if not isinstance(records, EpisodeRecords):
        return
    n = len(cell.drawn)
    least = min(FEWEST, len(records.index))
    if n < least:
        yield f"{cell.cell}: {n} episodes drawn", f"{least} or more"
        return
    rows = draw_rows(len(records.index), n, badge.entry_digest, badge.seed, cell.cell)
    expected, actual = records.index[rows].tolist(), list(cell.drawn)
    if actual != expected:
        yield f"{cell.cell}: drawn {actual[:SHOWN]}", f"{expected[:SHOWN]}, as the digest says"
    if abs(cell.mean - loaded.result.score.mean) > 1e-9:
        yield f"{cell.cell}: a mean of {cell.mean}", loaded.result.score.mean


def check_cell(badge: Badge, cell: CellCheck, loaded: Loaded) -> Iterator[Contradiction]:
    """Check counts, allowed flips and environment of one recomputed result."""
    records, spec = loaded.records, loaded.result.spec
    if not isinstance(records, EpisodeRecords) or not isinstance(spec, EpisodicSpec):
        return
    if not len(cell.drawn) <= cell.episodes <= len(records.index):
        yield f"{cell.cell}: {cell.episodes} episodes", f"at most the {len(records.index)} it has"
    before = provenance.environment_of(loaded.result.provenance)
    here = {k: v for k, v in badge.environment.items() if k not in {"fsbench", "commit"}}
    changes = provenance.differing_parts(before, here)
    differs = tuple(f"{part}: {theirs} -> {ours}" for part, (theirs, ours) in changes.items())
    if cell.differs != differs:
        yield f"{cell.cell}: environment {cell.differs or 'equal'}", differs or "equal"
    scored = cell.episodes * spec.episode.n_way * spec.episode.n_query
    dense = 0 if records.dense_total is None else int(records.dense_total.sum())
    for count, least, most in list_limits(cell, scored, dense):
        if not least <= count.outcomes <= most:
            yield f"{cell.cell}: {count.outcomes} outcomes", f"{least} to {most}"
        allowed = allow_flips(count.outcomes, spec.adaptation, bool(differs))
        if count.allowed != allowed:
            yield f"{cell.cell}: {count.allowed} flips allowed", allowed
        balanced = (count.flipped + count.gained) % 2 == 0
        if not abs(count.gained) <= count.flipped <= count.outcomes or not balanced:
            yield f"{cell.cell}: {count.flipped} flips, {count.gained} gained", "possible counts"
    is_listed = set(cell.wrong) <= set(records.index.tolist()) and len(cell.wrong) <= MAX_WRONG
    if not is_listed or (any(count.flipped for count in cell.counts) and not cell.wrong):
        yield f"{cell.cell}: wrong episodes {list(cell.wrong[:SHOWN])}", "episodes that differ"


def list_limits(cell: CellCheck, scored: int, dense: int) -> list[tuple[FlipCount, int, int]]:
    """Return every count with the fewest and the most outcomes that it can have."""
    return [(cell, scored, scored), *([] if cell.dense is None else [(cell.dense, 1, dense)])]
