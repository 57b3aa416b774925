"""How many episodes would tell two entries apart, from the spread of their paired outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fsbench import data, stats
from fsbench.errors import UnknownName, UsageError
from fsbench.planning import Goal, detectable, episodes_needed, standard_errors
from fsbench.records import EpisodeRecords
from fsbench.results.reading import cells
from fsbench.results.rules import Loaded
from fsbench.results.table import DENSE, row_key
from fsbench.specs import EpisodicSpec, Frozen
from fsbench.tasks import FOLDER, Asked, folder_name, parse
from leaderboard.board import Board, Column, column_of
from leaderboard.rank import Outcomes
from leaderboard.standing import paired_outcomes

OFFICIAL = 600
Held = Mapping[Column, Loaded]
"""The episodic results of one entry by column."""


class Needed(Frozen):
    """One line of a plan; fractions.

    episodes: shared by both, of the smallest cell for the overall line; gap: mean of A - B; sd: of
    A - B per episode; detectable: gap that these episodes tell apart, detectable_600: that the
    official number does; needed: episodes a cell for the goal's gap.
    """

    task: str
    episodes: int
    gap: float
    sd: float
    detectable: float
    detectable_600: float
    needed: int


class Plan(Frozen):
    """Cells in the order of a table, then the unweighted mean over them, which a board ranks by.

    dense: of the cells whose heads were scored on all possible queries, if they are compared by it.
    """

    a: str
    b: str
    goal: Goal
    cells: tuple[Needed, ...]
    overall: Needed
    dense: tuple[Needed, ...]


def plan(a: str, b: str, goal: Goal, texts: Sequence[str] = (), board: Path | None = None) -> Plan:
    """The plan for two entries: results folders, or names on the board.

    texts: tasks to go by, all when empty; transductive cells count only where no others do. Raises
    UsageError for an entry that is not one, and for entries without a cell whose episodes can be
    paired; ValidationFailed for broken results.
    """
    goal.require_possible()
    asked = [parse(text) for text in texts]
    left, right = (chosen(entry(name, board), asked) for name in (a, b))
    shared = sorted(left.keys() & right.keys(), key=lambda c: (row_key(c.name), c.digest()))
    shared = [column for column in shared if not column.transductive] or shared
    if not shared:
        message, fix = nothing_shared(a, b, left, right)
        raise UsageError(message, fix=fix)
    pairs = [(c.name, paired(c.name, *map(paired_outcomes, (left[c], right[c])))) for c in shared]
    scored = [(c.name + DENSE, dense_outcomes(left[c]), dense_outcomes(right[c])) for c in shared]
    dense = [(task, paired(task, x, y)) for task, x, y in scored if x is not None and y is not None]
    found, more = (tuple(line(task, *p, goal) for task, p in each) for each in (pairs, dense))
    mean = overall(found, [pair for _, pair in pairs], goal)
    return Plan(a=a, b=b, goal=goal, cells=found, overall=mean, dense=more)


def entry(name: str, board: Path | None) -> Held:
    """The episodic results of a folder that holds one model, or of an entry on the board."""
    if Path(name).exists():
        loaded = list(cells(Path(name)))
        weights = {cell.result.backbone.weights_hash: cell.model for cell in loaded}
        if len(weights) > 1:
            models = ", ".join(sorted(weights.values()))
            raise UsageError(f"{name} holds several models: {models}", fix="give the folder of one")
    elif board is None:
        raise UsageError(f"{name} does not exist", fix="give a results folder, or --board DIR")
    else:
        opened = Board.open(board)
        if name not in opened.names():
            raise UnknownName("entry", name, opened.names())
        loaded = list(opened.entry(name).cells)
    few_shot = [cell for cell in loaded if isinstance(cell.result.spec, EpisodicSpec)]
    return {column_of(cell.result): cell for cell in few_shot}


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


def paired(task: str, left: Outcomes, right: Outcomes) -> tuple[Outcomes, Outcomes]:
    """The outcomes of the episodes that both hold. Raises UsageError below two."""
    index, i, j = np.intersect1d(left.index, right.index, return_indices=True)
    if index.size < 2:
        raise UsageError(
            f"{task}: {left.index.size} and {right.index.size} episodes, {index.size} of them "
            "shared: there is no pair to learn a spread from",
            fix="evaluate both on the same episodes (no --shard, equal --episodes)",
        )
    return (
        Outcomes(index, left.values[i], left.draws),
        Outcomes(index, right.values[j], right.draws),
    )


def line(task: str, a: Outcomes, b: Outcomes, goal: Goal) -> Needed:
    gaps = a.values - b.values
    sd = float(gaps.std(ddof=1))
    return Needed(
        task=task,
        episodes=gaps.size,
        gap=float(gaps.mean()),
        sd=sd,
        detectable=detectable(sd, gaps.size, goal),
        detectable_600=detectable(sd, OFFICIAL, goal),
        needed=episodes_needed(sd, goal),
    )


def overall(
    found: Sequence[Needed], pairs: Sequence[tuple[Outcomes, Outcomes]], goal: Goal
) -> Needed:
    """Of the mean over cells, each with as many episodes."""
    draws = [a.draws for a, _ in pairs]
    now = stats.paired([a.values for a, _ in pairs], [b.values for _, b in pairs], draws)
    sd = stats.overall_sd([a.values - b.values for a, b in pairs], draws)
    return Needed(
        task=f"overall, {len(found)} cell{'s' if len(found) > 1 else ''}",
        episodes=min(cell.episodes for cell in found),
        gap=now.gap,
        sd=sd,
        detectable=standard_errors(goal) * now.se,
        detectable_600=detectable(sd, OFFICIAL, goal),
        needed=episodes_needed(sd, goal),
    )


def nothing_shared(a: str, b: str, left: Held, right: Held) -> tuple[str, str]:
    """Message and fix: whether the tasks differ, or what they were evaluated on."""
    both = sorted({c.name for c in left} & {c.name for c in right})
    if both:
        return (
            f"{a} and {b} hold {both[0]} with other settings, episodes or images: not paired",
            "evaluate both with one --seed on the same copy of the data",
        )
    held = [", ".join(sorted(c.name for c in side)) or "none" for side in (left, right)]
    return (
        f"{a} and {b} share no few-shot cell: {held[0]} against {held[1]}",
        "evaluate both on one task, or leave -t out",
    )
