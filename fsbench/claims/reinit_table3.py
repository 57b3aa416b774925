"""Sign tests between methods, recomputed from Table 2 (reinitialization study, Table 3)."""

from collections import Counter
from functools import cache
from itertools import combinations, permutations
from typing import NamedTuple

from scipy.stats import binomtest

from fsbench.claims import engine
from fsbench.claims.engine import Judgements, Runs
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
    def is_significant(self) -> bool:
        return self.wins > self.losses and self.p < LEVEL

    @property
    def mark(self) -> str:
        """The mark of Table 3: a circle (significant after Holm), a star (before), or none."""
        return "" if not self.is_significant else "∘" if self.holm < LEVEL else "★"

    def __str__(self) -> str:
        text = f"{self.wins}:{self.losses}, p {self.p:.2g}, Holm {self.holm:.2g}"
        return f"{text} {self.mark}".rstrip()


@cache
def compare_methods(network: str) -> dict[tuple[str, str], MethodComparison]:
    """Compare every ordered pair (better, worse) of methods on a network."""
    rows = [row.accuracy for row in load_table2() if row.network == network]
    pairs = list(combinations(table2_methods(), 2))
    wins = {(a, b): sum(row[a] > row[b] for row in rows) for a, b in permutations(rows[0], 2)}
    p = [float(binomtest(wins[a, b], wins[a, b] + wins[b, a]).pvalue) for a, b in pairs]
    return {
        (better, worse): MethodComparison(wins[better, worse], wins[worse, better], raw, corrected)
        for (a, b), raw, corrected in zip(pairs, p, holm(p), strict=True)
        for better, worse in ((a, b), (b, a))
    }


def judge_tests(runs: Runs) -> Judgements:
    rows = min(Counter(row.network for row in load_table2()).values())
    yield engine.require("pairs per network", "at least", PAIRS, [rows], "")
    for network, better, worse in WINS:
        pair = compare_methods(network)[better, worse]
        what, more = f"{network}: {better} > {worse}", pair.wins > pair.losses
        yield engine.judge(what, "significant", str(pair), pair.is_significant, more)
    for method in SHORT:
        beaten = [n for n in table2_networks() if compare_methods(n)[method, "BL"].is_significant]
        what, ours = f"networks where {method} > BL", ", ".join(beaten) or "none"
        yield engine.judge(what, "not all four", ours, len(beaten) < len(table2_networks()))
    pairs = compare_methods("resnet50")
    pair = pairs["FC", "BL"]
    yield engine.judge("resnet50: FC > BL", "not significant", str(pair), not pair.is_significant)
    winners = [a for a in EQUALS if all(pairs[a, b].is_significant for b in EQUALS if b != a)]
    what = f"resnet50: winner among {', '.join(EQUALS)}"
    yield engine.judge(what, "none", ", ".join(winners) or "none", not winners)


def describe_marks(network: str) -> str:
    """Describe a network's part of Table 3 in one line."""
    pairs = compare_methods(network)
    marked = [f"{a} > {b} {pairs[a, b].mark}" for a, b in permutations(table2_methods(), 2)]
    return f"{network}: " + ", ".join(text for text in marked if text[-1] in "∘★")


CLAIM = engine.Claim(
    engine.read_claim_card("reinit_table3"),
    {"sign tests": judge_tests},
    notes=lambda: map(describe_marks, table2_networks()),
)
