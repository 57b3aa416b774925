"""Proportionality: scale all weights by c once, with or without correcting the biases.

https://arxiv.org/abs/2507.04683, Theorem 1, Figure 1: training on CIFAR-10 for 100 epochs, scaling,
50 more epochs. Theorem 1 is tested with the MLP and the CNN on digits, enlarged twice for the CNN,
which needs it. The gain by training on after scaling is tested with the MLP on 1,000 images of ten
TinyImageNet classes at 16 px, which it learns by heart; on digits the best accuracy is 98 %, and
there is nothing to gain (tried on other seeds: -.14 at every c but .1, there -.83).

Without the correction only the weights are multiplied: the paper does not say what happens to the
biases. Training continues with a new optimizer. Predictions are compared in float64, where rounding
breaks no tie.
"""

from collections.abc import Sequence
from copy import deepcopy
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from fsbench.claims import (
    FITTED,
    Claim,
    ClaimCondition,
    ClaimFigure,
    ClaimOutcome,
    ClaimSettings,
    ClaimStatement,
    ClaimVerdict,
    _runs,
    _swr,
    choose_verdict,
    require_at_least,
    require_at_most,
    require_two_seeds,
)
from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from pretrain.method import Method
from pretrain.recipes.recipe import ActingOrder, Neutral

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fsbench.data.source import SourceDataset
    from pretrain.training.context import Context

BATCH = 32
SCALES = (0.9, 0.7, 0.5, 0.3, 0.1)
TRAINED, ROOM = 90.0, 95.0
"""Least test accuracy (%) of a trained network; best accuracy above which nothing can be gained."""
CLAIM = Claim(
    source="soft weight rescaling, Theorem 1, Figure 1",
    statements={
        "theorem 1": ClaimStatement(
            text="scaling the weights changes no prediction if the biases are scaled accordingly",
            condition="the networks are trained, so that predictions and biases mean something",
            rule="with correction: reproduced if every prediction after scaling equals the one"
            " before, for all seeds and all c, otherwise not. Without: the mean accuracy right"
            " after scaling is reproduced as falling if no smaller c has more, by more than one"
            " standard error over the paired seeds, and the smallest c has less than before"
            " scaling; direction only if just the latter holds",
        ),
        "gain": ClaimStatement(
            text="training on after scaling exceeds the best accuracy before",
            condition="images are learned by heart, and accuracy leaves room for a gain",
            rule=f"best of the further epochs against the best before, for each c: {_swr.ABOVE};"
            " reproduced if all c are, direction only if all are at least that",
        ),
    },
    seeds=3,
    full_seeds=5,
)


class ScalingSetup(NamedTuple):
    """A network, its images (zoom: of digits, 0: colour images), epochs before and after scaling.

    The paper has 100 and 50 epochs; 0 after scaling: not trained further.
    """

    network: str
    zoom: int
    epochs: int
    more: int


COLOUR_SIDE, COLOUR_IMAGES = 16, 1000
SETUPS = {
    "mlp": ScalingSetup("mlp", 1, 30, 0),
    "cnn": ScalingSetup("cnn", 2, 30, 0),
    "mlp, colour images": ScalingSetup("mlp", 0, 60, 30),
}
THEOREM, GAIN = ("mlp", "cnn"), "mlp, colour images"


class ScalingEffect(NamedTuple):
    """Effect of one scaling.

    same: share of unchanged predictions; after: accuracy (%) right after; later: best accuracy of
    the following epochs (None: not trained further).
    """

    same: float
    after: float
    later: float | None


class ScalingResult(NamedTuple):
    """Last and best test accuracy (%), and scalings by c with and without the correction.

    train: training accuracy (%) of the last epoch before scaling.
    """

    last: float
    best: float
    train: float
    corrected: dict[float, ScalingEffect]
    plain: dict[float, ScalingEffect]


class StartWeights(Method):
    """Method that starts a run from the weights in a safetensors file."""

    start: Path

    SOURCE: ClassVar = "Soft Weight Rescaling, Figure 1"
    RANK: ClassVar = ActingOrder.INIT
    NEUTRAL: ClassVar[Neutral] = "it always replaces the initial weights"

    def setup(self, ctx: "Context") -> None:
        from safetensors.torch import load_file

        ctx.rewrite(load_file(self.start), "weights of another run")


