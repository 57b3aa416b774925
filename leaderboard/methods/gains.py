"""Gains of rows over their controls, per column and overall, over the outcomes that both have.

With two seeds or more on both sides the interval covers seeds and episodes (ranking/gaps.py); with
fewer episodes and, if three rows or more have several seeds, their pooled spread
(ranking/seeds.py). Runs of one seed share initial weights and batches, so gains over `normal` are
paired by seed; gains over random initializations are not.
"""

from collections.abc import Mapping, Sequence

from fsbench.core import statistics
from leaderboard.methods.controls import Controls, Match
from leaderboard.methods.record import ControlKind, Gain
from leaderboard.ranking.gaps import compute_joint_interval
from leaderboard.ranking.outcomes import align_outcomes
from leaderboard.ranking.seeds import (
    Columns,
    Coverage,
    PooledSpread,
    average_columns,
    compute_seed_interval,
    list_pooled_variances,
)
from leaderboard.ranking.tiers import ALPHA
from leaderboard.render.notes import finite_or_none

TESTED = ("seeds", "seeds and episodes")
"""What the interval of a gain covers that may be significant: seeds of both sides."""


def compute_gains(
    controls: Mapping[str, Controls], columns: Sequence[str], pooled: PooledSpread | None
) -> dict[ControlKind, dict[str, Gain]]:
    """Return kind -> row -> gain in the mean of columns, with Holm's correction over the rows."""
    gains: dict[ControlKind, dict[str, Gain]] = {}
    for name, matches in controls.items():
        for kind, match in matches.items():
            if isinstance(match, Match) and (gain := compute_gain(match, columns, pooled)):
                gains.setdefault(kind, {})[name] = gain
    return {kind: adjust_gains(of_kind) for kind, of_kind in gains.items()}


def compute_gain(
    match: Match, columns: Sequence[str], pooled: PooledSpread | None = None
) -> Gain | None:
    """Return the gain over a control in the mean of columns.

    None if a side lacks a column, or if the sides share no outcome of one. pooled: the spread of
    rows with several seeds, for sides of one seed.
    """
    row, control, is_paired = match
    if not columns or not {*columns} <= row.outcomes.keys() & control.outcomes.keys():
        return None
    aligned = [align_outcomes([row.outcomes[c], control.outcomes[c]]) for c in columns]
    ours, theirs = zip(*aligned, strict=True)
    if not all(outcomes.index.size for outcomes in ours):
        return None
    draws = [outcomes.draws for outcomes in ours]
    paired = statistics.paired([o.values for o in ours], [o.values for o in theirs], draws)
    sides: list[list[Columns]] = [
        list(zip(*(outcomes.by_seed for outcomes in side), strict=True)) for side in (ours, theirs)
    ]
    if is_paired:
        pairs = zip(*sides, strict=True)
        sides = [[[x - y for x, y in zip(a, b, strict=True)] for a, b in pairs]]
    ci95, p = paired.ci95, paired.p
    covers: Coverage = "episodes"
    if min(map(len, sides)) > 1:
        ci95, p = compute_seed_interval(paired.gap, sides, paired.se, draws)
        covers = "seeds and episodes"
    elif pooled:
        n_seeds = ours[0].n_seeds, theirs[0].n_seeds
        variances = list_pooled_variances(paired, n_seeds, pooled)
        ci95, p = compute_joint_interval(paired.gap, variances)
        covers = "pooled seeds and episodes"
    return Gain(
        gap=paired.gap,
        ci95=finite_or_none(ci95),
        p=p if p == p else 1.0,
        n=paired.n,
        seeds=tuple(network.seed for network in row.networks),
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


def compute_in_domain_gains(controls: Mapping[str, Controls]) -> dict[str, Gain]:
    """Return row -> gain over plain training on the source.

    p is adjusted by Holm over the rows with two or more seeds; one seed is no test.
    """
    gains = {
        name: gain
        for name, matches in controls.items()
        if isinstance(match := matches.get("normal"), Match)
        and (gain := compute_in_domain_gain(match))
    }
    return gains | adjust_gains({name: gain for name, gain in gains.items() if gain.n > 1})


def compute_in_domain_gain(match: Match) -> Gain | None:
    """Return the gain over the common seeds; None if a run has no accuracy on its source."""
    pairs = zip(match.row.networks, match.control.networks, strict=True)
    accuracies = [(ours.source, theirs.source) for ours, theirs in pairs]
    gaps = [x - y for x, y in accuracies if x is not None and y is not None]
    if len(gaps) < len(accuracies):
        return None
    paired = statistics.paired_by_seed(gaps)
    return Gain(
        gap=paired.gap,
        ci95=finite_or_none(paired.ci95),
        p=paired.p,
        n=len(gaps),
        seeds=tuple(network.seed for network in match.row.networks),
        covers="seeds",
        by_seed=tuple(gaps),
    )
