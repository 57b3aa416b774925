"""Weights of the first convolution with and without weight compander, epoch by epoch.

https://arxiv.org/abs/2306.16993, section IV-D, Figures 3 and 4. The paper's ResNet-34 on CIFAR-10
becomes a ResNet of four blocks on 1,500 images of ten TinyImageNet classes at 16 px, with the
paper's a, b, momentum, first learning rate and its drops. The 200 epochs become two short phases:
`start` has the first rate and the decay that the paper prints for most networks, 5e-4; `end` runs
the whole schedule in 60 epochs, with the decay of this network, 1e-4, multiplied by the ratio of
steps, so that rate x decay x steps, which says how far decay can pull weights in, is that of the
paper. The paper says "approximately 0" without a number; here |w| < 0.01.

Near 0 the compander multiplies the learning rate by (a/b)^2. The third arm is a plain network at
that rate: it shows which effects come from the rate alone.

Tried on other seeds, all with 24 epochs in `end`: decay 5e-4 times the ratio of steps (both arms
collapse to 10 to 20 % training accuracy, 81 and 95 % of the weights are dead); 1e-4 times it (89
and 67 %, 18 and 30 % dead: the arm with compander has learned less); 5e-3 and 5e-4 as they are (all
learned, but at most 4 % dead: decay has not acted). With 60 epochs, one seed: both learned 100 %,
7 % dead without compander and 18 % with it. In `start` no plain weight exceeds 1.23.

Why more weights die here with the compander, against the paper: decay acts on w, so a step of v
moves a small w by -(a/b)^2 lr (g + decay w). Near 0 decay is (a/b)^2 = 2.56 times as strong, as it
is in the third arm, where still more weights die.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from fsbench.claims import (
    Claim,
    ClaimCondition,
    ClaimFigure,
    ClaimOutcome,
    ClaimSettings,
    ClaimStatement,
    _runs,
    choose_verdict,
    judge_gains,
    require_at_least,
    require_at_most,
)
from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context
    from protocols.analyses.weight_percentiles import WeightSpread

SAME = 1e-5
RULE = (
    "reproduced if the paper's inequality holds for every seed, direction only if it holds in the"
    " mean"
)
CLAIM = Claim(
    source="Weight Compander, section IV-D, Figures 3 and 4",
    statements={
        "bound": ClaimStatement(
            text="weight compander bounds the weights that grow large at the start",
            condition="the bound bites: some weight exceeds it without compander",
            rule=f"epoch 0: reproduced if no percentile of any layer differs by more than {SAME:g};"
            f" bound: reproduced if every weight stays within it at every epoch; largest: {RULE}",
        ),
        "spread": ClaimStatement(
            text="weight compander leaves fewer weights at zero, in the first layer above all",
            condition="both networks learn equally, and decay leaves weights at zero without it",
            rule=RULE,
        ),
    },
    seeds=2,
    full_seeds=5,
)
FITTED, EQUAL, DYING = 95.0, 5.0, 5.0
"""Least training accuracy (%), largest difference of two (points), least share of dead weights (%)
without compander, in the first convolution."""

A, B = 0.8, 0.5
"""The paper's choice for ResNet-34 on CIFAR-10, the network of its figures."""
BOUND = A * math.pi / 2
ARCHITECTURE, WIDTH, FIRST = "toy_resnet", 16, "conv1"
SIDE, IMAGES = 16, 1500
BATCH, LR, DECAY = 128, 0.1, 1e-4
START_DECAY = 5e-4
MILESTONES = (90 / 200, 136 / 200)
STEPS = 200 * (45_000 // BATCH)
"""Optimizer steps of the paper."""


class TrainingArm(NamedTuple):
    """A method with its learning rate."""

    method: Mapping[str, object]
    lr: float = LR


PLAIN, WC, CONTROL = "without", "with", "without, lr x (a/b)^2"
ARMS = {
    PLAIN: TrainingArm({"name": "normal"}),
    WC: TrainingArm({"name": "weight_compander", "a": A, "b": B}),
    CONTROL: TrainingArm({"name": "normal"}, LR * (A / B) ** 2),
}


class TrainingPhase(NamedTuple):
    """A short run that replaces a part of the paper's run."""

    epochs: int
    decay: float
    schedule: str


def shorten_schedule(epochs: int) -> TrainingPhase:
    """Shorten the whole schedule to these epochs; the decay grows as the steps shrink."""
    steps = epochs * (IMAGES // BATCH)
    return TrainingPhase(epochs, DECAY * STEPS / steps, "step")


START, END = "start", "end"
PHASES = {START: TrainingPhase(8, START_DECAY, "constant"), END: shorten_schedule(60)}


class CompanderJob(NamedTuple):
    """One run: keys of PHASES and ARMS, and a seed."""

    phase: str
    arm: str
    seed: int


class WeightTrace(NamedTuple):
    """Spread of every layer's weights, initial and after every epoch; final accuracies (%)."""

    epochs: "Sequence[Mapping[str, WeightSpread]]"
    accuracy: float
    train: float


WeightTraces = Mapping[str, Mapping[str, Sequence[WeightTrace]]]
"""Traces of all seeds by phase and arm."""


def train_arms(settings: ClaimSettings, report: Reporter) -> WeightTraces:
    """Train all phases and arms over the seeds."""
    jobs = [
        CompanderJob(phase, arm, seed)
        for seed in settings.seed_range
        for phase in PHASES
        for arm in ARMS
    ]
    function = partial(trace_weights, settings=settings)
    results = _runs.run_jobs(function, jobs, settings, "wc_weights", report)
    traces: dict[str, dict[str, list[WeightTrace]]] = {p: {arm: [] for arm in ARMS} for p in PHASES}
    for job, trace in zip(jobs, results, strict=True):
        traces[job.phase][job.arm].append(trace)
    return traces


def build_compander_recipe(job: CompanderJob) -> "Recipe":
    """Build the recipe of a job."""
    (method, lr), phase = ARMS[job.arm], PHASES[job.phase]
    return _runs.build_claim_recipe(
        [method],
        {"rounds": 1, "epochs": phase.epochs},
        job.seed,
        source="tinyimagenet",
        input_size=SIDE,
        architecture=ARCHITECTURE,
        width=WIDTH,
        batch_size=BATCH,
        lr=lr,
        momentum=0.9,
        weight_decay=phase.decay,
        schedule=phase.schedule,
        milestones=MILESTONES,
        warmup=0.0,
        label_smoothing=0.0,
        validate_every=phase.epochs,
    )


def trace_weights(job: CompanderJob, settings: ClaimSettings) -> WeightTrace:
    """Train once and measure the weights after every epoch."""
    from protocols.analyses.weight_percentiles import measure_percentiles

    spreads: list[Mapping[str, WeightSpread]] = []

    def watch(ctx: "Context") -> None:
        spreads.append(measure_percentiles(ctx.model))

    source = _runs.load_colour_source(settings, SIDE, IMAGES, job.seed)
    run = _runs.train_once(build_compander_recipe(job), source, watch=watch)
    train = 100 * run.log[-1]["train_accuracy"]
    return WeightTrace(spreads, 100 * run.facts["source_accuracy"], train)


def run(settings: ClaimSettings, report: Reporter = SILENT) -> ClaimOutcome:
    """Run everything over the seeds."""
    images = _runs.require_colour_images(settings)
    if not images.holds:
        return CLAIM.judge(settings, {name: ([images], ()) for name in CLAIM.statements})
    traces = train_arms(settings, report)
    peak, *spread = (judge_comparison(comparison, traces) for comparison in COMPARISONS)
    bound = (_judge_start(traces), _judge_bound(traces), peak)
    return CLAIM.judge(
        settings,
        {
            "bound": ([images, _require_bite(traces)], bound),
            "spread": (
                [images, *require_equal_fit(traces), _require_dying(traces)],
                (*spread, _judge_later_layers(traces)),
            ),
        },
        notes=_describe_control(traces),
        panels=(
            *(_percentile_panel(arm, traces[END][arm][0]) for arm in (PLAIN, WC)),
            *_course_panels(traces),
        ),
    )


def _require_bite(traces: WeightTraces) -> ClaimCondition:
    """Require that a weight of every plain network exceeds the bound at some epoch."""
    largest = [measure_peak(trace) for trace in traces[START][PLAIN]]
    what = f"largest |w| without compander, in units of the bound {BOUND:.3f}"
    return require_at_least(what, [peak / BOUND for peak in largest], 1.0, "")


def require_equal_fit(traces: WeightTraces) -> list[ClaimCondition]:
    """Require that the networks with and without compander end with equal training accuracy."""
    plain, wc = ([trace.train for trace in traces[END][arm]] for arm in (PLAIN, WC))
    gaps = [abs(a - b) for a, b in zip(plain, wc, strict=True)]
    return [
        require_at_least("training accuracy without compander", plain, FITTED),
        require_at_most("difference in training accuracy", gaps, EQUAL, " points"),
    ]


def _require_dying(traces: WeightTraces) -> ClaimCondition:
    """Require that decay leaves weights of the first convolution at zero without compander."""
    dead = [measure_dead_share(trace) for trace in traces[END][PLAIN]]
    return require_at_least("dead weights without compander", dead, DYING)


def _judge_start(traces: WeightTraces) -> ClaimFigure:
    """Judge whether both networks start with the same weights."""
    apart = max(
        abs(x - y)
        for plain, wc in zip(traces[END][PLAIN], traces[END][WC], strict=True)
        for layer, spread in plain.epochs[0].items()
        for x, y in zip(spread.percentiles, wc.epochs[0][layer].percentiles, strict=True)
    )
    return ClaimFigure(
        what="epoch 0: percentiles of all layers",
        published="the same with and without",
        ours=f"at most {apart:.1g} apart",
        verdict=choose_verdict(apart <= SAME),
    )


def _judge_bound(traces: WeightTraces) -> ClaimFigure:
    """Judge whether all weights stay within the bound at every epoch."""
    largest = max(measure_peak(trace) for phase in traces.values() for trace in phase[WC])
    return ClaimFigure(
        what="with: largest |w|, all layers and epochs",
        published=f"below a pi/2 = {BOUND:.3f}",
        ours=f"{largest:.3f}",
        verdict=choose_verdict(largest < BOUND),
    )


def measure_peak(trace: WeightTrace) -> float:
    """Return the largest |w| of all layers over all epochs."""
    return max(spread.largest for epoch in trace.epochs for spread in epoch.values())


def measure_largest_weight(trace: WeightTrace) -> float:
    """Return the largest |w| of the first convolution over all epochs."""
    return max(epoch[FIRST].largest for epoch in trace.epochs)


def measure_dead_share(trace: WeightTrace) -> float:
    """Return the final share (%) of dead weights in the first convolution."""
    return 100 * trace.epochs[-1][FIRST].dead


def measure_width(trace: WeightTrace) -> float:
    """Return the final distance from the 16th to the 84th percentile of the first convolution."""
    return measure_distance(trace.epochs[-1][FIRST], 16, 84)


def measure_spike(trace: WeightTrace) -> float:
    """Return the width of the middle 38 % over that of the middle 68 %.

    It is 0.5 for a normal distribution and smaller with a spike at zero; the size of the weights,
    which depends on the learning rate, cancels.
    """
    end = trace.epochs[-1][FIRST]
    return measure_distance(end, 31, 69) / measure_distance(end, 16, 84)


def measure_distance(spread: "WeightSpread", low: int, high: int) -> float:
    """Return the distance between two of the percentiles."""
    from protocols.analyses.weight_percentiles import PERCENTILES

    by_name = dict(zip(PERCENTILES, spread.percentiles, strict=True))
    return by_name[high] - by_name[low]


class WeightComparison(NamedTuple):
    """A measure of the first convolution, and the arm for which the paper reports less."""

    phase: str
    what: str
    published: str
    measure: Callable[[WeightTrace], float]
    lower: str


COMPARISONS = (
    WeightComparison(
        START,
        "largest |w| of all epochs",
        "very large without, bounded with",
        measure_largest_weight,
        WC,
    ),
    WeightComparison(END, "dead weights, |w| < 0.01 (%)", "fewer with", measure_dead_share, WC),
    WeightComparison(END, "16th to 84th percentile", "wider with", measure_width, PLAIN),
)


def judge_comparison(comparison: WeightComparison, traces: WeightTraces) -> ClaimFigure:
    """Judge one inequality over the seeds."""
    values = {
        arm: list(map(comparison.measure, traces[comparison.phase][arm])) for arm in (PLAIN, WC)
    }
    higher = PLAIN if comparison.lower == WC else WC
    gaps = [h - low for h, low in zip(values[higher], values[comparison.lower], strict=True)]
    return ClaimFigure(
        what=f"first convolution, {comparison.phase}: {comparison.what}",
        published=comparison.published,
        ours=f"{fmean(values[PLAIN]):.3g} without, {fmean(values[WC]):.3g} with",
        verdict=judge_gains(gaps),
    )


def _judge_later_layers(traces: WeightTraces) -> ClaimFigure:
    """Judge whether dead weights differ less in the layers after the first convolution."""
    pairs = list(zip(traces[END][PLAIN], traces[END][WC], strict=True))
    first = [abs(measure_dead_share(plain) - measure_dead_share(wc)) for plain, wc in pairs]
    rest = [abs(measure_later_share(plain) - measure_later_share(wc)) for plain, wc in pairs]
    return ClaimFigure(
        what="end: difference in dead weights (points), first and later layers",
        published="less pronounced in the middle and at the end",
        ours=f"{fmean(first):.3g} first, {fmean(rest):.3g} later",
        verdict=judge_gains([a - b for a, b in zip(first, rest, strict=True)]),
    )


def measure_later_share(trace: WeightTrace) -> float:
    """Return the final mean share (%) of dead weights in the later layers."""
    from protocols.analyses.weight_percentiles import ALL

    end = trace.epochs[-1]
    return 100 * fmean(s.dead for layer, s in end.items() if layer not in (FIRST, ALL))


def _describe_control(traces: WeightTraces) -> tuple[str, ...]:
    """Describe the effect of the larger learning rate alone, and the accuracies."""
    shape = WeightComparison(END, "middle 38 % over middle 68 %", "", measure_spike, PLAIN)
    scores = ", ".join(f"{fmean(t.accuracy for t in traces[END][a]):.1f} % {a}" for a in ARMS)
    return (*(_describe_measure(c, traces) for c in (*COMPARISONS, shape)), f"accuracy: {scores}")


def _describe_measure(comparison: WeightComparison, traces: WeightTraces) -> str:
    """Describe the three arms, and the part of the difference that the control shares."""
    arms = traces[comparison.phase]
    plain, wc, control = (fmean(map(comparison.measure, arms[arm])) for arm in (PLAIN, WC, CONTROL))
    part = f"{(control - plain) / (wc - plain):.0%}" if wc != plain else "no difference"
    return (
        f"{comparison.phase}: {comparison.what}: {plain:.3g} without, {wc:.3g} with,"
        f" {control:.3g} {CONTROL}; the learning rate alone: {part}"
    )


def _percentile_panel(arm: str, trace: WeightTrace) -> Panel:
    """Plot the percentiles of the first convolution per epoch, as the paper does."""
    from protocols.analyses.weight_percentiles import PERCENTILES

    epochs = tuple(float(epoch) for epoch in range(len(trace.epochs)))
    curves = tuple(
        Curve(label=f"{p:g} %", x=epochs, y=tuple(e[FIRST].percentiles[i] for e in trace.epochs))
        for i, p in enumerate(PERCENTILES)
    )
    return Panel(title=f"first convolution, {arm}", x="epoch", y="w", curves=curves)


def _course_panels(traces: WeightTraces) -> tuple[Panel, ...]:
    """Plot the largest weight and the dead share per epoch, means over seeds."""

    def course(phase: str, title: str, y: str, value: "Callable[[WeightSpread], float]") -> Panel:
        curves = []
        for arm, seeds in traces[phase].items():
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
