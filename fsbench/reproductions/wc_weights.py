"""Weight compander's Figures 3 and 4: the weights of the first convolution, epoch by epoch.

What is run stands in _wc_runs.py. The paper says "approximately 0" without a number; |w| < 0.01 is
taken. Every measure is also shown for a plain network at (a/b)^2 times the learning rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions._outcome import (
    OVERALL,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    judge_claim,
)
from fsbench.reproductions._wc_runs import (
    ARMS,
    BOUND,
    CONTROL,
    END,
    FIRST,
    PLAIN,
    START,
    WC,
    WeightTrace,
    WeightTraces,
    train_arms,
)

if TYPE_CHECKING:
    from protocols.analyses.weight_percentiles import WeightSpread

SOURCE = "Weight Compander, section IV-D, Figures 3 and 4"
CLAIM = "weight compander bounds large weights and leaves fewer weights at zero"
SAME = 1e-5
RULE = (
    f"epoch 0: reproduced when no percentile of any layer differs by more than {SAME:g}; the"
    " bound: reproduced when every weight keeps it at every epoch; each of the others: reproduced"
    " when the paper's inequality holds at every seed, direction only when it holds in the mean. "
    + OVERALL
)
SEEDS = 3


def run(seeds: int = SEEDS, report: Reporter = SILENT) -> ClaimOutcome:
    """All runs over this many seeds."""
    found = train_arms(seeds, report)
    figures = (
        _judge_start(found),
        _judge_bound(found),
        *(judge_comparison(comparison, found) for comparison in COMPARISONS),
        _judge_later_layers(found),
    )
    return ClaimOutcome(
        source=SOURCE,
        claim=CLAIM,
        rule=RULE,
        seeds=seeds,
        figures=figures,
        verdict=judge_claim(figures),
        notes=_describe_control(found),
        panels=(
            *(_percentile_panel(arm, found[END][arm][0]) for arm in (PLAIN, WC)),
            *_course_panels(found),
        ),
    )


def _judge_start(found: WeightTraces) -> ClaimFigure:
    """Both networks begin with the same weights."""
    apart = max(
        abs(x - y)
        for plain, wc in zip(found[END][PLAIN], found[END][WC], strict=True)
        for layer, spread in plain.epochs[0].items()
        for x, y in zip(spread.percentiles, wc.epochs[0][layer].percentiles, strict=True)
    )
    return ClaimFigure(
        what="epoch 0: percentiles of all layers",
        published="the same with and without",
        ours=f"at most {apart:.1g} apart",
        verdict="reproduced" if apart <= SAME else "not reproduced",
    )


def _judge_bound(found: WeightTraces) -> ClaimFigure:
    """No weight of any layer leaves the interval at any epoch."""
    largest = max(
        spread.largest
        for phase in found.values()
        for trace in phase[WC]
        for epoch in trace.epochs
        for spread in epoch.values()
    )
    return ClaimFigure(
        what="with: largest |w|, all layers and epochs",
        published=f"below a pi/2 = {BOUND:.3f}",
        ours=f"{largest:.3f}",
        verdict="reproduced" if largest < BOUND else "not reproduced",
    )


def largest_weight(trace: WeightTrace) -> float:
    """Largest |w| of the first convolution at any epoch."""
    return max(epoch[FIRST].largest for epoch in trace.epochs)


def dead_share(trace: WeightTrace) -> float:
    """Share (%) of the first convolution's weights in the dead zone at the end."""
    return 100 * trace.epochs[-1][FIRST].dead


def percentile_width(trace: WeightTrace) -> float:
    """From the 16th to the 84th percentile of the first convolution at the end."""
    return percentile_distance(trace.epochs[-1][FIRST], 16, 84)


def spike_ratio(trace: WeightTrace) -> float:
    """Width of the middle 38 % over that of the middle 68 %: 0.5 for a normal law, less with a
    spike at zero; the size of the weights, which the learning rate drives, cancels.
    """
    end = trace.epochs[-1][FIRST]
    return percentile_distance(end, 31, 69) / percentile_distance(end, 16, 84)


def percentile_distance(spread: WeightSpread, low: int, high: int) -> float:
    """Between two of the figures' percentiles."""
    from protocols.analyses.weight_percentiles import PERCENTILES

    by_name = dict(zip(PERCENTILES, spread.percentiles, strict=True))
    return by_name[high] - by_name[low]


class WeightComparison(NamedTuple):
    """A measure of the first convolution and on which side the paper finds it lower."""

    phase: str
    what: str
    published: str
    measure: Callable[[WeightTrace], float]
    lower: str


COMPARISONS = (
    WeightComparison(
        START, "largest |w| of all epochs", "very large without, bounded with", largest_weight, WC
    ),
    WeightComparison(END, "dead weights, |w| < 0.01 (%)", "fewer with", dead_share, WC),
    WeightComparison(END, "16th to 84th percentile", "wider with", percentile_width, PLAIN),
)


