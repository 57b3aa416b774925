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
from numpy.typing import NDArray

from fsbench import stats
from fsbench.stats import Paired, Score

ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Values (n,) in [0, 1] under distinct increasing numbers (n,) of episodes or test images.

    draws: what the numbers name, equal for columns over the same episodes or images.
    """

    index: NDArray[np.int64]
    values: NDArray[np.float64]
    draws: str


Contenders = Mapping[str, Mapping[str, Outcomes]]
"""Entry name -> column -> outcomes. Outcomes of one column share their numbering."""


@dataclass(frozen=True)
class Standing:
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
    tiers: tuple[tuple[Standing, ...], ...]
    unranked: tuple[Standing, ...]
    alpha: float = ALPHA

    @property
    def standings(self) -> tuple[Standing, ...]:
        return tuple(s for tier in self.tiers for s in tier) + self.unranked


def rank(contenders: Contenders, columns: Sequence[str], alpha: float = ALPHA) -> Ranking:
    """Rank entries over the columns; the order in which they are given does not matter."""
    scores = {
        name: {c: stats.score(held[c].values) for c in columns if c in held}
        for name, held in contenders.items()
    }
    whole = {name: s for name, s in scores.items() if columns and len(s) == len(columns)}
    overall = {name: float(np.mean([s[c].mean for c in columns])) for name, s in whole.items()}
    remaining = sorted(overall, key=lambda name: (-overall[name], name))
    tiers: list[tuple[Standing, ...]] = []
    while remaining:
        gaps, adjusted = against_leader(contenders, remaining, columns)
        tied = [n for n in remaining if not (n in gaps and worse(gaps[n], adjusted[n], alpha))]
        tiers.append(
            tuple(
                Standing(
                    *(name, scores[name], (), overall[name], len(tiers) + 1),
                    behind=gaps.get(name),
                    p=adjusted.get(name),
                )
                for name in tied
            )
        )
        remaining = [name for name in remaining if name not in tied]
    unranked = tuple(
        Standing(name, scores[name], tuple(c for c in columns if c not in scores[name]))
        for name in sorted(scores.keys() - overall.keys())
    )
    return Ranking(tuple(columns), tuple(tiers), unranked, alpha)


def worse(gap: Paired, p: float, alpha: float) -> bool:
    """Significantly below the leader."""
    return gap.gap > 0 and p < alpha


def against_leader(
    contenders: Contenders, remaining: Sequence[str], columns: Sequence[str]
) -> tuple[dict[str, Paired], dict[str, float]]:
    """The leader's gap over each other remaining entry, and its p-value adjusted by Holm."""
    leader, *others = remaining
    gaps = {name: compare(contenders[leader], contenders[name], columns) for name in others}
    return gaps, dict(zip(gaps, holm([gap.p for gap in gaps.values()]), strict=True))


def compare(a: Mapping[str, Outcomes], b: Mapping[str, Outcomes], columns: Sequence[str]) -> Paired:
    """Paired A - B over the outcomes that both hold; nothing in common tells nothing (p = 1)."""
    left, right, draws = [], [], []
    for column in columns:
        _, i, j = np.intersect1d(
            a[column].index, b[column].index, assume_unique=True, return_indices=True
        )
        left.append(a[column].values[i])
        right.append(b[column].values[j])
        draws.append(a[column].draws)
    if not all(x.size for x in left):
        return Paired(0.0, float("nan"), 1.0, 0)
    found = stats.paired(left, right, draws)
    return found if found.p == found.p else found._replace(p=1.0)


def holm(p: Sequence[float]) -> list[float]:
    """P-values adjusted by Holm's step-down rule; statsmodels is slow to load, so only at need."""
    if len(p) < 2:
        return list(p)
    from statsmodels.stats.multitest import multipletests

    return [float(x) for x in multipletests(p, method="holm")[1]]
