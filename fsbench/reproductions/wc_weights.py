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
from fsbench.reproductions._outcome import OVERALL, Figure, Outcome, Verdict, overall
from fsbench.reproductions._wc_runs import (
    ARMS,
    BOUND,
    CONTROL,
    END,
    FIRST,
    PLAIN,
    START,
    WC,
    Trace,
    Traces,
    traces,
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


def run(seeds: int = SEEDS, report: Reporter = SILENT) -> Outcome:
    """All runs over this many seeds."""
    found = traces(seeds, report)
    figures = (
        start(found),
        bounded(found),
        *(compared(comparison, found) for comparison in COMPARISONS),
        fading(found),
    )
    return Outcome(
        source=SOURCE,
        claim=CLAIM,
        rule=RULE,
        seeds=seeds,
        figures=figures,
        verdict=overall(figures),
        notes=notes(found),
        panels=(*(lines(arm, found[END][arm][0]) for arm in (PLAIN, WC)), *courses(found)),
    )


def start(found: Traces) -> Figure:
    """Both networks begin with the same weights."""
    apart = max(
        abs(x - y)
        for plain, wc in zip(found[END][PLAIN], found[END][WC], strict=True)
        for layer, spread in plain.epochs[0].items()
        for x, y in zip(spread.percentiles, wc.epochs[0][layer].percentiles, strict=True)
    )
    return Figure(
        what="epoch 0: percentiles of all layers",
        published="the same with and without",
        ours=f"at most {apart:.1g} apart",
        verdict="reproduced" if apart <= SAME else "not reproduced",
    )


def bounded(found: Traces) -> Figure:
    """No weight of any layer leaves the interval at any epoch."""
    largest = max(
        spread.largest
        for phase in found.values()
        for trace in phase[WC]
        for epoch in trace.epochs
        for spread in epoch.values()
    )
    return Figure(
        what="with: largest |w|, all layers and epochs",
        published=f"below a pi/2 = {BOUND:.3f}",
        ours=f"{largest:.3f}",
        verdict="reproduced" if largest < BOUND else "not reproduced",
    )


def peak(trace: Trace) -> float:
    """Largest |w| of the first convolution at any epoch."""
    return max(epoch[FIRST].largest for epoch in trace.epochs)


def dead(trace: Trace) -> float:
    """Share (%) of the first convolution's weights in the dead zone at the end."""
    return 100 * trace.epochs[-1][FIRST].dead


def width(trace: Trace) -> float:
    """From the 16th to the 84th percentile of the first convolution at the end."""
    return middle(trace.epochs[-1][FIRST], 16, 84)


def spike(trace: Trace) -> float:
    """Width of the middle 38 % over that of the middle 68 %: 0.5 for a normal law, less with a
    spike at zero; the size of the weights, which the learning rate drives, cancels.
    """
    end = trace.epochs[-1][FIRST]
    return middle(end, 31, 69) / middle(end, 16, 84)


def middle(spread: WeightSpread, low: int, high: int) -> float:
    """Between two of the figures' percentiles."""
    from protocols.analyses.weight_percentiles import PERCENTILES

    by_name = dict(zip(PERCENTILES, spread.percentiles, strict=True))
    return by_name[high] - by_name[low]


class Comparison(NamedTuple):
    """A measure of the first convolution and on which side the paper finds it lower."""

    phase: str
    what: str
    published: str
    measure: Callable[[Trace], float]
    lower: str


COMPARISONS = (
    Comparison(START, "largest |w| of all epochs", "very large without, bounded with", peak, WC),
    Comparison(END, "dead weights, |w| < 0.01 (%)", "fewer with", dead, WC),
    Comparison(END, "16th to 84th percentile", "wider with", width, PLAIN),
)


def compared(comparison: Comparison, found: Traces) -> Figure:
    """One inequality over the seeds."""
    values = {
        arm: list(map(comparison.measure, found[comparison.phase][arm])) for arm in (PLAIN, WC)
    }
    higher = PLAIN if comparison.lower == WC else WC
    gaps = [h - low for h, low in zip(values[higher], values[comparison.lower], strict=True)]
    return Figure(
        what=f"first convolution, {comparison.phase}: {comparison.what}",
        published=comparison.published,
        ours=f"{fmean(values[PLAIN]):.3g} without, {fmean(values[WC]):.3g} with",
        verdict=signs(gaps),
    )


def signs(gaps: Sequence[float]) -> Verdict:
    """Reproduced when every seed has the published sign, direction only when the mean has."""
    if min(gaps) > 0:
        return "reproduced"
    return "direction only" if fmean(gaps) > 0 else "not reproduced"


def fading(found: Traces) -> Figure:
    """The difference in dead weights is smaller behind the first convolution."""
    pairs = list(zip(found[END][PLAIN], found[END][WC], strict=True))
    first = [abs(dead(plain) - dead(wc)) for plain, wc in pairs]
    rest = [abs(dead_later(plain) - dead_later(wc)) for plain, wc in pairs]
    return Figure(
        what="end: difference in dead weights (points), first and later layers",
        published="less pronounced in the middle and at the end",
        ours=f"{fmean(first):.3g} first, {fmean(rest):.3g} later",
        verdict=signs([a - b for a, b in zip(first, rest, strict=True)]),
    )


def dead_later(trace: Trace) -> float:
    """Mean share (%) of dead weights over the layers behind the first convolution at the end."""
    from protocols.analyses.weight_percentiles import ALL

    end = trace.epochs[-1]
    return 100 * fmean(s.dead for layer, s in end.items() if layer not in (FIRST, ALL))


def notes(found: Traces) -> tuple[str, ...]:
    """What the larger learning rate alone does, and the accuracies."""
    shape = Comparison(END, "middle 38 % over middle 68 %", "", spike, PLAIN)
    scores = ", ".join(f"{fmean(t.accuracy for t in found[END][a]):.1f} % {a}" for a in ARMS)
    return (*(explained(c, found) for c in (*COMPARISONS, shape)), f"accuracy: {scores}")


def explained(comparison: Comparison, found: Traces) -> str:
    """The three arms, and the part of the difference that the control has as well."""
    plain, wc, control = (
        fmean(map(comparison.measure, found[comparison.phase][arm])) for arm in (PLAIN, WC, CONTROL)
    )
    part = f"{(control - plain) / (wc - plain):.0%}" if wc != plain else "no difference"
    return (
        f"{comparison.phase}: {comparison.what}: {plain:.3g} without, {wc:.3g} with,"
        f" {control:.3g} {CONTROL}; the learning rate alone: {part}"
    )


def lines(arm: str, trace: Trace) -> Panel:
    """The percentiles of the first convolution per epoch, as the paper draws them."""
    from protocols.analyses.weight_percentiles import PERCENTILES

    epochs = tuple(float(epoch) for epoch in range(len(trace.epochs)))
    curves = tuple(
        Curve(label=f"{p:g} %", x=epochs, y=tuple(e[FIRST].percentiles[i] for e in trace.epochs))
        for i, p in enumerate(PERCENTILES)
    )
    return Panel(title=f"first convolution, {arm}", x="epoch", y="w", curves=curves)


def courses(found: Traces) -> tuple[Panel, ...]:
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
