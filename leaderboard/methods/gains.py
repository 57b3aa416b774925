"""Gains of a row over its control, per column and overall, on the outcomes that both share.

With two or more seeds on both sides the interval covers seeds and episodes (seeds.py), otherwise
only episodes (`fsbench.core.statistics.paired`). Runs of one seed share initial weights and
batches, so gains over `normal` are paired by seed; gains over random initializations are not.
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
    """Shared outcomes of a row and its control: seeds x columns x (n,); draws: of each column."""

    ours: list[Columns]
    theirs: list[Columns]
    draws: list[str]

    @property
    def n(self) -> int:
        return sum(column.size for column in self.ours[0])


def pair_runs(
    ours: Sequence[MethodRun], theirs: Sequence[MethodRun], columns: Sequence[str]
) -> PairedRuns:
    """Return the outcomes of the episodes or test images that all these runs have."""
    outcomes: list[list[NDArray[np.float64]]] = [
        align_outcomes([*ours, *theirs], c) for c in columns
    ]
    by_run: list[Columns] = [list(run) for run in zip(*outcomes, strict=True)]
    draws = [ours[0].outcomes[column].draws for column in columns]
    return PairedRuns(by_run[: len(ours)], by_run[len(ours) :], draws)


def compute_gain(pair: PairedRuns, seeds: tuple[int, ...], by_seed: bool) -> Gain | None:
    """Return the gain; None without a shared outcome in every column.

    by_seed: run i of both sides has the same seed.
    """
    ours, theirs, draws = pair
    if not all(column.size for column in ours[0]):
        return None
    paired = statistics.paired(average_seeds(ours), average_seeds(theirs), draws)
    seeds_drawn = [subtract_by_seed(ours, theirs)] if by_seed else [ours, theirs]
    ci95, p, covers = paired.ci95, paired.p, "episodes"
    if min(map(len, seeds_drawn)) > 1:
        ci95, p = interval_over_seeds(paired.gap, seeds_drawn, paired.se, draws)
        covers = "seeds and episodes"
    by_seed_gaps = tuple(map(average_columns, seeds_drawn[0])) if by_seed else ()
    return make_gain(
        paired.gap, ci95, p, n=pair.n, seeds=seeds, covers=covers, by_seed=by_seed_gaps
    )


def subtract_by_seed(ours: Sequence[Columns], theirs: Sequence[Columns]) -> list[Columns]:
    """Return the differences of two sides seed by seed."""
    return [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(ours, theirs, strict=True)]


def make_gain(gap: float, ci95: float, p: float, **more: object) -> Gain:
    """Return the record of a gain: no interval and p = 1 if they are nan."""
    values = {"gap": gap, "ci95": ci95 if ci95 == ci95 else None, "p": p if p == p else 1.0}
    return Gain.model_validate({**values, **more})


def gain_over(
    ours: Sequence[MethodRun], kind: ControlKind, control: MatchedControl, columns: Sequence[str]
) -> Gain | None:
    """Return the gain over the control in these columns; None if one side lacks a column."""
    if control.group is None or not columns:
        return None
    by_seed = kind != "random_init"
    ours = [run for run in ours if run.seed in control.seeds]
    theirs = control.group.of(control.seeds) if by_seed else control.group.runs
    if not all(column in run.outcomes for column in columns for run in (*ours, *theirs)):
        return None
    return compute_gain(pair_runs(ours, theirs, columns), control.seeds, by_seed)


def adjust_gains(gains: GainsByKey) -> dict[tuple[str, str, ControlKind], Gain]:
    """Adjust p-values by Holm over the rows, separately by column and kind of control."""
    families: dict[tuple[str, ControlKind], list[tuple[str, str, ControlKind]]] = {}
    for row, column, kind in gains:
        families.setdefault((column, kind), []).append((row, column, kind))
    adjusted: dict[tuple[str, str, ControlKind], Gain] = {}
    for keys in families.values():
        p = statistics.holm([gains[key].p for key in keys])
        adjusted |= {
            k: gains[k].model_copy(update={"p_holm": q}) for k, q in zip(keys, p, strict=True)
        }
    return adjusted
