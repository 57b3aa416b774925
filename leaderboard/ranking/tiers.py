"""Tiers by paired statistics.

The best remaining entry is the leader; its tier consists of all remaining entries that are not
significantly worse than the *leader*, paired over shared outcomes, alpha 0.05. The tier is removed
and the rule applied again. Overall is the unweighted mean over the columns; an entry that lacks a
column is unranked. Outcomes are per-episode accuracies, or correct / wrong per test image for a
linear probe. An entry here is a row of a table: one backbone, or the mean over seeds of a recipe
(seeds.py). Rows of one seed are ranked apart, among each other, where other rows have several: no
rule sees that a recipe of one seed spreads more than those, and would pass for better or worse.

By the rule `simultaneous-tiers-2` p is adjusted for all pairs of the K entries ranked, at every
step (simultaneous.py); entries that share too few outcomes to be compared with most of the others
are unranked.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fsbench.core.statistics import Paired, Score
from leaderboard.ranking.gaps import Gaps, Numbers
from leaderboard.ranking.outcomes import Outcomes as Outcomes
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.seeds import Coverage, SeedErrors
from leaderboard.ranking.simultaneous import adjust_gaps

ALPHA = 0.05
Contenders = Mapping[str, Mapping[str, Outcomes]]
"""Entry name -> column -> outcomes. Outcomes of one column share their numbering."""
APART = "one pretraining seed: ranked apart from the rows of several"


@dataclass(frozen=True)
class RankedEntry:
    """An entry with its place in a ranking.

    tier: 1 is the best, None is unranked; overall: mean over the columns, None if `missing` is not
    empty; behind: gap of the tier's leader over the entry, None for the leader itself and for
    unranked entries; p: of that gap, adjusted by the rule; reason: why it is unranked, or ranked
    apart; covers: what the intervals of `scores` cover; averages: group of columns, such as a data
    set -> mean over them, for groups of which no column is missing.
    """

    name: str
    scores: Mapping[str, Score]
    missing: tuple[str, ...] = ()
    overall: float | None = None
    tier: int | None = None
    behind: Paired | None = None
    p: float | None = None
    reason: str = ""
    covers: Coverage = "episodes"
    averages: Mapping[str, Score] = field(default_factory=dict)


Tiers = tuple[tuple[RankedEntry, ...], ...]


@dataclass(frozen=True)
class Ranking:
    """Tiers, best first; within a tier the higher mean first, then the name.

    apart: tiers of the rows of one seed among each other, where other rows have several.
    """

    columns: tuple[str, ...] = ()
    tiers: Tiers = ()
    unranked: tuple[RankedEntry, ...] = ()
    apart: Tiers = ()

    @property
    def entries(self) -> tuple[RankedEntry, ...]:
        return tuple(s for tier in (*self.tiers, *self.apart) for s in tier) + self.unranked


def rank_entries(
    contenders: Contenders,
    columns: Sequence[str],
    excluded: Mapping[str, str] | None = None,
    averaged: Mapping[str, Sequence[str]] | None = None,
) -> Ranking:
    """Rank entries over the columns; the result does not depend on their order.

    excluded: entry -> reason why it is not to be ranked; averaged: groups of columns, by name.
    """
    missing = {name: len(columns) - len({*columns} & o.keys()) for name, o in contenders.items()}
    reasons = {name: "has no column of this table" for name in contenders if not columns}
    reasons |= {n: f"lacks {m} of {len(columns)} columns" for n, m in missing.items() if m}
    reasons |= excluded or {}
    scores: dict[str, dict[str, Score]] = {}
    averages: dict[str, dict[str, Score]] = {}
    for part in split_pools(contenders, reasons):
        scores |= score_groups(part, {column: [column] for column in columns})
        averages |= score_groups(part, averaged or {})
    overall = {
        name: float(np.mean([s[c].mean for c in columns]))
        for name, s in scores.items()
        if name not in reasons
    }
    reasons |= exclude_incomparable({n: contenders[n] for n in overall}, columns)
    ranked = sorted(overall.keys() - reasons.keys(), key=lambda name: (-overall[name], name))
    unranked = sorted(reasons.keys() & scores.keys())
    pairs = PairwiseGaps({name: [contenders[name][c] for c in columns] for name in ranked})
    if several := pairs.seed_errors.several:
        reasons |= {name: APART for name in ranked if name not in several}
    rows = {
        name: RankedEntry(
            *(name, scores[name], tuple(c for c in columns if c not in scores[name])),
            overall=overall[name] if name in pairs.home else None,
            reason=reasons.get(name, ""),
            covers=pairs.seed_errors.find_coverage(name),
            averages=averages[name],
        )
        for name in [*ranked, *unranked]
    }
    tiers = split_tiers(pairs, [rows[name] for name in ranked if name not in reasons])
    apart = split_tiers(pairs, [rows[name] for name in ranked if name in reasons])
    return Ranking(tuple(columns), tiers, tuple(rows[name] for name in unranked), apart)


def split_tiers(pairs: PairwiseGaps, rows: Sequence[RankedEntry]) -> Tiers:
    """Return the tiers of rows, best first; p is adjusted for all pairs of these rows."""
    tiers: list[tuple[RankedEntry, ...]] = []
    remaining = rows
    while remaining:
        gaps, adjusted = compare_with_leader(pairs, [row.name for row in remaining], len(rows))
        worse = find_worse(gaps, adjusted)
        p = dict(zip(gaps.names, map(float, adjusted), strict=True))
        tier = [row for row in remaining if row.name not in worse]
        ranked = [replace(r, behind=gaps.get(r.name), p=p.get(r.name)) for r in tier]
        tiers.append(tuple(replace(row, tier=len(tiers) + 1) for row in ranked))
        remaining = [row for row in remaining if row.name in worse]
    return tuple(tiers)


def split_pools(contenders: Contenders, reasons: Mapping[str, str]) -> list[Contenders]:
    """Return the entries in parts that share a seed variance: an unranked one has its own."""
    unranked = {name: o for name, o in contenders.items() if name in reasons}
    several = {n for n, o in unranked.items() if any(part.n_seeds > 1 for part in o.values())}
    return [
        {name: o for name, o in contenders.items() if name not in reasons},
        {name: o for name, o in unranked.items() if name not in several},
        *({name: unranked[name]} for name in sorted(several)),
    ]


def score_groups(
    contenders: Contenders, groups: Mapping[str, Sequence[str]]
) -> dict[str, dict[str, Score]]:
    """Return entry -> group of columns -> mean over them, for entries that have them all.

    The interval is over seeds too where rows have several.
    """
    scores: dict[str, dict[str, Score]] = {name: {} for name in contenders}
    for group, columns in groups.items():
        complete = {
            n: [o[c] for c in columns] for n, o in contenders.items() if o.keys() >= {*columns}
        }
        for name, score in SeedErrors(complete).scores.items():
            scores[name][group] = score
    return scores


def exclude_incomparable(contenders: Contenders, columns: Sequence[str]) -> dict[str, str]:
    """Return the entries that cannot be compared with most of the others, with the reason.

    Entries over the same outcomes form a group. Groups join in order of size; one that shares fewer
    than two outcomes of a column with a group that joined is left out, so a deviating entry is left
    out itself and never leaves out the others. A lone entry is ranked.
    """
    groups: dict[tuple[tuple[str, int | bytes], ...], list[str]] = {}
    for name, outcomes in contenders.items():
        numbering = tuple((outcomes[c].draws, outcomes[c].numbering) for c in columns)
        groups.setdefault(numbering, []).append(name)
    joined: list[Mapping[str, Outcomes]] = []
    reasons: dict[str, str] = {}
    for names in sorted(groups.values(), key=lambda names: (-len(names), min(names))):
        first = contenders[names[0]]
        fixed = [*joined, first] if len(names) > 1 else joined
        shared = min((count_shared(first, other, columns) for other in fixed), default=2)
        if shared < 2:
            reason = f"not comparable: shares {shared} outcomes of a column, a comparison needs 2"
            reasons |= dict.fromkeys(names, reason)
        else:
            joined.append(first)
    return reasons


def count_shared(
    a: Mapping[str, Outcomes], b: Mapping[str, Outcomes], columns: Iterable[str]
) -> int:
    """Return the number of shared outcomes of the column with the fewest."""
    return min(
        np.intersect1d(a[c].index, b[c].index).size if a[c].draws == b[c].draws else 0
        for c in columns
    )


def find_worse(gaps: Gaps, p: Numbers) -> set[str]:
    """Return the entries that are significantly below the leader. p (N,): adjusted."""
    return {gaps.names[i] for i in np.flatnonzero((gaps.gap > 0) & (p < ALPHA))}


def compare_with_leader(
    pairs: PairwiseGaps, remaining: Sequence[str], rows: int | None = None
) -> tuple[Gaps, Numbers]:
    """Return the leader's gaps over the remaining entries, and p (N,) adjusted for all pairs.

    rows: entries of the whole table, by default the remaining ones.
    """
    leader, *others = remaining
    gaps = pairs.behind(leader, others)
    return gaps, adjust_gaps(gaps, rows or len(remaining))
