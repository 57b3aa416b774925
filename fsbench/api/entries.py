"""Two entries side by side: whose results they are, and the outcomes that both hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsbench import data
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.records import EpisodeRecords
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import FOLDER, Asked, folder_name, parse
from fsbench.results.reading import cells
from fsbench.results.rules import Loaded
from fsbench.results.table import DENSE, row_key
from leaderboard.board.board import Board, Column, column_of
from leaderboard.board.standing import paired_outcomes
from leaderboard.ranking.rank import Outcomes

Held = Mapping[Column, Loaded]
"""The results of one entry by column."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Outcomes (n,) of the episodes or test images that both hold, under their numbers (n,)."""

    task: str
    index: NDArray[np.int64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    draws: str

    @property
    def gaps(self) -> NDArray[np.float64]:
        return self.a - self.b


@dataclass(frozen=True, eq=False)
class Shared:
    """A column that both entries hold."""

    column: Column
    a: Loaded
    b: Loaded

    @property
    def few_shot(self) -> bool:
        """Over episodes, not over the test images of a probe."""
        return isinstance(self.a.result.spec, EpisodicSpec)

    def scored(self) -> Pair:
        """Raises UsageError below two episodes or images in common."""
        return pair(self.column.name, paired_outcomes(self.a), paired_outcomes(self.b))

    def dense(self) -> Pair | None:
        """Over all possible queries, where both were scored on them. Raises as `scored`."""
        a, b = dense_outcomes(self.a), dense_outcomes(self.b)
        return None if a is None or b is None else pair(self.column.name + DENSE, a, b)


def shared(
    a: str, b: str, texts: Sequence[str], board: Path | None, few_shot: bool = False
) -> list[Shared]:
    """What two entries hold both, in the order of a table: results folders, or names on the board.

    texts: tasks to go by, all when empty; few_shot: without probes. Raises UsageError for an entry
    that is not one and for entries without a common column; ValidationFailed for broken results.
    """
    asked = [parse(text) for text in texts]
    left, right = (chosen(entry(name, board, few_shot), asked) for name in (a, b))
    both = sorted(left.keys() & right.keys(), key=lambda c: (row_key(c.name), c.spec_digest))
    if not both:
        message, fix = nothing_shared(a, b, left, right, "few-shot cell" if few_shot else "cell")
        raise UsageError(message, fix=fix)
    return [Shared(column, left[column], right[column]) for column in both]


def entry(name: str, board: Path | None, few_shot: bool = False) -> Held:
    """The results of a folder that holds one model, or of an entry on the board."""
    if Path(name).exists():
        loaded = list(cells(Path(name)))
        weights = {cell.result.backbone.weights_hash: cell.model for cell in loaded}
        if len(weights) > 1:
            models = ", ".join(sorted(weights.values()))
            raise UsageError(f"{name} holds several models: {models}", fix="give the folder of one")
    elif board is None:
        raise UsageError(f"{name} does not exist", fix="give a results folder, or --board DIR")
    else:
        opened = Board.existing(board)
        if name not in opened.names():
            raise UnknownName("entry", name, opened.names())
        loaded = list(opened.entry(name).cells)
    kept = (cell for cell in loaded if not few_shot or isinstance(cell.result.spec, EpisodicSpec))
    return {column_of(cell.result): cell for cell in kept}


def chosen(held: Held, asked: Sequence[Asked]) -> Held:
    """The cells that any of the tasks names, or all."""
    if not asked:
        return held
    return {c: cell for c, cell in held.items() if any(names(a, cell) for a in asked)}


def names(asked: Asked, cell: Loaded) -> bool:
    """Whether a task id, with all that it leaves out, covers this cell. Raises UnknownName."""
    _, _, rest = cell.result.task.partition(":")
    shape, _, protocol = rest.partition("@")
    shape, _, adaptation = shape.partition("/")
    wanted = (asked.shape, asked.adaptation, asked.protocol)
    same = all(w in {None, h} for w, h in zip(wanted, (shape, adaptation, protocol), strict=True))
    return cell.result.dataset.name in datasets(asked.dataset) and same


def datasets(name: str) -> Sequence[str]:
    if name.startswith(FOLDER):
        return (folder_name(name),)
    return data.groups().get(name) or (data.resolve(name),)


def dense_outcomes(cell: Loaded) -> Outcomes | None:
    """Accuracy of every episode over all possible queries, where they were scored."""
    records = cell.records
    if not isinstance(records, EpisodeRecords) or records.dense_accuracy is None:
        return None
    return Outcomes(records.index, records.dense_accuracy, paired_outcomes(cell).draws)


def pair(task: str, left: Outcomes, right: Outcomes) -> Pair:
    """The outcomes that both hold. Raises UsageError below two."""
    index, i, j = np.intersect1d(left.index, right.index, return_indices=True)
    if index.size < 2:
        raise UsageError(
            f"{task}: {left.index.size} and {right.index.size} episodes, {index.size} of them "
            "shared: there is no pair to learn a spread from",
            fix="evaluate both on the same episodes (no --shard, equal --episodes)",
        )
    return Pair(task, index, left.values[i], right.values[j], left.draws)


def nothing_shared(a: str, b: str, left: Held, right: Held, what: str) -> tuple[str, str]:
    """Message and fix: whether the tasks differ, or what they were evaluated on."""
    both = sorted({c.name for c in left} & {c.name for c in right})
    if both:
        return (
            f"{a} and {b} hold {both[0]} with other settings, episodes or images: not paired",
            "evaluate both with one --seed on the same copy of the data",
        )
    held = [", ".join(sorted(c.name for c in side)) or "none" for side in (left, right)]
    return (
        f"{a} and {b} share no {what}: {held[0]} against {held[1]}",
        "evaluate both on one task, or leave -t out",
    )
