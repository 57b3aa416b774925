"""Proportionality: scale all weights by c once, with or without correcting the biases."""

from collections import defaultdict
from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise, product
from statistics import mean
from typing import Any

import torch
from torch import Tensor, nn

from fsbench.claims import _training, engine
from fsbench.claims.engine import ClaimJob, Judgements, Runs
from fsbench.data.source import SourceDataset
from pretrain.methods.swr import bias_factors, multiply_tensors
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import InputNormalizer, load_split
from pretrain.training.context import Context

SCALES = (0.9, 0.7, 0.5, 0.3, 0.1)
TRAINED, ROOM = 90.0, 95.0
"""Least test accuracy (%) of a trained network; best accuracy above which nothing can be gained."""
GAIN = "mlp, colour images"
SETUPS = {"mlp": ("mlp", 1, 30, 0), "cnn": ("cnn", 2, 30, 0), GAIN: ("mlp", 0, 60, 30)}
"""Network, zoom of the digits (0: colour images), epochs before and after scaling (0: not trained
further). The paper has 100 and 50 epochs.
"""
THEOREM = ("mlp", "cnn")
CORRECTIONS = ("with", "without")


def measure(job: ClaimJob) -> dict[str, Any]:
    """Train a set-up; scale it at all c, with and without the correction.

    Accuracies (%) before scaling: last, best, fit (training). Then, by correction, for all c: share
    of unchanged predictions, accuracy right after scaling, best accuracy of further epochs.
    """
    network, zoom, epochs, more = SETUPS[job.arm]
    if zoom:
        source = _training.load_digits_source(job.seed, zoom=zoom)
    else:
        source = _training.load_colour_source(job, 1000)
    recipe = _training.build_swr_recipe(
        {"name": "normal"}, source, job.seed, epochs, architecture=network
    )
    run = _training.train_once(recipe, source, lambda ctx: ctx)
    model, layers = run.watched[-1].model, run.watched[-1].roles.weighted
    before = predict_test_labels(model, source)
    scaled: dict[str, list[float]] = defaultdict(list)
    for correction, c in product(CORRECTIONS, SCALES):
        other = rescale_copy(model, layers, c, correction == "with")
        labels = predict_test_labels(other, source)
        right = (labels.numpy() == source.val.labels).mean()
        scaled[f"same {correction}"].append(float((before == labels).double().mean()))
        scaled[f"after {correction}"].append(100 * float(right))
        if more:
            longer = recipe.replace({"plan.epochs": more})
            scaled[f"later {correction}"].append(continue_training(other, longer, source))
    return {"last": run.test[-1], "best": max(run.test), "fit": run.train[-1], **scaled}


def rescale_copy(model: nn.Module, layers: Sequence[str], c: float, corrected: bool) -> nn.Module:
    """Return a copy with every weight times c; corrected: with biases scaled by Theorem 1."""
    other, scales = deepcopy(model), torch.full((len(layers),), c)
    factors = dict(zip((f"{name}.weight" for name in layers), scales, strict=True))
    if corrected:
        factors |= zip((f"{name}.bias" for name in layers), bias_factors(scales, None), strict=True)
    multiply_tensors(other, factors)
    return other


def predict_test_labels(model: nn.Module, source: SourceDataset) -> Tensor:
    """Return the predicted class of every test image, computed in float64."""
    cpu = torch.device("cpu")
    images = InputNormalizer(source, cpu)(load_split(source.val, cpu)[0])
    with torch.no_grad():
        logits: Tensor = deepcopy(model).double().eval()(images.double())
    return logits.argmax(dim=1)


def continue_training(model: nn.Module, recipe: Recipe, source: SourceDataset) -> float:
    """Train from these weights; return the best test accuracy (%)."""

    def start(ctx: Context) -> None:
        if ctx.clock.step == 0:
            ctx.model.load_state_dict(model.state_dict())

    return max(_training.train_once(recipe, source, start).test)


def judge_theorem(runs: Runs) -> Judgements:
    for network in THEOREM:
        yield runs.require(f"{network}: test accuracy before scaling", "last", network, TRAINED)
        share = min(map(min, runs.collect("same with", network)))
        what = f"{network}, with correction: predictions kept, least"
        yield engine.judge(what, "100 %", f"{100 * share:.1f} %", share == 1)
    for network in THEOREM:
        before = runs.collect("last", network)
        after = list(zip(*runs.collect("after without", network), strict=True))
        rises = [engine.compare_pairs(b, a) for a, b in pairwise(after)]
        falls = mean(after[-1]) < mean(before)
        yield engine.judge(
            f"{network}, without: accuracy from c = {SCALES[0]} to {SCALES[-1]}",
            "declines",
            ", ".join(engine.average_seeds(values).show(".1f") for values in (before, *after)),
            falls and all(rise.mean <= rise.error for rise in rises),
            falls,
        )


def judge_gain(runs: Runs) -> Judgements:
    best = runs.collect("best", GAIN)
    yield runs.require("training accuracy before scaling", "fit", GAIN)
    yield engine.require("best test accuracy before scaling", "at most", ROOM, best)
    for correction in CORRECTIONS:
        later = zip(*runs.collect(f"later {correction}", GAIN), strict=True)
        gains = [engine.compare_pairs(accuracies, best) for accuracies in later]
        yield engine.judge(
            f"{correction} correction: gain by training on",
            "above 0 at every c",
            ", ".join(map(format, gains)),
            all(gain.is_clear for gain in gains),
            all(gain.mean > 0 for gain in gains),
        )


CLAIM = engine.Claim(
    engine.read_claim_card("swr_figure1"),
    {"theorem 1": judge_theorem, "gain": judge_gain},
    measure,
    arms=THEOREM,
    colour_arms=(GAIN,),
    curves={
        f"{moment} {correction}": ("c", SCALES)
        for moment in ("after", "later")
        for correction in CORRECTIONS
    },
)
