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
from leaderboard.methods.controls import MatchedControl
from leaderboard.methods.record import ControlKind, Gain
from leaderboard.methods.runs import MethodRun, align_outcomes
from leaderboard.methods.seeds import Columns, average_columns, average_seeds, interval_over_seeds

GainsByKey = Mapping[tuple[str, str, ControlKind], Gain]
"""(row, column, kind of control) -> gain; the column '' is overall."""


class PairedRuns(NamedTuple):
    """Outcomes of both sides over what they share: seeds x columns x (n,); draws: of a column."""

    ours: list[Columns]
    theirs: list[Columns]
    draws: list[str]

    @property
    def n(self) -> int:
        return sum(column.size for column in self.ours[0])


def pair_runs(
    ours: Sequence[MethodRun], theirs: Sequence[MethodRun], columns: Sequence[str]
) -> PairedRuns:
    """Over the episodes or test images that all these runs have, in columns that they all hold."""
    held: list[list[NDArray[np.float64]]] = [align_outcomes([*ours, *theirs], c) for c in columns]
    by_run: list[Columns] = [list(run) for run in zip(*held, strict=True)]
    draws = [ours[0].held[column].draws for column in columns]
    return PairedRuns(by_run[: len(ours)], by_run[len(ours) :], draws)


def compute_gain(both: PairedRuns, seeds: tuple[int, ...], by_seed: bool) -> Gain | None:
    """None without a shared outcome in every column. by_seed: run i of both sides is one seed."""
    ours, theirs, draws = both
    if not all(column.size for column in ours[0]):
        return None
    found = statistics.paired(average_seeds(ours), average_seeds(theirs), draws)
    drawn = [subtract_by_seed(ours, theirs)] if by_seed else [ours, theirs]
    ci95, p, covers = found.ci95, found.p, "episodes"
    if min(map(len, drawn)) > 1:
        ci95, p = interval_over_seeds(found.gap, drawn, found.se, draws)
        covers = "seeds and episodes"
    own = tuple(map(average_columns, drawn[0])) if by_seed else ()
    return make_gain(found.gap, ci95, p, n=both.n, seeds=seeds, covers=covers, by_seed=own)


def subtract_by_seed(ours: Sequence[Columns], theirs: Sequence[Columns]) -> list[Columns]:
    """Seed by seed."""
    return [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(ours, theirs, strict=True)]


def make_gain(gap: float, ci95: float, p: float, **more: object) -> Gain:
    """Unknown (nan) as the record has it: no interval, and p = 1."""
    values = {"gap": gap, "ci95": ci95 if ci95 == ci95 else None, "p": p if p == p else 1.0}
    return Gain.model_validate({**values, **more})


def gain_over(
    ours: Sequence[MethodRun], kind: ControlKind, control: MatchedControl, columns: Sequence[str]
) -> Gain | None:
    """Over the control in these columns together; None where one side lacks a column."""
    if control.group is None or not columns:
        return None
    by_seed = kind != "random_init"
    ours = [run for run in ours if run.seed in control.seeds]
    theirs = control.group.of(control.seeds) if by_seed else control.group.runs
    if not all(column in run.held for column in columns for run in (*ours, *theirs)):
        return None
    return compute_gain(pair_runs(ours, theirs, columns), control.seeds, by_seed)


def adjust_gains(gains: GainsByKey) -> dict[tuple[str, str, ControlKind], Gain]:
    """By Holm over the rows, for every column and kind of control on its own."""
    families: dict[tuple[str, ControlKind], list[tuple[str, str, ControlKind]]] = {}
    for row, column, kind in gains:
        families.setdefault((column, kind), []).append((row, column, kind))
    found: dict[tuple[str, str, ControlKind], Gain] = {}
    for keys in families.values():
        p = statistics.holm([gains[key].p for key in keys])
        found |= {
            k: gains[k].model_copy(update={"p_holm": q}) for k, q in zip(keys, p, strict=True)
        }
    return found
