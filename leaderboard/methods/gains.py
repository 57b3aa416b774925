"""Matched-compute controls of a row, and its gains over them, per column and overall.

A row and its control share everything but their methods (`Training.conditions`), have common seeds,
and took the same number of steps and images. No other rows are compared. Controls are named by the
board (`controls` in board.json) or part of the entry itself: what other entries claim has no part.
Gains are over the outcomes that both have.

With two seeds or more on both sides the interval covers seeds and episodes (ranking/gaps.py); with
fewer episodes and, if three rows or more have several seeds, their pooled spread
(ranking/seeds.py). Runs of one seed share initial weights and batches, so gains over `normal` are
paired by seed; gains over random initializations are not.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from leaderboard.methods.record import ControlKind, Gain, InDomainGain, VarianceComponents
from leaderboard.methods.runs import MethodRun, SeedGroup, align_outcomes
from leaderboard.ranking.seeds import (
    Columns,
    Coverage,
    PooledSpread,
    average_columns,
    average_seeds,
    compute_pooled_interval,
    compute_seed_interval,
    estimate_sides,
    pool_seed_variances,
)

OTHER = {"cosine": "single_cycle", "single_cycle": "cosine"}


class ControlIndex(NamedTuple):
    """Controls: plain training by conditions, random initializations by shape, in order."""

    plain: dict[str, list[SeedGroup]]
    random: dict[str, list[SeedGroup]]


def index_controls(groups: Sequence[SeedGroup]) -> ControlIndex:
    index = ControlIndex({}, {})
    for group in groups:
        if group.training is None:
            index.random.setdefault(group.runs[0].shape, []).append(group)
        elif group.training.plain:
            index.plain.setdefault(group.training.conditions(), []).append(group)
    return index


class MatchedControl(NamedTuple):
    """A control with the common seeds, or the reason why there is none."""

    group: SeedGroup | None = None
    seeds: tuple[int, ...] = ()
    reason: str = ""


def match_controls(
    group: SeedGroup, named: Sequence[SeedGroup]
) -> dict[ControlKind, MatchedControl]:
    """Return the controls of a row by kind; a random initialization has none.

    named: the rows that the board names as controls; those of the entry itself come first.
    """
    among = index_controls([*group.own_controls, *named])
    training, first = group.training, group.runs[0]
    if training is None:
        return {}
    schedule = training.view.schedule
    if training.plain:
        normal = MatchedControl(reason="it is plain training itself")
    else:
        normal = match_conditions(group, training.conditions(), among)
    if schedule not in OTHER:
        other = MatchedControl(reason=f"schedule {schedule} has no counterpart")
    elif training.rounds < 2:
        other = MatchedControl(reason="one round: nothing restarts")
    else:
        other = match_conditions(group, training.conditions(OTHER[schedule]), among)
    if controls := among.random.get(first.shape):
        random_init = MatchedControl(controls[0], group.seeds)
    else:
        random_init = MatchedControl(
            reason=f"the board names no random init of {first.facts.architecture} as a control"
        )
    return {"normal": normal, "other_schedule": other, "random_init": random_init}


def match_conditions(group: SeedGroup, conditions: str, among: ControlIndex) -> MatchedControl:
    """Return plain training under these conditions, with the seeds of equal steps and images."""
    controls = among.plain.get(conditions)
    if not controls:
        return MatchedControl(
            reason="the board names no normal under the same plan and settings as a control"
        )
    other = controls[0]
    both = sorted(set(group.seeds) & set(other.seeds))
    if not both:
        seeds = ", ".join(map(str, other.seeds))
        return MatchedControl(reason=f"{other.name} has other seeds only: {seeds}")
    equal = [seed for seed in both if count_steps(group, seed) == count_steps(other, seed)]
    if not equal:
        (steps, images), (ours, mine) = count_steps(other, both[0]), count_steps(group, both[0])
        return MatchedControl(
            reason=f"{other.name} took {steps} steps over {images} images, not {ours} over {mine}"
        )
    return MatchedControl(other, tuple(equal))


def count_steps(group: SeedGroup, seed: int) -> tuple[int, int]:
    """Return steps and images of the run with this seed."""
    trainings = [run.training for run in group.of([seed]) if run.training]
    return trainings[0].steps, trainings[0].samples


def estimate_components(values: NDArray[np.float64]) -> VarianceComponents:
    """Estimate the variance components of outcomes (S seeds, E episodes)."""
    seeds, n = values.shape
    if min(seeds, n) < 2:
        return VarianceComponents(episodes=float(values.var(ddof=1)) if n > 1 else None)
    by_seed, by_episode = values.mean(axis=1), values.mean(axis=0)
    left = values - by_seed[:, None] - by_episode + values.mean()
    residual = float((left**2).sum()) / ((seeds - 1) * (n - 1))
    return VarianceComponents(
        seeds=max(0.0, float(by_seed.var(ddof=1)) - residual / n),
        episodes=max(0.0, float(by_episode.var(ddof=1)) - residual / seeds),
        residual=residual,
    )


GainKey = tuple[str, str, ControlKind]
"""Row, column ('' for overall) and kind of control."""


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
    outcomes = [align_outcomes([*ours, *theirs], column) for column in columns]
    by_run: list[Columns] = [list(run) for run in zip(*outcomes, strict=True)]
    draws = [ours[0].outcomes[column].draws for column in columns]
    return PairedRuns(by_run[: len(ours)], by_run[len(ours) :], draws)


def pool_seed_variance(
    sides: Sequence[Sequence[MethodRun]], columns: Sequence[str]
) -> PooledSpread | None:
    """Return the pooled spread of rows of runs over columns; None below three rows with it."""
    pairs = [
        pair_runs(runs, (), columns)
        for runs in sides
        if len(runs) > 1 and all(column in run.outcomes for run in runs for column in columns)
    ]
    estimates = estimate_sides([pair.ours for pair in pairs], [pair.draws for pair in pairs])
    return pool_seed_variances(estimates) if columns else None


def compute_gain(
    pair: PairedRuns, seeds: tuple[int, ...], by_seed: bool, pooled: PooledSpread | None = None
) -> Gain | None:
    """Return the gain; None without a shared outcome in every column.

    by_seed: run i of both sides has the same seed; pooled: for sides of one seed.
    """
    ours, theirs, draws = pair
    if not all(column.size for column in ours[0]):
        return None
    paired = statistics.paired(average_seeds(ours), average_seeds(theirs), draws)
    seeds_drawn: list[list[Columns]] = [[*ours], [*theirs]]
    if by_seed:
        pairs = zip(ours, theirs, strict=True)
        seeds_drawn = [[[x - y for x, y in zip(a, b, strict=True)] for a, b in pairs]]
    ci95, p = paired.ci95, paired.p
    covers: Coverage = "episodes"
    if min(map(len, seeds_drawn)) > 1:
        ci95, p = compute_seed_interval(paired.gap, seeds_drawn, paired.se, draws)
        covers = "seeds and episodes"
    elif pooled:
        ci95, p = compute_pooled_interval(paired, (len(ours), len(theirs)), pooled)
        covers = "pooled seeds and episodes"
    by_seed_gaps = tuple(map(average_columns, seeds_drawn[0])) if by_seed else ()
    more = {"n": pair.n, "seeds": seeds, "covers": covers, "by_seed": by_seed_gaps}
    return make_gain(paired.gap, ci95, p, **more)


def make_gain(gap: float, ci95: float, p: float, **more: object) -> Gain:
    """Return the record of a gain: no interval and p = 1 if they are nan."""
    values = {"gap": gap, "ci95": ci95 if ci95 == ci95 else None, "p": p if p == p else 1.0}
    return Gain.model_validate({**values, **more})


def compute_gain_over(
    ours: Sequence[MethodRun],
    kind: ControlKind,
    control: MatchedControl,
    columns: Sequence[str],
    pooled: PooledSpread | None = None,
) -> Gain | None:
    """Return the gain over the control in these columns; None if one side lacks a column."""
    if control.group is None or not columns:
        return None
    by_seed = kind != "random_init"
    ours = [run for run in ours if run.seed in control.seeds]
    theirs = control.group.of(control.seeds) if by_seed else control.group.runs
    if not all(column in run.outcomes for column in columns for run in (*ours, *theirs)):
        return None
    return compute_gain(pair_runs(ours, theirs, columns), control.seeds, by_seed, pooled)


def adjust_gains(gains: Mapping[GainKey, Gain]) -> dict[GainKey, Gain]:
    """Adjust p-values by Holm over the rows, separately by column and kind of control."""
    families: dict[tuple[str, ControlKind], list[GainKey]] = {}
    for row, column, kind in gains:
        families.setdefault((column, kind), []).append((row, column, kind))
    adjusted: dict[GainKey, Gain] = {}
    for keys in families.values():
        for key, p in zip(keys, statistics.holm([gains[key].p for key in keys]), strict=True):
            adjusted[key] = gains[key].model_copy(update={"p_holm": p})
    return adjusted


def compute_in_domain_gains(
    groups: Sequence[SeedGroup], matches: Mapping[str, Mapping[ControlKind, MatchedControl]]
) -> dict[str, InDomainGain]:
    """Return the gains over plain training on the source by row.

    p is adjusted by Holm over the rows with two or more seeds; one seed is no test.
    """
    gains = {
        group.name: gain
        for group in groups
        if (control := matches[group.name].get("normal"))
        and (gain := compute_in_domain_gain(group, control))
    }
    tested = [name for name, gain in gains.items() if len(gain.seeds) > 1]
    adjusted = statistics.holm([gains[name].p for name in tested])
    return gains | {
        name: gains[name].model_copy(update={"p_holm": p})
        for name, p in zip(tested, adjusted, strict=True)
    }


def compute_in_domain_gain(group: SeedGroup, control: MatchedControl) -> InDomainGain | None:
    """Return the gain over the common seeds; None if a run has no accuracy on its source."""
    if control.group is None:
        return None
    sides = [side.of(control.seeds) for side in (group, control.group)]
    ours, theirs = ([run.facts.source_accuracy for run in side] for side in sides)
    gaps = [x - y for x, y in zip(ours, theirs, strict=True) if x is not None and y is not None]
    if len(gaps) < len(control.seeds):
        return None
    paired = statistics.paired_by_seed(gaps)
    return InDomainGain(
        gap=paired.gap,
        ci95=None if math.isnan(paired.ci95) else paired.ci95,
        p=paired.p,
        seeds=control.seeds,
        by_seed=tuple(gaps),
    )
