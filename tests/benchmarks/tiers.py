"""Level and power of rules for tiers, on simulated boards: `python -m benchmarks.tiers`.

Each line is one setting: kind of board, rows K, episodes n, seeds per row, and the rule.

    wrong   share of boards of K equal rows with a row outside tier 1 (at most .05 is wanted)
    first   mean size of tier 1 on boards where one row is worse by `--gap` standard errors
    power   share of these boards on which that row is outside tier 1

Rules: `simultaneous-tiers-2`, and `holm` (z test, Holm over the leader's comparisons, as if it had
been chosen before). Boards: `equal` variances, `unequal` ones, and `correlated` rows, groups of
which share outcomes. Accuracies have the resolution of 75 queries.

With `--spread` (in points, .05,.2,.5) each run of a recipe differs by that standard deviation, and
equal rows are recipes of equal mean. Rows have `--seeds` seeds each, or `mixed`: 1, 2, 3 and 5 in
turn, the last one 5. `simultaneous-tiers-2` uses seeds; `holm` compares means over them and splits
equal recipes, as both do on rows of one seed only. Where other rows have several seeds, those of
one are ranked apart and do not count.

`--recipes` says whose seeds spread so: `equal` all recipes, `alternating` every second one,
`quarter` every fourth, `lone` a single one, and the others a tenth of it; `uniform` spreads have
logarithms uniform between both. Rows are shuffled, so that any may be the one with one seed.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from benchmarks.pairing import make_parser
from numpy.typing import NDArray

from fsbench.core import statistics
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.tiers import compare_with_leader, find_worse

Matrix = NDArray[np.float64]
Board = list[Matrix]
"""Correct queries (S, n) of each row."""
QUERIES = 75
MIXED = (1, 2, 3, 5)
SHARED = 0.7
"""Part of the deviation of an episode that all seeds of a row share."""
KINDS = ("equal", "unequal", "correlated")
RECIPES = ("equal", "alternating", "quarter", "uniform", "lone")


class Setting(NamedTuple):
    """A kind of board: rows, episodes, seeds per row (0: mixed), their spread in points, whose."""

    kind: str
    rows: int
    episodes: int
    seeds: int = 1
    spread: float = 0.0
    recipes: str = "equal"


class Outcome(NamedTuple):
    """Shares of boards, and the mean size of tier 1."""

    wrong: float
    first: float
    power: float


def draw_spreads(setting: Setting, rng: np.random.Generator) -> Matrix:
    """Return the standard deviation (K,) between the seeds of each row, a fraction."""
    rows, widest = setting.rows, setting.spread / 100
    if setting.recipes == "uniform":
        return np.asarray(widest * 10 ** -rng.random(rows))
    step = {"equal": 1, "alternating": 2, "quarter": 4, "lone": rows}[setting.recipes]
    spreads = np.where(np.arange(rows) % step == 0, widest, widest / 10)
    return spreads if step == 1 else rng.permutation(spreads)


def simulate_board(setting: Setting, rng: np.random.Generator, gap: float = 0.0) -> Board:
    """Return correct queries (S, n) of K equal rows; the last is worse by `gap` standard errors."""
    kind, rows, n = setting[:3]
    sd = np.exp(rng.normal(0, 0.7, rows)) * 0.05 if kind == "unequal" else np.full(rows, 0.06)
    center = 0.6 + rng.normal(0, 0.08, n) + np.zeros((rows, n))
    if kind == "correlated":
        center += rng.normal(0, 0.06, (rows, n))[rng.integers(0, max(2, rows // 4), rows)]
    errors, board = [], []
    for row, spread in enumerate(draw_spreads(setting, rng)):
        seeds = setting.seeds or MIXED[(row - rows) % len(MIXED)]
        shared, noise = (SHARED, math.sqrt(1 - SHARED**2)) if seeds > 1 else (0.0, 1.0)
        accuracies = center[row] + rng.normal(0, spread, (seeds, 1)) * bool(spread)
        accuracies = accuracies + sd[row] * shared * rng.normal(0, 1, n)
        board.append(accuracies + sd[row] * noise * rng.normal(0, 1, (seeds, n)))
        errors.append((sd[row] ** 2 * (shared**2 + noise**2 / seeds)) / n + spread**2 / seeds)
    board[-1] -= gap * math.sqrt(errors[0] + errors[-1])
    return [np.round(np.clip(accuracies, 0, 1) * QUERIES) for accuracies in board]


def contend(board: Board, with_seeds: bool = True) -> dict[str, dict[str, Outcomes]]:
    """Return the rows as the board ranks them, with their seeds or as plain means."""
    index = np.arange(board[0].shape[1])
    contenders = {}
    for i, right in enumerate(board):
        seeds = [Outcomes(index, row.astype(np.uint8), "d", QUERIES) for row in right]
        row = seeds[0] if len(seeds) == 1 else Outcomes.average(seeds)
        contenders[str(i)] = {"c": row if with_seeds else replace(row, seeds=())}
    return contenders


def compare(board: Board, with_seeds: bool = False) -> tuple[PairwiseGaps, list[str]]:
    """Return the gaps of all pairs, and the rows with the best first."""
    contenders = contend(board, with_seeds)
    order = sorted(contenders, key=lambda name: (-contenders[name]["c"].values.mean(), name))
    return PairwiseGaps({name: [contenders[name]["c"]] for name in order}), order


def rank(board: Board) -> set[int]:
    """Return the rows outside tier 1 by the rule of boards, as `rank_entries` does.

    They are rows of several seeds, or any if none has several.
    """
    pairs, order = compare(board, with_seeds=True)
    several = [name for name in order if len(board[int(name)]) > 1] or order
    return set(map(int, find_worse(*compare_with_leader(pairs, several))))


def rank_by_holm(board: Board) -> set[int]:
    """Return the rows outside tier 1 if the leader passed for a row that was chosen before."""
    pairs, order = compare(board)
    gaps = pairs.behind(order[0], order[1:])
    p = np.array(statistics.holm([gap.p for gap in gaps.values()]))
    return set(map(int, find_worse(gaps, p)))


RULES: dict[str, Callable[[Board], set[int]]] = {"holm": rank_by_holm, "simultaneous-tiers-2": rank}


def measure(setting: Setting, rule: str, boards: int, gap: float) -> Outcome:
    """Return level, size of tier 1 and power of a rule.

    The level is that of `boards`; a quarter of them suffices for the others.
    """
    key = [KINDS.index(setting.kind), setting.rows, setting.episodes, setting.seeds]
    key += [round(1000 * setting.spread), RECIPES.index(setting.recipes)]
    rng, fewer = np.random.default_rng(key), math.ceil(boards / 4)
    wrong = [bool(RULES[rule](simulate_board(setting, rng))) for _ in range(boards)]
    outside = [RULES[rule](simulate_board(setting, rng, gap)) for _ in range(fewer)]
    first = setting.rows - sum(map(len, outside)) / fewer
    return Outcome(sum(wrong) / boards, first, sum(setting.rows - 1 in o for o in outside) / fewer)


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--boards", type=int, default=2000)
    parser.add_argument("--gap", type=float, default=4.0, help="of the worse row, standard errors")
    lists = {
        "kinds": (str, KINDS),
        "rows": (int, (2, 5, 10, 20, 50, 100)),
        "episodes": (int, (5, 10, 30, 100, 600)),
        "seeds": (lambda text: 0 if text == "mixed" else int(text), (1, 2, 5)),
        "spread": (float, (0.0,)),
        "recipes": (str, RECIPES[:1]),
        "rules": (str, tuple(RULES)),
    }
    for name, (convert, default) in lists.items():
        parser.add_argument(
            f"--{name}",
            type=lambda text, convert=convert: [convert(part) for part in text.split(",")],
            default=default,
        )
    options = parser.parse_args()
    *parts, rules = (getattr(options, name) for name in lists)
    head = ("kind", "K", "n", "seeds", "spread", "recipes", "rule", "wrong", "first", "power")
    print("{:10} {:>4} {:>4} {:>5} {:>6}  {:11} {:22} {:>6} {:>6} {:>6}".format(*head))
    line = "{:10} {:4} {:4} {:>5} {:6.2f}  {:11} {:22} {:6.3f} {:6.1f} {:6.2f}"
    for setting in itertools.starmap(Setting, itertools.product(*parts)):
        for rule in rules:
            outcome = measure(setting, rule, options.boards, options.gap)
            print(line.format(*setting, rule, *outcome), flush=True)


if __name__ == "__main__":
    main()
