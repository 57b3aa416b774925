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
from fsbench.results.verification import Loaded, Problem
from leaderboard.board.badges import (
    Badge,
    CellCheck,
    FlipCount,
    allow_flips,
    badge_path,
    draw_rows,
    draw_seeds,
)
from leaderboard.submission.chain import build_chain

FIX = "remove the badge, or verify the entry again"
SHOWN = 3
"""Maximum number of names in a message."""
MAX_WRONG = 20
"""Episodes that a badge lists at most."""
Contradiction = tuple[object, object]
"""Value in a badge, and the value that it must have."""


def find_badge_problems(path: Path, badge: Badge, results: Sequence[Loaded]) -> Iterator[Problem]:
    """Yield a Problem for everything in a badge that contradicts the results of its entry."""
    end = build_chain(results).end
    if badge.chain != end:
        yield Problem("badge", str(path), "a badge of other results", "of these", FIX)
        return
    contradictions = [*check_date(path, badge), *check_coverage(badge, results)]
    if not contradictions:
        contradictions += check_draws(badge, results)
        by_column = {str(loaded.result.column): loaded for loaded in results}
        for cell in badge.cells:
            contradictions += check_cell(badge, cell, by_column[cell.cell])
    for actual, expected in contradictions:
        yield Problem("badge", str(path), str(actual)[:300], str(expected)[:300], FIX)


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


def check_draws(badge: Badge, results: Sequence[Loaded]) -> Iterator[Contradiction]:
    """Check that the drawn episodes follow from the chain and the seed.

    Those of schema 1 are episodes of the result: how they were drawn changed within it.
    """
    cells = {cell.cell: cell for cell in badge.cells}
    verified = sorted(
        (loaded for loaded in results if str(loaded.result.column) in cells),
        key=lambda loaded: (loaded.result.column, loaded.result.spec_digest),
    )
    indices = [c.records.index for c in verified if isinstance(c.records, EpisodeRecords)]
    n = sum(len(cell.drawn) for cell in badge.cells)
    if n > sum(map(len, indices)):
        yield f"{n} episodes drawn", f"at most {sum(map(len, indices))}"
        return
    rows = draw_rows([len(index) for index in indices], n, draw_seeds(badge.chain, badge.seed))
    for loaded, index, drawn in zip(verified, indices, rows, strict=True):
        cell = cells[str(loaded.result.column)]
        expected, actual = index[drawn].tolist(), list(cell.drawn)
        if badge.schema_version == 1:
            expected = sorted(set(actual) & set(index.tolist()))
        if actual != expected:
            yield f"{cell.cell}: drawn {actual[:SHOWN]}", f"{expected[:SHOWN]}, as the chain says"


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
    for count, least, most in list_limits(badge, cell, scored, dense):
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


def list_limits(
    badge: Badge, cell: CellCheck, scored: int, dense: int
) -> list[tuple[FlipCount, int, int]]:
    """Return every count with the fewest and the most outcomes that it can have."""
    if badge.schema_version == 1:
        return [(cell, scored, scored + dense)]
    return [(cell, scored, scored), *([] if cell.dense is None else [(cell.dense, 1, dense)])]
