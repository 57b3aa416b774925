"""Tiers by paired statistics (design.md 5).

The best remaining entry leads; its tier holds all remaining entries that are not significantly
worse than the *leader*: paired over shared outcomes, Holm over that leader's comparisons, alpha
0.05. Remove the tier, repeat. Overall is the unweighted mean over the board's columns; an entry
that lacks a column is listed unranked. Outcomes are per-episode accuracies; those of a linear probe
are right or wrong per test image, paired by image.
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
    """An entry on the board.

    tier: 1 is the best, None is unranked; overall: mean over the columns, None where `missing` is
    not empty; behind: what the leader of its tier has over it, None for the leader itself and the
    unranked; p: of that gap, adjusted by Holm.
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
    """Rank entries over the columns; the order in which they are given does not matter."""
    scores = {
        name: {c: statistics.score(held[c].values) for c in columns if c in held}
        for name, held in contenders.items()
    }
    whole = {name: s for name, s in scores.items() if columns and len(s) == len(columns)}
    overall = {name: float(np.mean([s[c].mean for c in columns])) for name, s in whole.items()}
    remaining = sorted(overall, key=lambda name: (-overall[name], name))
    pairs = PairwiseGaps({name: [contenders[name][c] for c in columns] for name in remaining})
    tiers: list[tuple[RankedEntry, ...]] = []
    while remaining:
        gaps, adjusted = compare_with_leader(pairs, remaining)
        tied = [n for n in remaining if not (n in gaps and is_worse(gaps[n], adjusted[n], alpha))]
        tiers.append(
            tuple(
                RankedEntry(
                    *(name, scores[name], (), overall[name], len(tiers) + 1),
                    behind=gaps.get(name),
                    p=adjusted.get(name),
                )
                for name in tied
            )
        )
        gone = set(tied)
        remaining = [name for name in remaining if name not in gone]
    unranked = tuple(
        RankedEntry(name, scores[name], tuple(c for c in columns if c not in scores[name]))
        for name in sorted(scores.keys() - overall.keys())
    )
    return Ranking(tuple(columns), tuple(tiers), unranked, alpha)


def is_worse(gap: Paired, p: float, alpha: float) -> bool:
    """Significantly below the leader."""
    return gap.gap > 0 and p < alpha


def compare_with_leader(
    pairs: PairwiseGaps, remaining: Sequence[str]
) -> tuple[dict[str, Paired], dict[str, float]]:
    """The leader's gap over each other remaining entry, and its p-value adjusted by Holm."""
    leader, *others = remaining
    gaps = pairs.behind(leader, others)
    return gaps, dict(zip(gaps, statistics.holm([gap.p for gap in gaps.values()]), strict=True))
