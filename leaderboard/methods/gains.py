"""What a row has over its control, column by column and overall, over the outcomes both share.

With two seeds and more on both sides the interval covers seeds and episodes (seeds.py), otherwise
episodes only (stats.paired). Runs of one seed share initial weights and batches, so gaps over
`normal` are taken seed by seed; those over random inits, whose seeds name other draws, are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from leaderboard.methods.controls import Found
from leaderboard.methods.record import Gain, Kind
from leaderboard.methods.runs import Run, shared
from leaderboard.methods.seeds import Columns, over_both, over_seeds, overall

Cells = Mapping[tuple[str, str, Kind], Gain]
"""(row, column, kind of control) -> gain; the column '' is overall."""


class Sides(NamedTuple):
    """Outcomes of both sides over what they share: seeds x columns x (n,); draws: of a column."""

    ours: list[Columns]
    theirs: list[Columns]
    draws: list[str]

    @property
    def n(self) -> int:
        return sum(column.size for column in self.ours[0])


def sides(ours: Sequence[Run], theirs: Sequence[Run], columns: Sequence[str]) -> Sides:
    """Over the episodes or test images that all these runs have, in columns that they all hold."""
    held: list[list[NDArray[np.float64]]] = [shared([*ours, *theirs], c) for c in columns]
    by_run: list[Columns] = [list(run) for run in zip(*held, strict=True)]
    draws = [ours[0].held[column].draws for column in columns]
    return Sides(by_run[: len(ours)], by_run[len(ours) :], draws)


def gain(both: Sides, seeds: tuple[int, ...], by_seed: bool) -> Gain | None:
    """None without a shared outcome in every column. by_seed: run i of both sides is one seed."""
    ours, theirs, draws = both
    if not all(column.size for column in ours[0]):
        return None
    found = statistics.paired(over_seeds(ours), over_seeds(theirs), draws)
    drawn = [differences(ours, theirs)] if by_seed else [ours, theirs]
    ci95, p, covers = found.ci95, found.p, "episodes"
    if min(map(len, drawn)) > 1:
        ci95, p = over_both(found.gap, drawn, found.se, draws)
        covers = "seeds and episodes"
    own = tuple(map(overall, drawn[0])) if by_seed else ()
    return judged(found.gap, ci95, p, n=both.n, seeds=seeds, covers=covers, by_seed=own)


def differences(ours: Sequence[Columns], theirs: Sequence[Columns]) -> list[Columns]:
    """Seed by seed."""
    return [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(ours, theirs, strict=True)]


def judged(gap: float, ci95: float, p: float, **more: object) -> Gain:
    """Unknown (nan) as the record has it: no interval, and p = 1."""
    values = {"gap": gap, "ci95": ci95 if ci95 == ci95 else None, "p": p if p == p else 1.0}
    return Gain.model_validate({**values, **more})


def against(ours: Sequence[Run], kind: Kind, control: Found, columns: Sequence[str]) -> Gain | None:
    """Over the control in these columns together; None where one side lacks a column."""
    if control.group is None or not columns:
        return None
    by_seed = kind != "random_init"
    ours = [run for run in ours if run.seed in control.seeds]
    theirs = control.group.of(control.seeds) if by_seed else control.group.runs
    if not all(column in run.held for column in columns for run in (*ours, *theirs)):
        return None
    return gain(sides(ours, theirs, columns), control.seeds, by_seed)


def adjusted(gains: Cells) -> dict[tuple[str, str, Kind], Gain]:
    """By Holm over the rows, for every column and kind of control on its own."""
    families: dict[tuple[str, Kind], list[tuple[str, str, Kind]]] = {}
    for row, column, kind in gains:
        families.setdefault((column, kind), []).append((row, column, kind))
    found: dict[tuple[str, str, Kind], Gain] = {}
    for keys in families.values():
        p = statistics.holm([gains[key].p for key in keys])
        found |= {
            k: gains[k].model_copy(update={"p_holm": q}) for k, q in zip(keys, p, strict=True)
        }
    return found
