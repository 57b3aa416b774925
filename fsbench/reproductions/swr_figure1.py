"""Proportionality: scale all weights by c once, with or without correcting the biases.

https://arxiv.org/abs/2507.04683, Theorem 1, Figure 1: training on CIFAR-10 for 100 epochs, scaling,
50 more epochs. Here the MLP and the CNN on digits, enlarged twice for the CNN, which needs it.
Without the correction only the weights are multiplied: the paper does not say what happens to the
biases. Training continues with a new optimizer, for the MLP alone. Predictions are compared in
float64, where rounding breaks no tie.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.reproductions import (
    Claim,
    ClaimFigure,
    ClaimOutcome,
    ClaimVerdict,
    _runs,
    _swr,
    choose_verdict,
    require_two_seeds,
)
from pretrain.method import Method
from pretrain.recipes.recipe import ActingOrder, Neutral

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fsbench.data.source import SourceDataset
    from pretrain.training.context import Context

FIRST, MORE, BATCH = 30, 15, 32
"""Epochs before and after scaling, in the paper 100 and 50."""
SCALES = (0.9, 0.7, 0.5, 0.3, 0.1)
CLAIM = Claim(
    source="soft weight rescaling, Theorem 1, Figure 1",
    statement="scaling the weights changes no prediction if the biases are scaled accordingly",
    rule=(
        "with correction: reproduced if every prediction after scaling equals the one before, for"
        " all seeds and all c, otherwise not. Without: the mean accuracy right after scaling is"
        " reproduced as falling if no smaller c has more and the smallest c has less than before"
        f" scaling, direction only if just the latter holds. Best of {MORE} more epochs against the"
        f" best before, for each c: {_swr.ABOVE}; reproduced if all c are, direction only if all"
        f" are at least that"
    ),
    seeds=3,
)
NETWORKS = {"mlp": 1, "cnn": 2}
"""Enlargement of the images by network."""


class ScalingEffect(NamedTuple):
    """Effect of one scaling.

    same: share of unchanged predictions; after: accuracy (%) right after; later: best accuracy of
    the following epochs (None: not trained further).
    """

    same: float
    after: float
    later: float | None


class ScalingResult(NamedTuple):
    """Last and best test accuracy (%), and scalings by c with and without the correction."""

    last: float
    best: float
    corrected: dict[float, ScalingEffect]
    plain: dict[float, ScalingEffect]


class StartWeights(Method):
    """Method that starts a run from the weights in a safetensors file."""

    start: Path

    SOURCE: ClassVar = "Soft Weight Rescaling, Figure 1"
    RANK: ClassVar = ActingOrder.INIT
    NEUTRAL: ClassVar[Neutral] = "it always replaces the initial weights"

    def setup(self, ctx: Context) -> None:
        from safetensors.torch import load_file

        ctx.rewrite(load_file(self.start), "weights of another run")


def run(seeds: int = CLAIM.seeds, report: Reporter = SILENT) -> ClaimOutcome:
    """Run both networks over this many seeds. Raises UsageError for fewer than two."""
    require_two_seeds(seeds)
    runs = _runs.run_seeds(_run_job, NETWORKS, seeds, "swr_figure1", report)
    return CLAIM.judge(
        seeds,
        (
            *(judge_kept_predictions(network, results) for network, results in runs.items()),
            *(_judge_fall(network, results) for network, results in runs.items()),
            *(judge_later(corrected, runs["mlp"]) for corrected in (True, False)),
        ),
        notes=(f"{FIRST} epochs before scaling, {MORE} after it; weights scaled by {SCALES}",),
        panels=(_network_panel(network, results) for network, results in runs.items()),
    )


def _run_job(job: tuple[str, int]) -> ScalingResult:
    """Train a network with a seed; scale it at all c, with and without the correction."""
    network, seed = job
    source = _runs.load_digits_source(seed, zoom=NETWORKS[network])
    size = source.train.images.shape[-1]
    models: list[nn.Module] = []
    layers: list[str] = []

    def watch(ctx: Context) -> None:
        models[:], layers[:] = [deepcopy(ctx.model)], ctx.roles.weighted

    fields = {"architecture": network, "input_size": size}
    recipe = _swr.build_swr_recipe({"name": "normal"}, seed, FIRST, BATCH, **fields)
    trained = _swr.trace_training(recipe, source, watch)

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
    """Scale a trained network once; with a seed, continue training."""
    other = rescale_copy(model, layers, c, corrected)
    before, after = predict_test_labels(model, source), predict_test_labels(other, source)
    right = after.numpy() == source.val.labels
    later = None if seed is None else continue_training(other, source, seed)
    return ScalingEffect(float((before == after).double().mean()), 100 * float(right.mean()), later)


def rescale_copy(model: nn.Module, layers: Sequence[str], c: float, corrected: bool) -> nn.Module:
    """Return a copy with every weight times c; corrected: with biases scaled by Theorem 1."""
    import torch

    from pretrain.methods.swr import bias_factors, multiply_tensors

    other = deepcopy(model)
    scales = torch.full((len(layers),), c)
    factors = {f"{name}.weight": scales[i] for i, name in enumerate(layers)}
    if corrected:
        bias = bias_factors(scales, None)
        factors |= {f"{name}.bias": bias[i] for i, name in enumerate(layers)}
    multiply_tensors(other, factors)
    return other


def predict_test_labels(model: nn.Module, source: SourceDataset) -> Tensor:
    """Return the predicted class of every test image, computed in float64."""
    import torch

    from pretrain.training.batches import InputNormalizer, load_split

    cpu = torch.device("cpu")
    images = InputNormalizer(source, cpu, False)(load_split(source.val, cpu)[0])
    with torch.no_grad():
        logits: Tensor = deepcopy(model).double().eval()(images.double())
    return logits.argmax(dim=1)


def continue_training(model: nn.Module, source: SourceDataset, seed: int) -> float:
    """Train MORE epochs from these weights; return the best test accuracy (%)."""
    from safetensors.torch import save_file

    with TemporaryDirectory() as folder:
        start = Path(folder) / "start.safetensors"
        save_file(dict(model.state_dict()), start)
        return max(
            _swr.trace_training(
                _swr.build_swr_recipe(StartWeights(start=start), seed, MORE, BATCH), source
            ).epochs
        )


def judge_kept_predictions(network: str, runs: Sequence[ScalingResult]) -> ClaimFigure:
    """Judge whether the correction keeps every prediction."""
    share = min(scaled.same for result in runs for scaled in result.corrected.values())
    return ClaimFigure(
        what=f"{network}, with correction: predictions kept, least",
        published="100 %",
        ours=f"{100 * share:.1f} %",
        verdict=choose_verdict(share == 1),
    )


def _judge_fall(network: str, runs: Sequence[ScalingResult]) -> ClaimFigure:
    """Judge the accuracy right after scaling without the correction."""
    means = [mean(result.plain[c].after for result in runs) for c in SCALES]
    before = mean(result.last for result in runs)
    return ClaimFigure(
        what=f"{network}, without: accuracy from c = {SCALES[0]} to {SCALES[-1]}",
        published="declines",
        ours=" ".join(f"{value:.1f}" for value in (before, *means)),
        verdict=judge_decline(before, means),
    )


def judge_decline(before: float, means: Sequence[float]) -> ClaimVerdict:
    """Return the verdict on the accuracies right after scaling, for decreasing c."""
    ordered = all(larger >= smaller for larger, smaller in pairwise(means))
    falls = means[-1] < before
    return choose_verdict(falls and ordered, falls)


def judge_later(corrected: bool, runs: Sequence[ScalingResult]) -> ClaimFigure:
    """Judge the best accuracy after scaling and more training against the best before."""
    best = [result.best for result in runs]
    gains = {
        c: _swr.compute_paired_difference(_later_accuracies(runs, c, corrected), best)
        for c in SCALES
    }
    return ClaimFigure(
        what=f"mlp, {'with' if corrected else 'without'} correction: gain by training on",
        published="above 0 at every c",
        ours=", ".join(f"{gain.mean:+.2f}" for gain in gains.values()),
        verdict=select_worst_verdict([_swr.judge_above(gain) for gain in gains.values()]),
    )


def _later_accuracies(runs: Sequence[ScalingResult], c: float, corrected: bool) -> list[float]:
    """Return the best accuracy after more training, by seed."""
    accuracies = [(result.corrected if corrected else result.plain)[c].later for result in runs]
    return [value for value in accuracies if value is not None]


def select_worst_verdict(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """Return the worst of the verdicts."""
    order: tuple[ClaimVerdict, ...] = ("not reproduced", "direction only", "reproduced")
    return min(verdicts, key=order.index)


def _network_panel(network: str, runs: Sequence[ScalingResult]) -> Panel:
    """Plot accuracy by c: before, right after, and best after more training."""

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
