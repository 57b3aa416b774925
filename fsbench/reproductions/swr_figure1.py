"""Proportionality: all weights scaled by c once, the biases along (Theorem 1) or left as they are.

Figure 1 trains on CIFAR-10 for 100 epochs, scales, trains 50 more; here the MLP and the CNN on
digits, the latter on images twice as wide, which it needs. Without the correction the weights alone
are multiplied: the paper does not say what becomes of the biases there. Training goes on with a new
optimizer, for the MLP alone. Predictions are compared in float64, where rounding breaks no tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import _digits, _swr
from fsbench.reproductions._outcome import (
    OVERALL,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    judge_claim,
)
from fsbench.reproductions._pool import run_jobs
from pretrain.method import Method, Neutral, Rank

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fsbench.data.source import SourceDataset, Split
    from pretrain.training.context import Context

SOURCE = "soft weight rescaling, Theorem 1, Figure 1"
CLAIM = "scaling weights leaves a network's predictions alone when its biases are scaled along"
SEEDS = 3
FIRST, MORE, BATCH = 30, 15, 32
"""Epochs before and after scaling, in the paper 100 and 50."""
SCALES = (0.9, 0.7, 0.5, 0.3, 0.1)
RULE = (
    "with correction: reproduced when every prediction after scaling is the one before, in all"
    " seeds and at all c, else not. Without: the mean accuracy right after is reproduced as falling"
    " when no smaller c has more and the smallest has less than before scaling, direction only when"
    f" the latter holds. Best of {MORE} more epochs, against the best before, per c: {_swr.ABOVE};"
    f" reproduced when all c are, direction only when all are at least that; {OVERALL}"
)
NETWORKS = {"mlp": 1, "cnn": 2}
"""Network -> times that its images are enlarged."""

ScalingJob = tuple[str, int]
"""Network, seed."""


class ScalingEffect(NamedTuple):
    """One scaling. same: part of the predictions kept; accuracy (%) right after, and the best of
    the epochs that follow (None: not trained further).
    """

    same: float
    after: float
    later: float | None


class ScalingResult(NamedTuple):
    """Test accuracy (%) at the end and at best; scalings by c, with the correction and without."""

    last: float
    best: float
    corrected: dict[float, ScalingEffect]
    plain: dict[float, ScalingEffect]


class StartWeights(Method):
    """start: safetensors file with the weights that the run starts from."""

    start: Path

    SOURCE: ClassVar = "Soft Weight Rescaling, Figure 1"
    RANK: ClassVar = Rank.INIT
    NEUTRAL: ClassVar[Neutral] = "it always replaces the initial weights"

    def setup(self, ctx: Context) -> None:
        from safetensors.torch import load_file

        ctx.rewrite(load_file(self.start), "given weights")


def run(seeds: int = SEEDS, report: Reporter = SILENT) -> ClaimOutcome:
    """Both networks over this many seeds. Raises UsageError below two."""
    _swr.require_two_seeds(seeds)
    jobs: list[ScalingJob] = [(network, seed) for network in NETWORKS for seed in range(seeds)]
    found = run_jobs(_run_job, jobs, "swr_figure1", report)
    runs = {n: found[i * seeds : (i + 1) * seeds] for i, n in enumerate(NETWORKS)}
    figures = (
        *(judge_kept_predictions(network, runs[network]) for network in NETWORKS),
        *(_judge_fall(network, runs[network]) for network in NETWORKS),
        *(judge_later(corrected, runs["mlp"]) for corrected in (True, False)),
    )
    return ClaimOutcome(
        source=SOURCE,
        claim=CLAIM,
        rule=RULE,
        seeds=seeds,
        figures=figures,
        verdict=judge_claim(figures),
        notes=(f"{FIRST} epochs before scaling, {MORE} after it; weights scaled by {SCALES}",),
        panels=tuple(_network_panel(network, runs[network]) for network in NETWORKS),
    )


def _run_job(job: ScalingJob) -> ScalingResult:
    network, seed = job
    source = enlarge_source(_digits.load_digits_source(seed), NETWORKS[network])
    size = source.train.images.shape[-1]
    models: list[nn.Module] = []
    layers: list[str] = []

    def watch(ctx: Context) -> None:
        models[:], layers[:] = [deepcopy(ctx.model)], ctx.roles.weighted

    fields = {"architecture": network, "input_size": size}
    recipe = _swr.swr_recipe({"name": "normal"}, seed, FIRST, BATCH, **fields)
    trained = _swr.train_recipe(recipe, source, watch)

    def scalings(corrected: bool) -> dict[float, ScalingEffect]:
        return {
            c: measure_scaling(
                models[0], layers, c, corrected, source, seed if network == "mlp" else None
            )
            for c in SCALES
        }

    return ScalingResult(trained.epochs[-1], max(trained.epochs), scalings(True), scalings(False))


def measure_scaling(
    model: nn.Module,
    layers: Sequence[str],
    c: float,
    corrected: bool,
    source: SourceDataset,
    seed: int | None,
) -> ScalingEffect:
    """One scaling of a trained network; with a seed, training goes on."""
    other = rescale_copy(model, layers, c, corrected)
    before, after = predict_labels(model, source), predict_labels(other, source)
    right = after.numpy() == source.val.labels
    later = None if seed is None else continue_training(other, source, seed)
    return ScalingEffect(float((before == after).double().mean()), 100 * float(right.mean()), later)


def rescale_copy(model: nn.Module, layers: Sequence[str], c: float, corrected: bool) -> nn.Module:
    """A copy with every layer's weight times c; corrected: biases along, by Theorem 1."""
    import torch

    from pretrain.weights import scaling

    other = deepcopy(model)
    each = torch.full((len(layers),), c)
    factors = {f"{name}.weight": each[i] for i, name in enumerate(layers)}
    if corrected:
        bias = scaling.bias_factors(each, None)
        factors |= {f"{name}.bias": bias[i] for i, name in enumerate(layers)}
    scaling.multiply(other, factors)
    return other