def run(settings: ClaimSettings, report: Reporter = SILENT) -> ClaimOutcome:
    """Run all set-ups over the seeds. Raises UsageError for fewer than two."""
    require_two_seeds(settings.seeds)
    images = _runs.require_colour_images(settings)
    names = [name for name in SETUPS if name != GAIN or images.holds]
    function = partial(scale_trained_network, settings=settings)
    runs = _runs.run_seeds(function, names, settings, "swr_figure1", report)
    gains = runs.get(GAIN, [])
    return CLAIM.judge(
        settings,
        {
            "theorem 1": (
                [_require_trained(network, runs[network]) for network in THEOREM],
                [
                    *(judge_kept_predictions(network, runs[network]) for network in THEOREM),
                    *(judge_scaled_accuracy(network, runs[network]) for network in THEOREM),
                ],
            ),
            "gain": (
                [images, *(require_overfitting(gains) if gains else ())],
                [judge_later(corrected, gains) for corrected in (True, False) if gains],
            ),
        },
        notes=(
            f"{name}: {setup.epochs} epochs before scaling, {setup.more} after it; weights scaled"
            f" by {SCALES}"
            for name, setup in SETUPS.items()
        ),
        panels=(_network_panel(name, results) for name, results in runs.items()),
    )


def _require_trained(network: str, runs: Sequence[ScalingResult]) -> ClaimCondition:
    """Require that a network predicts most test images correctly before scaling."""
    accuracies = [result.last for result in runs]
    return require_at_least(f"{network}: test accuracy before scaling", accuracies, TRAINED)


def require_overfitting(runs: Sequence[ScalingResult]) -> tuple[ClaimCondition, ClaimCondition]:
    """Require that the images are learned by heart, and room for a gain over the best accuracy."""
    fitted, best = [result.train for result in runs], [result.best for result in runs]
    return (
        require_at_least("training accuracy before scaling", fitted, FITTED),
        require_at_most("best test accuracy before scaling", best, ROOM),
    )


def scale_trained_network(job: tuple[str, int], settings: ClaimSettings) -> ScalingResult:
    """Train a set-up with a seed; scale it at all c, with and without the correction."""
    name, seed = job
    network, zoom, epochs, more = SETUPS[name]
    if zoom:
        source = _runs.load_digits_source(seed, zoom=zoom)
    else:
        source = _runs.load_colour_source(settings, COLOUR_SIDE, COLOUR_IMAGES, seed)
    models: list[nn.Module] = []
    layers: list[str] = []

    def watch(ctx: "Context") -> None:
        models[:], layers[:] = [deepcopy(ctx.model)], ctx.roles.weighted

    fields = {"architecture": network, "input_size": source.train.images.shape[-1]}
    fields["source"] = source.facts.name
    recipe = _swr.build_swr_recipe({"name": "normal"}, seed, epochs, BATCH, **fields)
    trained = _swr.trace_training(recipe, source, watch)

    def measure(corrected: bool) -> dict[float, ScalingEffect]:
        return {
            c: measure_scaling(
                models[0], layers, c, corrected, source, (seed, more) if more else None
            )
            for c in SCALES
        }

    return ScalingResult(
        trained.epochs[-1], max(trained.epochs), trained.train[-1], measure(True), measure(False)
    )


def measure_scaling(
    model: "nn.Module",
    layers: Sequence[str],
    c: float,
    corrected: bool,
    source: "SourceDataset",
    training: tuple[int, int] | None,
) -> ScalingEffect:
    """Scale a trained network once; training: seed and epochs of further training, or None."""
    other = rescale_copy(model, layers, c, corrected)
    before, after = predict_test_labels(model, source), predict_test_labels(other, source)
    right = after.numpy() == source.val.labels
    later = None if training is None else continue_training(other, source, *training)
    return ScalingEffect(float((before == after).double().mean()), 100 * float(right.mean()), later)


