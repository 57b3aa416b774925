"""Rules that a badge must satisfy: everything in it that follows from the entry is recomputed.

They show that `fsbench leaderboard verify` could have written the badge. Whether it did is what a
signature says (leaderboard/signatures.py).
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodicSpec
from fsbench.results.entry import Entry, Loaded
from fsbench.results.verification import Problem
from leaderboard.badges import (
    FEWEST,
    MAX_WRONG,
    Badge,
    CellCheck,
    allow_flips,
    badge_path,
    draw_rows,
    list_differences,
)

FIX = "remove the badge, or verify the entry again"
SHOWN = 3
"""Maximum number of names in a message."""
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


def check_cell(badge: Badge, cell: CellCheck, loaded: Loaded) -> Iterator[Contradiction]:
    """Check what follows from the entry: draws, mean, environment, and counts of flips."""
    records, spec = loaded.records, loaded.result.spec
    if not isinstance(records, EpisodeRecords) or not isinstance(spec, EpisodicSpec):
        return
    column, index, n = cell.cell, records.index, len(cell.drawn)
    if n < min(FEWEST, len(index)):
        yield f"{column}: {n} episodes drawn", f"{min(FEWEST, len(index))} or more"
        return
    rows = draw_rows(len(index), n, badge.entry_digest, badge.seed, column)
    expected, actual = index[rows].tolist(), list(cell.drawn)
    if actual != expected:
        yield f"{column}: drawn {actual[:SHOWN]}", f"{expected[:SHOWN]}, as the digest says"
    if abs(cell.mean - loaded.result.score.mean) > 1e-9:
        yield f"{column}: a mean of {cell.mean}", loaded.result.score.mean
    if not n <= cell.episodes <= len(index):
        yield f"{column}: {cell.episodes} episodes", f"at most the {len(index)} it has"
    here = {k: v for k, v in badge.environment.items() if k not in {"fsbench", "commit"}}
    differs = list_differences(loaded.result, here)
    if cell.differs != differs:
        yield f"{column}: environment {cell.differs or 'equal'}", differs or "equal"
    scored = cell.episodes * spec.episode.n_way * spec.episode.n_query
    dense = 0 if records.dense_total is None else int(records.dense_total.sum())
    limits = [(cell, scored, scored), *([(cell.dense, 1, dense)] if cell.dense else [])]
    for count, least, most in limits:
        if not least <= count.outcomes <= most:
            yield f"{column}: {count.outcomes} outcomes", f"{least} to {most}"
        allowed = allow_flips(count.outcomes, spec.adaptation, bool(differs))
        if count.allowed != allowed:
            yield f"{column}: {count.allowed} flips allowed", allowed
        balanced = (count.flipped + count.gained) % 2 == 0
        if not abs(count.gained) <= count.flipped <= count.outcomes or not balanced:
            yield f"{column}: {count.flipped} flips, {count.gained} gained", "possible counts"
    is_listed = set(cell.wrong) <= set(index.tolist()) and len(cell.wrong) <= MAX_WRONG
    if not is_listed or (any(count.flipped for count in cell.counts) and not cell.wrong):
        yield f"{column}: wrong episodes {list(cell.wrong[:SHOWN])}", "episodes that differ"
