"""Which episodes of an entry are run again, and what may come out otherwise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench import data
from fsbench.core.errors import UsageError
from fsbench.core.records import EpisodeRecords
from fsbench.core.seeding import words
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import FOLDER, TaskId, TaskPattern
from fsbench.data.episodes import first
from fsbench.results import provenance
from fsbench.results.building import differing
from fsbench.results.rules import Loaded
from leaderboard.board.badges import CellCheck

AFFINE_FLIPS = 0.02
"""Part of the queries that affine tuning may flip in another environment: it is chaotic, and its
own float32 test allows as many (design.md 5)."""
FLIPS = 0.002
"""The same of every other head: only queries on the border between two classes can flip. Seen: none
of 258,000 outcomes of five heads between AVX-512 and no vector instructions."""
SHOWN = 20


@dataclass(frozen=True, eq=False)
class Sample:
    """Episodes of one cell to run again; task names the data set as it is found here."""

    cell: Loaded
    records: EpisodeRecords
    spec: EpisodicSpec
    task: TaskId
    drawn: tuple[int, ...] = ()


def samples(cells: Sequence[Loaded], texts: Sequence[str]) -> list[Sample]:
    """The episodic cells that the task ids name, by column; all of known data sets without ids.

    Parts that an id leaves out fit any cell. Raises UsageError for an id that fits none.
    """
    asked = [TaskPattern.parse(text) for text in texts]
    found = []
    for cell in sorted(cells, key=lambda c: (c.result.column, c.result.spec_digest)):
        fits = [each for each in asked if matches(each, cell)]
        records, spec = cell.records, cell.result.spec
        known = bool(fits) if asked else "custom" not in cell.result.dataset.flags
        if known and isinstance(records, EpisodeRecords) and isinstance(spec, EpisodicSpec):
            ref = fits[0].dataset if fits else cell.result.dataset.name
            found.append(Sample(cell, records, spec, task(ref, cell, spec)))
    for each in asked:
        if not any(matches(each, sample.cell) for sample in found):
            raise UsageError(f"'{each.text}' names no episodes of the entry", fix=has(cells))
    if not found:
        raise UsageError("the entry holds no episodes of a known data set", fix=has(cells))
    return found


def has(cells: Sequence[Loaded]) -> str:
    names = [str(cell.result.task) for cell in cells if cell.result.spec.kind == "episodic"]
    return (
        f"it has {', '.join(names[:12]) or 'no episodes'}; probes are not run again; images of "
        "one's own are named by -t folder:DIR"
    )


def matches(pattern: TaskPattern, cell: Loaded) -> bool:
    """Whether a result has episodes and its task agrees with all parts of the pattern."""
    task = cell.result.task
    names = pattern.dataset_names(data.resolve, data.groups())
    return task.probe is None and task.dataset in names and pattern.covers(task)


def task(ref: str, cell: Loaded, spec: EpisodicSpec) -> TaskId:
    """The task of a cell; ref: a folder of one's own, else the data set goes by its own name."""
    return TaskId.of(ref if ref.startswith(FOLDER) else cell.result.dataset.name, spec)


def draw(found: Sequence[Sample], n: int, entry: str, seed: int) -> list[Sample]:
    """Those of which episodes are drawn: n in all, in a random order of the episodes of all cells,
    the first one of every cell before all others, so that a cell of few is not missed.
    """
    ends = np.cumsum([len(sample.records.index) for sample in found])
    total = int(ends[-1])
    order = first(total, words(total, "verify", entry, seed))
    of = np.searchsorted(ends, order, side="right")
    leading = np.sort(np.unique(of, return_index=True)[1])
    picked = np.sort(np.concatenate([order[leading], np.delete(order, leading)])[:n])
    cells = np.searchsorted(ends, picked, side="right")
    rows = picked - np.concatenate([[0], ends])[cells]
    chosen = []
    for i, sample in enumerate(found):
        numbers = tuple(int(x) for x in sample.records.index[rows[cells == i]])
        if numbers:
            chosen.append(Sample(sample.cell, sample.records, sample.spec, sample.task, numbers))
    return chosen


def compare(sample: Sample, again: EpisodeRecords, now: Mapping[str, str]) -> CellCheck:
    """The entry's outcomes against those run again; now: the environment of the second run.

    In one environment no outcome may differ, in another one few (AFFINE_FLIPS, FLIPS).
    """
    mine = sample.records.take(np.isin(sample.records.index, again.index))
    before = provenance.environment(sample.cell.result.provenance)
    changes = provenance.changes(before, now)
    differs = tuple(f"{part}: {mine} -> {its}" for part, (mine, its) in changes.items())
    flipped, gained, outcomes = flips(mine, again)
    rate = AFFINE_FLIPS if sample.spec.adaptation == "affine" else FLIPS
    wrong = differing(mine, again)
    return CellCheck(
        cell=str(sample.cell.result.column),
        drawn=sample.drawn,
        episodes=len(again.index),
        outcomes=outcomes,
        flipped=flipped,
        gained=gained,
        allowed=math.ceil(rate * outcomes) if differs else 0,
        differs=differs,
        wrong=tuple(int(i) for i in wrong[:SHOWN]),
        other=other(mine, again, exact=not differs),
    )


def flips(mine: EpisodeRecords, again: EpisodeRecords) -> tuple[int, int, int]:
    """Outcomes that differ, right ones more in the first, outcomes in all.

    Of dense queries only the numbers right of each class are known, so theirs are at least these.
    """
    gaps = [mine.correct.astype(np.int64) - again.correct]
    outcomes = mine.correct.size
    if mine.dense_correct is not None and again.dense_correct is not None:
        gaps.append(mine.dense_correct - again.dense_correct)
        outcomes += 0 if mine.dense_total is None else int(mine.dense_total.sum())
    flipped = sum(int(np.abs(gap).sum()) for gap in gaps)
    return flipped, sum(int(gap.sum()) for gap in gaps), outcomes


def other(mine: EpisodeRecords, again: EpisodeRecords, exact: bool) -> str | None:
    """What differs beside outcomes; exact: collapsed and non-finite episodes count too."""
    pairs: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {
        "classes": (mine.class_ids, again.class_ids)
    }
    if mine.dense_total is not None and again.dense_total is not None:
        pairs["dense queries"] = (mine.dense_total, again.dense_total)
    if exact:
        pairs["collapsed episodes"] = (mine.collapsed, again.collapsed)
        pairs["non-finite episodes"] = (mine.finite, again.finite)
    wrong = [name for name, (a, b) in pairs.items() if not np.array_equal(a, b)]
    return f"other {', '.join(wrong)}" if wrong else None
