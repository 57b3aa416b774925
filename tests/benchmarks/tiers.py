"""Level and power of rules for tiers, on simulated boards: `python tests/benchmarks/tiers.py`.

Each line is one setting: kind of board, rows K, episodes n, seeds per row, and the rule.

    wrong   share of boards of K equal rows with a row outside tier 1 (at most .05 is wanted)
    first   mean size of tier 1 on boards where one row is worse by `--gap` standard errors
    power   share of these boards on which that row is outside tier 1

Rules: `leader-tiers-1` (z test, Holm over the leader's comparisons); `bonferroni` and
`range`, the two halves of `simultaneous-tiers-2` used at every n; `simultaneous-tiers-2`;
`mcs`, the model confidence set of Hansen, Lunde, Nason (Econometrica 79, 2011, 453-497) with T_max
and a bootstrap over shared episodes. Boards: `equal` variances, `unequal` ones, and `correlated`
rows, groups of which share outcomes. Accuracies have the resolution of 75 queries. With several
seeds a row is the mean over them. Where they differ (`--spread`) every rule splits equal rows,
since it covers episodes only: intervals over seeds are on the method board.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.simultaneous import exceed_range, exceed_student
from leaderboard.ranking.tiers import ALPHA, RankingRule, rank_entries

Matrix = NDArray[np.float64]
QUERIES = 75
KINDS = ("equal", "unequal", "correlated")
RESAMPLES = 300
"""Bootstrap samples of the model confidence set."""
MOST_MCS = 20
"""Rows up to which the model confidence set is simulated, which eliminates them one by one."""


class Setting(NamedTuple):
    """A kind of board: rows, episodes, seeds per row, their spread as a fraction."""

    kind: str
    rows: int
    episodes: int
    seeds: int = 1
    spread: float = 0.0


class Outcome(NamedTuple):
    """Shares of boards, and the mean size of tier 1."""

    wrong: float
    first: float
    power: float


def simulate_board(setting: Setting, rng: np.random.Generator, gap: float = 0.0) -> Matrix:
    """Return correct queries (K, n) of equal rows; the last is worse by `gap` standard errors."""
    rows, n = setting.rows, setting.episodes
    difficulty = rng.normal(0, 0.08, n)
    sd = (
        np.exp(rng.normal(0, 0.7, rows)) * 0.05
        if setting.kind == "unequal"
        else np.full(rows, 0.06)
    )
    accuracies = 0.6 + difficulty + rng.normal(0, 1, (rows, n)) * sd[:, None]
    if setting.kind == "correlated":
        accuracies += rng.normal(0, 0.06, (rows, n))[rng.integers(0, max(2, rows // 4), rows)]
    if setting.seeds > 1 or setting.spread:
        draws = rng.normal(0, setting.spread, (rows, setting.seeds))
        accuracies += draws.mean(axis=1, keepdims=True)
    accuracies[-1] -= gap * math.hypot(sd[0], sd[-1]) / math.sqrt(n)
    return np.asarray(np.round(np.clip(accuracies, 0, 1) * QUERIES), np.float64)


def contend(right: Matrix) -> dict[str, dict[str, Outcomes]]:
    index = np.arange(right.shape[1])
    counts = right.astype(np.uint8)
    return {str(i): {"c": Outcomes(index, row, "d", QUERIES)} for i, row in enumerate(counts)}


def rank(right: Matrix, rule: RankingRule) -> set[int]:
    """Return the rows outside tier 1 by a rule of the board."""
    ranking = rank_entries(contend(right), ["c"], rule=rule)
    return {int(entry.name) for tier in ranking.tiers[1:] for entry in tier}


def rank_half(right: Matrix, exceed: Callable[[Matrix, int, Matrix], Matrix]) -> set[int]:
    """Return the rows outside tier 1 by one half of the newest rule, whatever the episodes."""
    contenders = contend(right)
    order = sorted(contenders, key=lambda name: (-right[int(name)].mean(), name))
    pairs = PairwiseGaps({name: [contenders[name]["c"]] for name in order})
    gaps = pairs.behind(order[0], order[1:])
    t = np.array([gap.gap / gap.se if gap.se else 1e6 * (gap.gap > 0) for gap in gaps.values()])
    p = exceed(t, len(order), np.array([gap.freedom for gap in gaps.values()]))
    return {int(name) for name, value in zip(gaps, p, strict=True) if value < ALPHA}


def rank_by_confidence_set(right: Matrix, rng: np.random.Generator) -> set[int]:
    """Return the rows outside the model confidence set, by T_max."""
    accuracies = right / QUERIES
    n = accuracies.shape[1]
    weights = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n
    means, drawn = accuracies.mean(axis=1), weights @ accuracies.T
    remaining = list(range(len(right)))
    while len(remaining) > 1:
        behind = means[remaining].mean() - means[remaining]
        resampled = drawn[:, remaining]
        centred = resampled.mean(axis=1, keepdims=True) - resampled - behind
        errors = np.maximum(np.sqrt((centred**2).mean(axis=0)), 1e-12)
        worst = int(np.argmax(behind / errors))
        p = ((centred / errors).max(axis=1) >= (behind / errors)[worst]).mean()
        if p >= ALPHA:
            break
        del remaining[worst]
    return set(range(len(right))) - set(remaining)


RULES: dict[str, Callable[[Matrix, np.random.Generator], set[int]]] = {
    "leader-tiers-1": lambda right, _: rank(right, "leader-tiers-1"),
    "bonferroni": lambda right, _: rank_half(right, exceed_student),
    "range": lambda right, _: rank_half(right, exceed_range),
    "simultaneous-tiers-2": lambda right, _: rank(right, "simultaneous-tiers-2"),
    "mcs": rank_by_confidence_set,
}


def measure(setting: Setting, rule: str, boards: int, gap: float) -> Outcome:
    """Return level, size of tier 1 and power of a rule over this number of boards."""
    seeds = [KINDS.index(setting.kind), setting.rows, setting.episodes, setting.seeds]
    rng, chance = np.random.default_rng(seeds), np.random.default_rng(seeds)
    wrong, sizes, detected = 0, 0, 0
    for _ in range(boards):
        wrong += bool(RULES[rule](simulate_board(setting, rng), chance))
        outside = RULES[rule](simulate_board(setting, rng, gap), chance)
        sizes += setting.rows - len(outside)
        detected += setting.rows - 1 in outside
    return Outcome(wrong / boards, sizes / boards, detected / boards)


def list_settings(options: argparse.Namespace) -> Iterator[Setting]:
    for kind, rows, n, seeds in product(KINDS, options.rows, options.episodes, options.seeds):
        yield Setting(kind, rows, n, seeds, options.spread if seeds > 1 else 0.0)


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--boards", type=int, default=2000)
    parser.add_argument("--rows", type=numbers, default=[2, 5, 10, 20, 50, 100])
    parser.add_argument("--episodes", type=numbers, default=[5, 10, 30, 100, 600])
    parser.add_argument("--seeds", type=numbers, default=[1, 2, 5])
    parser.add_argument("--spread", type=float, default=0.0, help="between seeds, a fraction")
    parser.add_argument("--gap", type=float, default=4.0, help="of the worse row, standard errors")
    options = parser.parse_args(arguments)
    head = ("kind", "K", "n", "seeds", "rule", "wrong", "first", "power")
    print("{:10} {:>4} {:>4} {:>5}  {:22} {:>6} {:>6} {:>6}".format(*head))
    for setting in list_settings(options):
        for rule in RULES:
            if rule == "mcs" and setting.rows > MOST_MCS:
                continue
            outcome = measure(setting, rule, options.boards, options.gap)
            line = "{:10} {:4} {:4} {:5}  {:22} {:6.3f} {:6.1f} {:6.2f}"
            print(line.format(*setting[:4], rule, *outcome))
    return 0


if __name__ == "__main__":
    sys.exit(main())