def judge_comparison(comparison: WeightComparison, found: WeightTraces) -> ClaimFigure:
    """One inequality over the seeds."""
    values = {
        arm: list(map(comparison.measure, found[comparison.phase][arm])) for arm in (PLAIN, WC)
    }
    higher = PLAIN if comparison.lower == WC else WC
    gaps = [h - low for h, low in zip(values[higher], values[comparison.lower], strict=True)]
    return ClaimFigure(
        what=f"first convolution, {comparison.phase}: {comparison.what}",
        published=comparison.published,
        ours=f"{fmean(values[PLAIN]):.3g} without, {fmean(values[WC]):.3g} with",
        verdict=judge_gaps(gaps),
    )


def judge_gaps(gaps: Sequence[float]) -> ClaimVerdict:
    """Reproduced when every seed has the published sign, direction only when the mean has."""
    if min(gaps) > 0:
        return "reproduced"
    return "direction only" if fmean(gaps) > 0 else "not reproduced"


def _judge_later_layers(found: WeightTraces) -> ClaimFigure:
    """The difference in dead weights is smaller behind the first convolution."""
    pairs = list(zip(found[END][PLAIN], found[END][WC], strict=True))
    first = [abs(dead_share(plain) - dead_share(wc)) for plain, wc in pairs]
    rest = [abs(dead_share_later(plain) - dead_share_later(wc)) for plain, wc in pairs]
    return ClaimFigure(
        what="end: difference in dead weights (points), first and later layers",
        published="less pronounced in the middle and at the end",
        ours=f"{fmean(first):.3g} first, {fmean(rest):.3g} later",
        verdict=judge_gaps([a - b for a, b in zip(first, rest, strict=True)]),
    )


def dead_share_later(trace: WeightTrace) -> float:
    """Mean share (%) of dead weights over the layers behind the first convolution at the end."""
    from protocols.analyses.weight_percentiles import ALL

    end = trace.epochs[-1]
    return 100 * fmean(s.dead for layer, s in end.items() if layer not in (FIRST, ALL))


def _describe_control(found: WeightTraces) -> tuple[str, ...]:
    """What the larger learning rate alone does, and the accuracies."""
    shape = WeightComparison(END, "middle 38 % over middle 68 %", "", spike_ratio, PLAIN)
    scores = ", ".join(f"{fmean(t.accuracy for t in found[END][a]):.1f} % {a}" for a in ARMS)
    return (*(_describe_measure(c, found) for c in (*COMPARISONS, shape)), f"accuracy: {scores}")


def _describe_measure(comparison: WeightComparison, found: WeightTraces) -> str:
    """The three arms, and the part of the difference that the control has as well."""
    plain, wc, control = (
        fmean(map(comparison.measure, found[comparison.phase][arm])) for arm in (PLAIN, WC, CONTROL)
    )
    part = f"{(control - plain) / (wc - plain):.0%}" if wc != plain else "no difference"
    return (
        f"{comparison.phase}: {comparison.what}: {plain:.3g} without, {wc:.3g} with,"
        f" {control:.3g} {CONTROL}; the learning rate alone: {part}"
    )


def _percentile_panel(arm: str, trace: WeightTrace) -> Panel:
    """The percentiles of the first convolution per epoch, as the paper draws them."""
    from protocols.analyses.weight_percentiles import PERCENTILES

    epochs = tuple(float(epoch) for epoch in range(len(trace.epochs)))
    curves = tuple(
        Curve(label=f"{p:g} %", x=epochs, y=tuple(e[FIRST].percentiles[i] for e in trace.epochs))
        for i, p in enumerate(PERCENTILES)
    )
    return Panel(title=f"first convolution, {arm}", x="epoch", y="w", curves=curves)


def _course_panels(found: WeightTraces) -> tuple[Panel, ...]:
    """Largest weight and dead share per epoch, means over the seeds."""

    def course(phase: str, title: str, y: str, value: Callable[[WeightSpread], float]) -> Panel:
        curves = []
        for arm, seeds in found[phase].items():
            epochs = range(len(seeds[0].epochs))
            means = tuple(fmean(value(t.epochs[e][FIRST]) for t in seeds) for e in epochs)
            curves.append(Curve(label=arm, x=tuple(map(float, epochs)), y=means))
        return Panel(title=title, x="epoch", y=y, curves=tuple(curves))

    return (
        course(
            START,
            f"largest weight, start (bound {BOUND:.2f})",
            "max |w|",
            lambda spread: spread.largest,
        ),
        course(END, "dead weights", "|w| < 0.01 (%)", lambda spread: 100 * spread.dead),
    )
