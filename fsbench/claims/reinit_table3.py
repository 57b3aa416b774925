"""Sign tests between methods, recomputed from Table 2 (reinitialization study, Table 3).

https://arxiv.org/abs/2109.00267, section 3.1. For a network and two methods: wins and losses over
the 18 pairs of data set and setting, ties dropped, exact two-sided binomial test; Holm's correction
over the network's 15 pairs of methods. The paper marks p < 0.05 with a star and, if it holds after
Holm, with a circle.

The marks are not legible in the available copy, so the statements of the text are checked. One of
them, that LW beats the other methods on every network but resnet50, contradicts the study's own
result of FC on vgg16.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations, permutations
from typing import NamedTuple

from fsbench.claims import engine
from fsbench.claims.engine import ClaimFigure, Runs
from fsbench.core.statistics import holm
from pretrain.recipes.reinit_study import load_table2, table2_methods, table2_networks

PAIRS, LEVEL = 18, 0.05
"""Pairs of data set and setting per network, and level of the tests."""
SHORT = ("WELSR", "DSD", "WELS", "FC")
"""Methods that do not beat the baseline on every network, according to the caption."""
EQUALS = ("WELSR", "DSD", "WELS", "LW")
"""Methods without a clear winner on resnet50."""
WINS: tuple[tuple[str, str, str], ...] = (
    *((network, "LW", "BL") for network in ("scnn", "vgg16", "mobilenet", "resnet50")),
    *(("resnet50", method, "BL") for method in EQUALS[:3]),
    *((network, "LW", m) for network in ("scnn", "vgg16", "mobilenet") for m in SHORT),
)
"""Network, better, worse: differences that the text calls statistically significant."""


class MethodComparison(NamedTuple):
    """Comparison of two methods on one network; holm: p after Holm's correction."""

    wins: int
    losses: int
    p: float
    holm: float

    @property
    def significant(self) -> bool:
        return self.wins > self.losses and self.p < LEVEL

    @property
    def mark(self) -> str:
        """The mark of Table 3: a circle (significant after Holm), a star (before), or none."""
        return "" if not self.significant else "∘" if self.holm < LEVEL else "★"

    def __str__(self) -> str:
        text = f"{self.wins}:{self.losses}, p {self.p:.2g}, Holm {self.holm:.2g}"
        return f"{text} {self.mark}".rstrip()


@cache
def compare_methods(network: str) -> dict[tuple[str, str], MethodComparison]:
    """Compare every ordered pair (better, worse) of methods on a network."""
    from scipy.stats import binomtest

    rows = [row.accuracy for row in load_table2() if row.network == network]
    pairs = list(combinations(table2_methods(), 2))
    counts = [
        (sum(row[a] > row[b] for row in rows), sum(row[a] < row[b] for row in rows))
        for a, b in pairs
    ]
    p = [float(binomtest(wins, wins + losses).pvalue) for wins, losses in counts]
    comparisons = {}
    for (a, b), (wins, losses), raw, corrected in zip(pairs, counts, p, holm(p), strict=True):
        comparisons[a, b] = MethodComparison(wins, losses, raw, corrected)
        comparisons[b, a] = MethodComparison(losses, wins, raw, corrected)
    return comparisons


def require_pairs(runs: Runs) -> list[engine.ClaimCondition]:
    networks = [row.network for row in load_table2()]
    least = min(map(networks.count, networks))
    return [engine.require("pairs per network", "at least", PAIRS, least, "")]


def judge_tests(runs: Runs) -> Iterator[ClaimFigure]:
    for network, better, worse in WINS:
        pair = compare_methods(network)[better, worse]
        what, more = f"{network}: {better} > {worse}", pair.wins > pair.losses
        yield engine.judge(what, "significant", str(pair), pair.significant, more)
    for method in SHORT:
        beaten = [n for n in table2_networks() if compare_methods(n)[method, "BL"].significant]
        what, ours = f"networks where {method} > BL", ", ".join(beaten) or "none"
        yield engine.judge(what, "not all four", ours, len(beaten) < len(table2_networks()))
    pairs = compare_methods("resnet50")
    pair = pairs["FC", "BL"]
    yield engine.judge("resnet50: FC > BL", "not significant", str(pair), not pair.significant)
    winners = [a for a in EQUALS if all(pairs[a, b].significant for b in EQUALS if b != a)]
    what = f"resnet50: winner among {', '.join(EQUALS)}"
    yield engine.judge(what, "none", ", ".join(winners) or "none", not winners)


def describe_marks(network: str) -> str:
    """Describe a network's part of Table 3 in one line."""
    pairs = compare_methods(network)
    marked = [f"{a} > {b} {pairs[a, b].mark}" for a, b in permutations(table2_methods(), 2)]
    return f"{network}: " + ", ".join(text for text in marked if text[-1] in "∘★")


CLAIM = engine.Claim(
    source="reinitialization study, Table 3 and section 3.1",
    statements={
        "sign tests": engine.ClaimStatement(
            text="only LW beats the baseline on all networks, by exact binomial tests on Table 2",
            condition="18 pairs can reach p < 0.05; nothing is trained",
            rule="a win: reproduced if p < 0.05, direction only if there are more wins than losses;"
            " no win: reproduced unless p < 0.05 contradicts it",
            conditions=require_pairs,
            figures=judge_tests,
        )
    },
    notes=lambda: map(describe_marks, table2_networks()),
)
