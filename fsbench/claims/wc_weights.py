"""Weights of the first convolution with and without weight compander, epoch by epoch."""

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimCondition, ClaimFigure, ClaimJob, Judgements, Runs
from pretrain.recipes.recipe import Recipe
from protocols.analyses import weight_percentiles as spreads

A, B = 0.8, 0.5
"""The paper's choice for ResNet-34 on CIFAR-10, the network of its figures."""
BOUND = A * math.pi / 2
FIRST, IMAGES, EPOCHS, LR = "conv1", 1500, 60, 0.1
PLAIN, WC, CONTROL = "without", "with", "without, lr x (a/b)^2"
ARMS: dict[str, tuple[dict[str, object], float]] = {
    PLAIN: ({"name": "normal"}, LR),
    WC: ({"name": "weight_compander", "a": A, "b": B}, LR),
    CONTROL: ({"name": "normal"}, LR * (A / B) ** 2),
}
"""Method and learning rate."""


def measure(job: ClaimJob) -> dict[str, Any]:
    """Train an arm; measure the weights initially and after every epoch."""
    recipe, source = build_compander_recipe(job), _training.load_colour_source(job, IMAGES)
    run = _training.train_once(recipe, source, lambda ctx: spreads.measure_percentiles(ctx.model))
    return {"accuracy": run.stages[-1], "fit": run.train[-1], **summarize_weights(run.watched)}


def build_compander_recipe(job: ClaimJob) -> Recipe:
    method, lr = ARMS[job.arm]
    return _training.build_claim_recipe(
        [method],
        {"rounds": 1, "epochs": EPOCHS},
        job.seed,
        source="tinyimagenet",
        input_size=_training.COLOUR_SIDE,
        augmentation="flip",
        architecture="cifar/resnet18",
        width=8,
        batch_size=64,
        lr=lr,
        momentum=0.9,
        weight_decay=1e-4,
        schedule="step",
        milestones=(90 / 200, 136 / 200),
        warmup=0.0,
        label_smoothing=0.0,
        validate_every=EPOCHS,
    )


def summarize_weights(epochs: Sequence[Mapping[str, spreads.WeightSpread]]) -> dict[str, Any]:
    """Return the quantities of the weights, of the first convolution unless stated.

    start: initial percentiles of all layers; peak: largest |w| of all layers and epochs, in units
    of the bound; dead, later: final share (%) of dead weights, and its mean over the later layers;
    width: final distance of the 16th and the 84th percentile.
    """
    first, percents = [epoch[FIRST] for epoch in epochs], enumerate(spreads.PERCENTILES)
    lines = {f"{p:g} %": [spread.percentiles[i] for spread in first] for i, p in percents}
    largest, dead = [spread.largest for spread in first], [100 * spread.dead for spread in first]
    later = [s.dead for name, s in epochs[-1].items() if name not in (FIRST, spreads.ALL)]
    return {
        "start": [p for spread in epochs[0].values() for p in spread.percentiles],
        "peak": max(s.largest for epoch in epochs for s in epoch.values()) / BOUND,
        "w": lines,
        "largest |w|": largest,
        "|w| < 0.01 (%)": dead,
        "largest": max(largest),
        "dead": dead[-1],
        "later": 100 * mean(later),
        "width": lines["84 %"][-1] - lines["16 %"][-1],
    }


def judge_bound(runs: Runs) -> Judgements:
    """Judge the bound; the first two figures are exact, so they are judged seed by seed."""
    what = f"largest |w| without compander, in units of the bound {BOUND:.3f}"
    yield runs.require(what, "peak", PLAIN, 1.0, "")
    starts = zip(*(runs.collect("start", arm) for arm in (PLAIN, WC)), strict=True)
    apart = max(abs(x - y) for plain, wc in starts for x, y in zip(plain, wc, strict=True))
    what, published = "epoch 0: percentiles of all layers", "the same with and without"
    yield engine.judge(what, published, f"at most {apart:.1g} apart", apart <= 1e-5)
    peak = max(runs.collect("peak", WC))
    what, published = "with: largest |w|, all layers and epochs", f"below a pi/2 = {BOUND:.3f}"
    yield engine.judge(what, published, f"{peak * BOUND:.3f}", peak < 1)
    what, published = "largest |w| of all epochs", "very large without, bounded with"
    yield judge_less(runs, "largest", what, published)


def judge_spread(runs: Runs) -> Judgements:
    yield from require_learning(runs)
    what = "distance of the 16th and the 84th percentile"
    yield judge_less(runs, "width", what, "wider with", sign=-1)


def judge_zeros(runs: Runs) -> Judgements:
    yield from require_learning(runs)
    yield runs.require("dead weights without compander", "dead", PLAIN, 5.0)
    yield judge_less(runs, "dead", "dead weights, |w| < 0.01 (%)", "fewer with")
    first, later = (list(map(abs, subtract_arms(runs, name))) for name in ("dead", "later"))
    yield engine.judge_gains(
        "difference in dead weights (points), first and later layers",
        "less pronounced in the middle and at the end",
        f"{mean(first):.3g} first, {mean(later):.3g} later",
        [a - b for a, b in zip(first, later, strict=True)],
    )


def require_learning(runs: Runs) -> Iterator[ClaimCondition]:
    """Require the networks without and with compander to learn, and to learn equally."""
    yield runs.require("training accuracy without compander", "fit", PLAIN, 95.0)
    yield runs.require_equal("difference in training accuracy", "fit", PLAIN, WC, 5.0)


def subtract_arms(runs: Runs, quantity: str) -> list[float]:
    """Return the quantity without compander minus that with it, by seed."""
    plain, wc = (runs.collect(quantity, arm) for arm in (PLAIN, WC))
    return [x - y for x, y in zip(plain, wc, strict=True)]


def judge_less(runs: Runs, quantity: str, what: str, published: str, sign: int = 1) -> ClaimFigure:
    """Judge whether a quantity of the first convolution is less with compander (sign -1: more).

    The control of the same effective rate near 0 is shown beside, and not judged.
    """
    means = ", ".join(f"{mean(runs.collect(quantity, arm)):.3g} {arm}" for arm in ARMS)
    gains = [sign * difference for difference in subtract_arms(runs, quantity)]
    return engine.judge_gains(f"first convolution: {what}", published, means, gains)


CLAIM = engine.Claim(
    engine.read_claim_card("wc_weights"),
    {"bound": judge_bound, "spread": judge_spread, "zeros": judge_zeros},
    measure,
    colour_arms=ARMS,
    curves=dict.fromkeys(("w", "largest |w|", "|w| < 0.01 (%)"), engine.FROM_START),
)
