"""Is one entry better than another? Paired statistics of two entries, in numbers and in words.

Per cell and for the unweighted mean over the cells of a track: the gap with its interval (the one
that boards use), the sign-flip permutation p, and effect sizes. Tracks are never averaged together.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from fsbench.api.entries import Pair, Shared, shared
from fsbench.api.wording import sentence
from fsbench.core import statistics
from fsbench.core.permutation import shares, sign_flip
from fsbench.core.power import Goal, episodes_needed
from fsbench.core.specs import Frozen
from fsbench.results.tracks import by_track
from leaderboard.ranking.rank import ALPHA

UNITS = ("episodes", "images")
"""What is paired; over cells of both, a spread per pair has no meaning."""


class Gap(Frozen):
    """A against B in one cell, or over all cells of a track; fractions."""

    task: str
    unit: str = Field(description="what is paired: episodes, images, or episodes and images")
    n: int = Field(description="pairs; of the smallest cell for the overall line")
    a: float = Field(description="mean of A over the shared outcomes")
    b: float
    gap: float = Field(description="mean of A - B")
    low: float = Field(description="95 % interval: gap ± 1.96 standard errors")
    high: float
    p: float = Field(description="two-sided, by sign flips: A and B swapped per episode")
    p_holm: float | None = Field(
        None, description="p adjusted over the cells of the track; null for the overall line"
    )
    d: float | None = Field(
        description="Cohen's d of pairs: mean of A - B over its sd; null without one, and over "
        "episodes and images together"
    )
    superiority: float = Field(
        description="share of pairs in which A is above B, half of the ties; mean over cells"
    )
    needed: int | None = Field(
        description="pairs a cell that find a true gap of this size with power 0.8 at level 0.05"
    )
    better: Literal["A", "B"] | None = Field(
        description="A or B where p (adjusted, in a cell) is below 0.05"
    )
    words: str = Field(description="the same as a sentence")


class Won(Frozen):
    """Cells by the sign of their gap; cells over the same episodes or images count as one."""

    a: int
    b: int
    tied: int
    p: float = Field(description="exact two-sided binomial test of equal chances, without ties")


class Comparison(Frozen):
    """Two entries in one track. dense: of cells whose heads were scored on all possible queries."""

    a: str
    b: str
    track: str
    alpha: float
    cells: tuple[Gap, ...]
    overall: Gap
    won: Won
    dense: tuple[Gap, ...]


def compare(
    a: str, b: str, texts: Sequence[str] = (), board: Path | None = None
) -> tuple[Comparison, ...]:
    """Two entries, one comparison a track; arguments and errors as fsbench.api.entries.shared."""
    both = shared(a, b, texts, board)
    tracks = by_track(each.column.name for each in both)
    return tuple(
        in_track(a, b, track.label, [each for each in both if each.column.name in names])
        for track, names in tracks.items()
    )


def in_track(a: str, b: str, track: str, both: Sequence[Shared]) -> Comparison:
    units = [UNITS[0] if each.few_shot else UNITS[1] for each in both]
    pairs = [each.scored() for each in both]
    scored = [(each.dense(), unit) for each, unit in zip(both, units, strict=True)]
    dense = [(pair, unit) for pair, unit in scored if pair is not None]
    return Comparison(
        a=a,
        b=b,
        track=track,
        alpha=ALPHA,
        cells=gaps(list(zip(pairs, units, strict=True))),
        overall=overall(pairs, units),
        won=won(pairs),
        dense=gaps(dense),
    )


def gaps(pairs: Sequence[tuple[Pair, str]]) -> tuple[Gap, ...]:
    """One line a cell; p adjusted by Holm over them."""
    p = [sign_flip(pair.gaps / pair.gaps.size, "compare", pair.task) for pair, _ in pairs]
    return tuple(
        line([pair], pair.task, unit, *ps)
        for (pair, unit), ps in zip(pairs, zip(p, statistics.holm(p), strict=True), strict=True)
    )


def overall(pairs: Sequence[Pair], units: Sequence[str]) -> Gap:
    """Of the unweighted mean over cells."""
    parts = shares([x.index for x in pairs], [x.gaps for x in pairs], [x.draws for x in pairs])
    task = f"overall, {len(pairs)} cell{'s' if len(pairs) > 1 else ''}"
    p = sign_flip(parts, "compare", *(pair.task for pair in pairs))
    return line(pairs, task, " and ".join(sorted(set(units))), p)


def line(pairs: Sequence[Pair], task: str, unit: str, p: float, p_holm: float | None = None) -> Gap:
    a, b, draws = [x.a for x in pairs], [x.b for x in pairs], [x.draws for x in pairs]
    found, sd = (
        statistics.paired(a, b, draws),
        statistics.overall_sd([x.gaps for x in pairs], draws),
    )
    decisive = p if p_holm is None else p_holm
    spread = sd > 0 and unit in UNITS
    fields = {
        "task": task,
        "unit": unit,
        "n": min(pair.gaps.size for pair in pairs),
        "a": float(np.mean([x.mean() for x in a])),
        "b": float(np.mean([x.mean() for x in b])),
        "gap": found.gap,
        "low": found.gap - found.ci95,
        "high": found.gap + found.ci95,
        "p": p,
        "p_holm": p_holm,
        "d": found.gap / sd if spread else None,
        "superiority": float(np.mean([superiority(pair) for pair in pairs])),
        "needed": episodes_needed(sd, Goal(gap=abs(found.gap))) if spread and found.gap else None,
        "better": ("A" if found.gap > 0 else "B") if decisive < ALPHA else None,
    }
    return Gap.model_validate({**fields, "words": sentence(fields)})


def superiority(pair: Pair) -> float:
    """Share of pairs in which A is above B, half of the ties."""
    return float(((pair.gaps > 0) + 0.5 * (pair.gaps == 0)).mean())


def won(pairs: Sequence[Pair]) -> Won:
    """Exact binomial test over cells; those of one draw of episodes are one."""
    from scipy.stats import binomtest

    draws = dict.fromkeys(pair.draws for pair in pairs)
    means = [np.mean([x.gaps.mean() for x in pairs if x.draws == draw]) for draw in draws]
    signs = np.sign(np.round(means, 12))
    a, b, tied = (int((signs == sign).sum()) for sign in (1, -1, 0))
    p = float(binomtest(a, a + b).pvalue) if a + b else 1.0
    return Won(a=a, b=b, tied=tied, p=p)
