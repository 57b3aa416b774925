"""Sign tests between methods, recomputed from Table 2 (reinitialization study, Table 3).

https://arxiv.org/abs/2109.00267, section 3.1. For a network and two methods: wins and losses over
the 18 pairs of data set and setting, ties dropped, exact two-sided binomial test; Holm's correction
over the network's 15 pairs of methods. The paper marks p < 0.05 with a star and, if it holds after
Holm, with a circle.

The marks are not legible in the available copy, so the statements of the text are checked. One of
them, that LW beats the other methods on every network but resnet50, contradicts the study's own
result of FC on vgg16.
"""

from itertools import combinations, permutations
from typing import NamedTuple

from fsbench.claims import (
    Claim,
    ClaimFigure,
    ClaimOutcome,
    ClaimSettings,
    ClaimStatement,
    choose_verdict,
    require_at_least,
)
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.statistics import holm
from pretrain.recipes.reinit_study import load_table2, table2_methods, table2_networks

CLAIM = Claim(
    source="reinitialization study, Table 3 and section 3.1",
    statements={
        "sign tests": ClaimStatement(
            text="only LW beats the baseline on all networks, by exact binomial tests on Table 2",
            condition="18 pairs can reach p < 0.05; nothing is trained",
            rule="a win: reproduced if p < 0.05, direction only if there are more wins than losses;"
            " no win: reproduced unless p < 0.05 contradicts it",
        )
    },
)
PAIRS = 18
"""Pairs of data set and setting per network."""
LEVEL = 0.05

WINS: tuple[tuple[str, str, str], ...] = (
    *((net, "LW", "BL") for net in ("scnn", "vgg16", "mobilenet", "resnet50")),
    *(("resnet50", method, "BL") for method in ("WELSR", "DSD", "WELS")),
    *(
        (net, "LW", method)
        for net in ("scnn", "vgg16", "mobilenet")
        for method in ("WELSR", "DSD", "WELS", "FC")
    ),
)
"""Network, better, worse: differences that the text calls statistically significant."""
SHORT = ("WELSR", "DSD", "WELS", "FC")
"""Methods that do not beat the baseline on every network, according to the caption."""
EQUALS = ("WELSR", "DSD", "WELS", "LW")
"""Methods without a clear winner on resnet50."""


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


NetworkComparisons = dict[str, dict[tuple[str, str], MethodComparison]]


def run(settings: ClaimSettings, report: Reporter = SILENT) -> ClaimOutcome:
    """Test every statement; nothing is random."""
    tests = {network: compare_methods(network) for network in table2_networks()}
    pairs = [len([r for r in load_table2() if r.network == network]) for network in tests]
    figures = (
        *(_judge_pair(tests, *statement) for statement in WINS),
        *(_judge_no_full_win(tests, method) for method in SHORT),
        _judge_pair(tests, "resnet50", "FC", "BL", significant=False),
        _judge_no_winner(tests["resnet50"]),
    )
    return CLAIM.judge(
        settings,
        {"sign tests": ([require_at_least("pairs per network", pairs, PAIRS, "")], figures)},
        notes=(_describe_marks(network, pairs) for network, pairs in tests.items()),
    )


def _judge_pair(
    tests: NetworkComparisons, network: str, better: str, worse: str, significant: bool = True
) -> ClaimFigure:
    """Judge the statement that one method beats another, or (not significant) does not."""
    pair = tests[network][better, worse]
    if significant:
        verdict = choose_verdict(pair.significant, pair.wins > pair.losses)
    else:
        verdict = choose_verdict(not pair.significant)
    return ClaimFigure(
        what=f"{network}: {better} > {worse}",
        published="significant" if significant else "not significant",
        ours=str(pair),
        verdict=verdict,
    )


def _judge_no_full_win(tests: NetworkComparisons, method: str) -> ClaimFigure:
    """Judge the statement that a method does not beat the baseline on every network."""
    beaten = [network for network, pairs in tests.items() if pairs[method, "BL"].significant]
    return ClaimFigure(
        what=f"networks where {method} > BL",
        published="not all four",
        ours=", ".join(beaten) or "none",
        verdict=choose_verdict(len(beaten) < len(tests)),
    )


def _judge_no_winner(pairs: dict[tuple[str, str], MethodComparison]) -> ClaimFigure:
    """Judge the statement that no method beats all the others."""
    winners = [a for a in EQUALS if all(pairs[a, b].significant for b in EQUALS if b != a)]
    return ClaimFigure(
        what=f"resnet50: winner among {', '.join(EQUALS)}",
        published="none",
        ours=", ".join(winners) or "none",
        verdict=choose_verdict(not winners),
    )


def _describe_marks(network: str, pairs: dict[tuple[str, str], MethodComparison]) -> str:
    """Describe a network's part of Table 3 in one line."""
    marked = [f"{a} > {b} {pairs[a, b].mark}" for a, b in permutations(table2_methods(), 2)]
    return f"{network}: " + ", ".join(text for text in marked if text[-1] in "∘★")
