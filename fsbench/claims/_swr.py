"""Recipes and statistics that the claims of soft weight rescaling share.

Appendix D of https://arxiv.org/abs/2507.04683: Adam at 1e-3, no augmentation, no decay, optimizer
state kept between stages. Here the data are the digits of scikit-learn. Batches are smaller than
the paper's 256, so that 1,437 images and a few seconds still give some thousand steps. A
coefficient of SWR acts once per step; each claim states how its own was chosen.

On clean digits the MLP reaches 97 % with and without regularisation, so most claims teach 40 % of
the digits a wrong label (NOISE); the test labels are right.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean, stdev
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from fsbench.claims import ClaimFigure, ClaimVerdict, _runs, choose_verdict
from fsbench.core.panels import Curve, Panel

if TYPE_CHECKING:
    from torch import Tensor

    from fsbench.data.source import SourceDataset
    from pretrain.method import Method
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context

_Trace = TypeVar("_Trace")

NOISE = 0.4
"""Part of the training digits with a wrong label."""
ABOVE = (
    "A above B: reproduced if the mean over seeds of A - B exceeds twice its standard error;"
    " direction only if it is above 0"
)


def build_swr_recipe(
    method: "Mapping[str, object] | Method",
    seed: int,
    epochs: int,
    batch_size: int,
    scenario: str = "stationary",
    **fields: object,
) -> "Recipe":
    """Build the paper's recipe for its MLP; method: name and settings, or a method object."""
    from pretrain.recipes.plan import scenario_fields

    staged = scenario_fields(scenario)
    plan = {"stages": staged.pop("plan.stages"), "epochs": epochs}
    protocol = {"architecture": "mlp", "batch_size": batch_size, "optimizer": "adam", "lr": 1e-3}
    return _runs.build_claim_recipe(
        [method], plan, seed, **_runs.PLAIN | protocol | staged | fields
    )


class AccuracyTrace(NamedTuple):
    """Test accuracy (%) after every validated epoch and after every stage.

    train: training accuracy (%) of every epoch, over its batches.
    """

    epochs: list[float]
    stages: list[float]
    train: Sequence[float] = ()


def trace_training(
    chosen: "Recipe", source: "SourceDataset", watch: "Callable[[Context], None] | None" = None
) -> AccuracyTrace:
    """Train once; `watch` is called with the context after setup and after every epoch."""
    run = _runs.train_once(chosen, source, watch)
    epochs = [row["val_accuracy"] for row in run.log if row["val_accuracy"] is not None]
    stages = run.facts["stage_accuracies"]
    train = [100 * row["train_accuracy"] for row in run.log]
    return AccuracyTrace([100 * a for a in epochs], [100 * a for a in stages], train)


def get_kernels(ctx: "Context") -> "list[Tensor]":
    """Return the weights of the convolutions and linear layers, in forward order."""
    from pretrain.weights import surgery

    return [surgery.get_weight(ctx.model, f"{name}.weight").detach() for name in ctx.roles.layers]


class PairedDifference(NamedTuple):
    """Mean over seeds of the paired differences, and its standard error."""

    mean: float
    error: float

    def __format__(self, spec: str) -> str:
        return f"{self.mean:+{spec}} ± {self.error:{spec}}"

    def __str__(self) -> str:
        return f"{self:.2f}"


def compute_paired_difference(a: Sequence[float], b: Sequence[float]) -> PairedDifference:
    """Compare a with b, seed by seed."""
    differences = [x - y for x, y in zip(a, b, strict=True)]
    return PairedDifference(mean(differences), stdev(differences) / len(differences) ** 0.5)


def judge_above(gain: PairedDifference) -> ClaimVerdict:
    """Return the verdict on `A above B` by the rule ABOVE."""
    return choose_verdict(gain.mean > 2 * gain.error, gain.mean > 0)


def judge_difference(
    what: str,
    above: Sequence[float],
    below: Sequence[float],
    published: str = "above 0",
    spec: str = ".2f",
) -> ClaimFigure:
    """Judge by the rule ABOVE, seed by seed; spec: format of the difference."""
    gain = compute_paired_difference(above, below)
    return ClaimFigure(
        what=what, published=published, ours=f"{gain:{spec}}", verdict=judge_above(gain)
    )


def average_curves(label: str, runs: Sequence[Sequence[float]], first: int = 0) -> Curve:
    """Return the mean over runs, point by point; first: start of the axis."""
    values = [mean(point) for point in zip(*runs, strict=True)]
    return Curve(label=label, x=tuple(range(first, first + len(values))), y=tuple(values))


def epoch_panel(
    title: str,
    y: str,
    runs: Mapping[str, Sequence[_Trace]],
    measure: Callable[[_Trace], Sequence[float]],
    first: int = 0,
) -> Panel:
    """Plot one measure of the runs by epoch for every method, means over seeds."""
    curves = (average_curves(m, list(map(measure, traces)), first) for m, traces in runs.items())
    return Panel(title=title, x="epoch", y=y, curves=tuple(curves))
