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

from collections.abc import Mapping, Sequence
from typing import get_args

from fsbench.core import statistics
from leaderboard.methods.record import ControlKind, Gain
from leaderboard.methods.runs import SeedGroup, align_runs, list_draws
from leaderboard.ranking.gaps import compute_joint_interval
from leaderboard.ranking.seeds import (
    Columns,
    Coverage,
    PooledSpread,
    average_columns,
    average_seeds,
    compute_seed_interval,
    estimate_sides,
    list_pooled_variances,
    pool_seed_variances,
)
from leaderboard.ranking.tiers import ALPHA
from leaderboard.render.notes import finite_or_none

OTHER = {"cosine": "single_cycle", "single_cycle": "cosine"}
KINDS: tuple[ControlKind, ...] = get_args(ControlKind)
TESTED = ("seeds", "seeds and episodes")
"""What the interval of a gain covers that may be significant: seeds of both sides."""
Controls = Mapping[ControlKind, SeedGroup | str]
"""Kind -> the control, with the seeds that count, or the reason why there is none."""


def match_controls(group: SeedGroup, named: Sequence[SeedGroup]) -> Controls:
    """Return the controls of a row by kind; a random initialization has none.

    named: the rows that the board names as controls; those of the entry itself come first.
    """
    training, first = group.training, group.runs[0]
    if training is None:
        return {}
    among = {control.serves: control for control in reversed([*group.own_controls, *named])}
    normal: SeedGroup | str = "it is plain training itself"
    if not training.plain:
        normal = match_plain(group, among.get(training.conditions()))
    schedule = training.view.schedule
    if schedule not in OTHER:
        other: SeedGroup | str = f"schedule {schedule} has no counterpart"
    elif training.rounds < 2:
        other = "one round: nothing restarts"
    else:
        other = match_plain(group, among.get(training.conditions(OTHER[schedule])))
    none = f"the board names no random init of {first.facts.architecture} as a control"
    return {
        "normal": normal,
        "other_schedule": other,
        "random_init": among.get(first.shape, none),
    }


def match_plain(group: SeedGroup, control: SeedGroup | None) -> SeedGroup | str:
    """Return plain training under equal conditions, with the seeds of equal steps and images."""
    if control is None:
        return "the board names no normal under the same plan and settings as a control"
    both = sorted({*group.seeds} & {*control.seeds})
    if not both:
        return f"{control.name} has other seeds only: {', '.join(map(str, control.seeds))}"
    ours, theirs = count_steps(group), count_steps(control)
    equal = [seed for seed in both if ours[seed] == theirs[seed]]
    if not equal:
        (steps, images), (ours_steps, ours_images) = theirs[both[0]], ours[both[0]]
        return (
            f"{control.name} took {steps} steps over {images} images, not {ours_steps} over "
            f"{ours_images}"
        )
    return control.select(equal)


def count_steps(group: SeedGroup) -> dict[int, tuple[int, int]]:
    """Return steps and images of the run of each seed."""
    trainings = zip(group.seeds, (run.training for run in group.runs), strict=True)
    return {seed: (training.steps, training.samples) for seed, training in trainings if training}


def pool_seed_variance(groups: Sequence[SeedGroup], columns: Sequence[str]) -> PooledSpread | None:
    """Return the pooled spread of rows over columns; None below three rows of several seeds."""
    several = [g.runs for g in groups if columns and len(g.runs) > 1 and g.has_columns(columns)]
    draws = [list_draws(runs, columns) for runs in several]
    sides = [align_runs(runs, columns) for runs in several]
    return pool_seed_variances(estimate_sides(sides, draws))


def compute_gains(
    groups: Sequence[SeedGroup],
    controls: Mapping[str, Controls],
    columns: Sequence[str],
    pooled: PooledSpread | None,
) -> dict[ControlKind, dict[str, Gain]]:
    """Return kind -> row -> gain in the mean of columns, with Holm's correction over the rows."""

    gains: dict[ControlKind, dict[str, Gain]] = {kind: {} for kind in KINDS}
    for group in groups:
        for kind, control in controls[group.name].items():
            if isinstance(control, SeedGroup) and (
                gain := compute_gain(group, kind, control, columns, pooled)
            ):
                gains[kind][group.name] = gain
    return {kind: adjust_gains(of_kind) for kind, of_kind in gains.items()}