def rescale_copy(
    model: "nn.Module", layers: Sequence[str], c: float, corrected: bool
) -> "nn.Module":
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


def predict_test_labels(model: "nn.Module", source: "SourceDataset") -> "Tensor":
    """Return the predicted class of every test image, computed in float64."""
    import torch

    from pretrain.training.batches import InputNormalizer, load_split

    cpu = torch.device("cpu")
    images = InputNormalizer(source, cpu)(load_split(source.val, cpu)[0])
    with torch.no_grad():
        logits: Tensor = deepcopy(model).double().eval()(images.double())
    return logits.argmax(dim=1)


def continue_training(model: "nn.Module", source: "SourceDataset", seed: int, epochs: int) -> float:
    """Train from these weights; return the best test accuracy (%)."""
    from safetensors.torch import save_file

    fields = {"input_size": source.train.images.shape[-1], "source": source.facts.name}
    with TemporaryDirectory() as folder:
        start = StartWeights(start=Path(folder) / "start.safetensors")
        save_file(dict(model.state_dict()), start.start)
        recipe = _swr.build_swr_recipe(start, seed, epochs, BATCH, **fields)
        return max(_swr.trace_training(recipe, source).epochs)


def judge_kept_predictions(network: str, runs: Sequence[ScalingResult]) -> ClaimFigure:
    """Judge whether the correction keeps every prediction."""
    share = min(scaled.same for result in runs for scaled in result.corrected.values())
    return ClaimFigure(
        what=f"{network}, with correction: predictions kept, least",
        published="100 %",
        ours=f"{100 * share:.1f} %",
        verdict=choose_verdict(share == 1),
    )


def judge_scaled_accuracy(network: str, runs: Sequence[ScalingResult]) -> ClaimFigure:
    """Judge the accuracy right after scaling without the correction."""
    accuracies = [[result.plain[c].after for result in runs] for c in SCALES]
    before = [result.last for result in runs]
    means = [mean(values) for values in (before, *accuracies)]
    return ClaimFigure(
        what=f"{network}, without: accuracy from c = {SCALES[0]} to {SCALES[-1]}",
        published="declines",
        ours=" ".join(f"{value:.1f}" for value in means),
        verdict=judge_decline(before, accuracies),
    )


def judge_decline(before: Sequence[float], accuracies: Sequence[Sequence[float]]) -> ClaimVerdict:
    """Return the verdict on the accuracies of all seeds right after scaling, for decreasing c."""
    rises = [
        _swr.compute_paired_difference(smaller, larger) for larger, smaller in pairwise(accuracies)
    ]
    ordered = all(rise.mean <= rise.error for rise in rises)
    falls = mean(accuracies[-1]) < mean(before)
    return choose_verdict(falls and ordered, falls)


def judge_later(corrected: bool, runs: Sequence[ScalingResult]) -> ClaimFigure:
    """Judge the best accuracy after scaling and more training against the best before."""
    best = [result.best for result in runs]
    gains = {
        c: _swr.compute_paired_difference(_later_accuracies(runs, c, corrected), best)
        for c in SCALES
    }
    return ClaimFigure(
        what=f"{'with' if corrected else 'without'} correction: gain by training on",
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


def _network_panel(name: str, runs: Sequence[ScalingResult]) -> Panel:
    """Plot accuracy by c: before, right after, and best after more training."""

    def curve(label: str, values: Sequence[float]) -> Curve:
        return Curve(label=label, x=SCALES, y=tuple(values))

    curves = [curve("best before", [mean(f.best for f in runs)] * len(SCALES))]
    for corrected, label in ((True, "with correction"), (False, "without")):
        sides = [f.corrected if corrected else f.plain for f in runs]
        curves.append(
            curve(f"right after, {label}", [mean(s[c].after for s in sides) for c in SCALES])
        )
        if SETUPS[name].more:
            best = [mean(_later_accuracies(runs, c, corrected)) for c in SCALES]
            curves.append(curve(f"best later, {label}", best))
    return Panel(title=name, x="c", y="test accuracy (%)", curves=tuple(curves))
