"""Tiers by paired statistics.

The best remaining entry is the leader; its tier consists of all remaining entries that are not
significantly worse than the *leader*: paired over shared outcomes, Holm's correction over that
leader's comparisons, alpha 0.05. The tier is removed and the rule applied again. Overall is the
unweighted mean over the columns; an entry that lacks a column is unranked. Outcomes are per-episode
accuracies, or correct / wrong per test image for a linear probe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fsbench.core import statistics
from fsbench.core.statistics import Paired, Score
from leaderboard.ranking.outcomes import Outcomes as Outcomes
from leaderboard.ranking.pairs import PairwiseGaps

ALPHA = 0.05


Contenders = Mapping[str, Mapping[str, Outcomes]]
"""Entry name -> column -> outcomes. Outcomes of one column share their numbering."""


@dataclass(frozen=True)
class RankedEntry:
    """An entry with its place in a ranking.

    tier: 1 is the best, None is unranked; overall: mean over the columns, None if `missing` is not
    empty; behind: gap of the tier's leader over the entry, None for the leader itself and for
    unranked entries; p: of that gap, adjusted by Holm.
    """

    name: str
    scores: Mapping[str, Score]
    missing: tuple[str, ...] = ()
    overall: float | None = None
    tier: int | None = None
    behind: Paired | None = None
    p: float | None = None


@dataclass(frozen=True)
class Ranking:
    """Tiers, best first; within a tier the higher mean first, then the name."""

    columns: tuple[str, ...]
    tiers: tuple[tuple[RankedEntry, ...], ...]
    unranked: tuple[RankedEntry, ...]
    alpha: float = ALPHA

    @property
    def entries(self) -> tuple[RankedEntry, ...]:
        return tuple(s for tier in self.tiers for s in tier) + self.unranked


def rank_entries(contenders: Contenders, columns: Sequence[str], alpha: float = ALPHA) -> Ranking:
    """Rank entries over the columns; the result does not depend on their order."""
    scores = {
        name: {c: statistics.score(by_column[c].values) for c in columns if c in by_column}
        for name, by_column in contenders.items()
    }
    whole = {name: s for name, s in scores.items() if columns and len(s) == len(columns)}
    overall = {name: float(np.mean([s[c].mean for c in columns])) for name, s in whole.items()}
    remaining = sorted(overall, key=lambda name: (-overall[name], name))
    pairs = PairwiseGaps({name: [contenders[name][c] for c in columns] for name in remaining})
    tiers: list[tuple[RankedEntry, ...]] = []
    while remaining:
        gaps, adjusted = compare_with_leader(pairs, remaining)
        tied = [n for n in remaining if not (n in gaps and is_worse(gaps[n], adjusted[n], alpha))]
        place = len(tiers) + 1
        tiers.append(
            tuple(
                RankedEntry(n, scores[n], (), overall[n], place, gaps.get(n), adjusted.get(n))
                for n in tied
            )
        )
        remaining = [name for name in remaining if name not in set(tied)]
    unranked = tuple(
        RankedEntry(name, scores[name], tuple(c for c in columns if c not in scores[name]))
        for name in sorted(scores.keys() - overall.keys())
    )
    return Ranking(tuple(columns), tuple(tiers), unranked, alpha)


def is_worse(gap: Paired, p: float, alpha: float) -> bool:
    """Return whether an entry is significantly below the leader."""
    return gap.gap > 0 and p < alpha


def compare_with_leader(
    pairs: PairwiseGaps, remaining: Sequence[str]
) -> tuple[dict[str, Paired], dict[str, float]]:
    """Return the leader's gap over each remaining entry, and its p-value adjusted by Holm."""
    leader, *others = remaining
    gaps = pairs.behind(leader, others)
    return gaps, dict(zip(gaps, statistics.holm([gap.p for gap in gaps.values()]), strict=True))