def compute_gain(
    group: SeedGroup,
    kind: ControlKind,
    control: SeedGroup,
    columns: Sequence[str],
    pooled: PooledSpread | None = None,
) -> Gain | None:
    """Return the gain over a control in the mean of columns.

    None if a side lacks a column, or if the sides share no outcome of one. pooled: the spread of
    rows with several seeds, for sides of one seed.
    """
    is_paired = kind != "random_init"
    row = group.select(control.seeds) if is_paired else group
    if not columns or not (row.has_columns(columns) and control.has_columns(columns)):
        return None
    runs = align_runs([*row.runs, *control.runs], columns)
    if not all(column.size for column in runs[0]):
        return None
    ours, theirs = runs[: len(row.runs)], runs[len(row.runs) :]
    draws = list_draws(row.runs, columns)
    paired = statistics.paired(average_seeds(ours), average_seeds(theirs), draws)
    sides: list[list[Columns]] = [ours, theirs]
    if is_paired:
        pairs = zip(ours, theirs, strict=True)
        sides = [[[x - y for x, y in zip(a, b, strict=True)] for a, b in pairs]]
    ci95, p = paired.ci95, paired.p
    covers: Coverage = "episodes"
    if min(map(len, sides)) > 1:
        ci95, p = compute_seed_interval(paired.gap, sides, paired.se, draws)
        covers = "seeds and episodes"
    elif pooled:
        variances = list_pooled_variances(paired, (len(ours), len(theirs)), pooled)
        ci95, p = compute_joint_interval(paired.gap, variances)
        covers = "pooled seeds and episodes"
    return Gain(
        gap=paired.gap,
        ci95=finite_or_none(ci95),
        p=p if p == p else 1.0,
        n=sum(column.size for column in runs[0]),
        seeds=row.seeds,
        covers=covers,
        by_seed=tuple(map(average_columns, sides[0])) if is_paired else (),
    )


def adjust_gains(gains: Mapping[str, Gain]) -> dict[str, Gain]:
    """Return these gains with their p-values adjusted by Holm."""
    adjusted = {}
    for name, p in zip(gains, statistics.holm([gain.p for gain in gains.values()]), strict=True):
        significant = gains[name].covers in TESTED and p < ALPHA
        update = {"p_holm": p, "significant": significant}
        adjusted[name] = gains[name].model_copy(update=update)
    return adjusted


def compute_in_domain_gains(
    groups: Sequence[SeedGroup], controls: Mapping[str, Controls]
) -> dict[str, Gain]:
    """Return row -> gain over plain training on the source.

    p is adjusted by Holm over the rows with two or more seeds; one seed is no test.
    """
    gains = {
        group.name: gain
        for group in groups
        if isinstance(control := controls[group.name].get("normal"), SeedGroup)
        and (gain := compute_in_domain_gain(group, control))
    }
    return gains | adjust_gains({name: gain for name, gain in gains.items() if gain.n > 1})


def compute_in_domain_gain(group: SeedGroup, control: SeedGroup) -> Gain | None:
    """Return the gain over the common seeds; None if a run has no accuracy on its source."""
    row = group.select(control.seeds)
    pairs = zip(row.runs, control.runs, strict=True)
    accuracies = [(x.facts.source_accuracy, y.facts.source_accuracy) for x, y in pairs]
    gaps = [x - y for x, y in accuracies if x is not None and y is not None]
    if len(gaps) < len(accuracies):
        return None
    paired = statistics.paired_by_seed(gaps)
    return Gain(
        gap=paired.gap,
        ci95=finite_or_none(paired.ci95),
        p=paired.p,
        n=len(gaps),
        seeds=row.seeds,
        covers="seeds",
        by_seed=tuple(gaps),
    )