def predict_labels(model: nn.Module, source: SourceDataset) -> Tensor:
    """Class of every test image, computed in float64."""
    import torch

    from pretrain.training.batches import Normalise, in_memory

    cpu = torch.device("cpu")
    images = Normalise(source, cpu, False)(in_memory(source.val, cpu)[0])
    with torch.no_grad():
        logits: Tensor = deepcopy(model).double().eval()(images.double())
    return logits.argmax(dim=1)


def continue_training(model: nn.Module, source: SourceDataset, seed: int) -> float:
    """Best test accuracy (%) of MORE epochs from these weights."""
    from safetensors.torch import save_file

    with TemporaryDirectory() as folder:
        start = Path(folder) / "start.safetensors"
        save_file(dict(model.state_dict()), start)
        return max(
            _swr.train_recipe(
                _swr.swr_recipe(StartWeights(start=start), seed, MORE, BATCH), source
            ).epochs
        )


def enlarge_source(source: SourceDataset, times: int) -> SourceDataset:
    """Every pixel `times` x `times`."""

    def split(part: Split) -> Split:
        images = part.images.repeat(times, axis=2).repeat(times, axis=3)
        return replace(part, images=np.ascontiguousarray(images))

    return replace(source, train=split(source.train), val=split(source.val))


def judge_kept_predictions(network: str, runs: Sequence[ScalingResult]) -> ClaimFigure:
    """Whether the correction keeps every prediction."""
    share = min(scaled.same for found in runs for scaled in found.corrected.values())
    return ClaimFigure(
        what=f"{network}, with correction: predictions kept, least",
        published="100 %",
        ours=f"{100 * share:.1f} %",
        verdict="reproduced" if share == 1 else "not reproduced",
    )


def _judge_fall(network: str, runs: Sequence[ScalingResult]) -> ClaimFigure:
    """Accuracy right after scaling without the correction."""
    means = [mean(found.plain[c].after for found in runs) for c in SCALES]
    before = mean(found.last for found in runs)
    return ClaimFigure(
        what=f"{network}, without: accuracy from c = {SCALES[0]} to {SCALES[-1]}",
        published="declines",
        ours=" ".join(f"{value:.1f}" for value in (before, *means)),
        verdict=judge_decline(before, means),
    )


def judge_decline(before: float, means: Sequence[float]) -> ClaimVerdict:
    """The verdict on the accuracies right after scaling, c falling."""
    if means[-1] >= before:
        return "not reproduced"
    ordered = all(larger >= smaller for larger, smaller in pairwise(means))
    return "reproduced" if ordered else "direction only"


def judge_later(corrected: bool, runs: Sequence[ScalingResult]) -> ClaimFigure:
    """Best accuracy after scaling and training on, against the best before."""
    best = [found.best for found in runs]
    gains = {c: _swr.paired_difference(_later_accuracies(runs, c, corrected), best) for c in SCALES}
    return ClaimFigure(
        what=f"mlp, {'with' if corrected else 'without'} correction: gain by training on",
        published="above 0 at every c",
        ours=", ".join(f"{gain.mean:+.2f}" for gain in gains.values()),
        verdict=worst_verdict([_swr.judge_above(gain) for gain in gains.values()]),
    )


def _later_accuracies(runs: Sequence[ScalingResult], c: float, corrected: bool) -> list[float]:
    """Best accuracy after training on, by seed."""
    chosen = [(found.corrected if corrected else found.plain)[c].later for found in runs]
    return [value for value in chosen if value is not None]


def worst_verdict(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The least of the verdicts."""
    order: tuple[ClaimVerdict, ...] = ("not reproduced", "direction only", "reproduced")
    return min(verdicts, key=order.index)


def _network_panel(network: str, runs: Sequence[ScalingResult]) -> Panel:
    """Accuracy by c: before, right after, and at best after training on."""

    def curve(label: str, values: Sequence[float]) -> Curve:
        return Curve(label=label, x=SCALES, y=tuple(values))

    curves = [curve("best before", [mean(f.best for f in runs)] * len(SCALES))]
    for corrected, name in ((True, "with correction"), (False, "without")):
        sides = [f.corrected if corrected else f.plain for f in runs]
        curves.append(
            curve(f"right after, {name}", [mean(s[c].after for s in sides) for c in SCALES])
        )
        if network == "mlp":
            best = [mean(_later_accuracies(runs, c, corrected)) for c in SCALES]
            curves.append(curve(f"best later, {name}", best))
    return Panel(title=network, x="c", y="test accuracy (%)", curves=tuple(curves))
