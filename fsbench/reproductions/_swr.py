"""Shared set-up of the soft-weight-rescaling paper's claims, on scikit-learn's digits.

Appendix D (methods.md B): Adam at 1e-3, no augmentation, no decay, the optimizer's state carried
over. Batches are smaller than the paper's 256, so that 1,437 images and seconds still give some
thousand steps. A coefficient of SWR acts once a step; each claim says how its own was chosen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from fsbench.core.errors import UsageError
from fsbench.core.panels import Curve
from fsbench.reproductions import _digits
from fsbench.reproductions._outcome import ClaimVerdict

if TYPE_CHECKING:
    from torch import Tensor

    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context

ABOVE = (
    "A above B: reproduced when the mean over seeds of A - B is above twice its standard error;"
    " direction only when it is above 0"
)


def swr_recipe(
    method: Mapping[str, object] | Any,
    seed: int,
    epochs: int,
    batch_size: int,
    scenario: str = "stationary",
    **fields: object,
) -> Recipe:
    """The paper's training of its MLP with this method (name and settings, or an object)."""
    from pretrain.recipes import scenarios
    from pretrain.recipes.recipe import Recipe

    set_by_scenario = scenarios.fields(scenario)
    name = method["name"] if isinstance(method, Mapping) else method.name
    values: dict[str, object] = {
        "name": f"paper/{name}",
        "architecture": "mlp",
        "source": "digits",
        "input_size": _digits.SIDE,
        "plan": {"stages": set_by_scenario.pop("plan.stages"), "epochs": epochs},
        "methods": (method,),
        "batch_size": batch_size,
        "optimizer": "adam",
        "lr": 1e-3,
        "weight_decay": 0.0,
        "schedule": "constant",
        "warmup": 0.0,
        "label_smoothing": 0.0,
        "augmentation": "none",
        "channels_last": False,
        "seed": seed,
    }
    return Recipe.model_validate(values | set_by_scenario | fields)


class AccuracyTrace(NamedTuple):
    """Test accuracy (%) after every epoch (only where validated), and after every stage."""

    epochs: list[float]
    stages: list[float]


def train_recipe(
    chosen: Recipe, source: SourceDataset, watch: Callable[[Context], None] | None = None
) -> AccuracyTrace:
    """One run of the training loop; watch sees the context after setup and every epoch."""
    from pretrain.training.loop import pretrain, unwatched

    with TemporaryDirectory() as folder:
        run = pretrain(chosen, source, Path(folder) / "run", watch=watch or unwatched)
        rows = [json.loads(line) for line in (run / "log.jsonl").read_text("utf8").splitlines()]
        facts = json.loads((run / "run.json").read_text("utf8"))
    measured = [row["val_accuracy"] for row in rows if row["val_accuracy"] is not None]
    return AccuracyTrace([100 * a for a in measured], [100 * a for a in facts["stage_accuracies"]])


def forward_kernels(ctx: Context) -> list[Tensor]:
    """Weights of the convolutions and linear layers, in forward order."""
    from pretrain.weights import surgery

    return [surgery.get_weight(ctx.model, f"{name}.weight").detach() for name in ctx.roles.layers]


def require_two_seeds(seeds: int) -> None:
    """Raises UsageError below two seeds, which give no standard error."""
    if seeds < 2:
        raise UsageError(f"--seeds {seeds} gives no standard error", fix="use at least 2")


class PairedDifference(NamedTuple):
    """Mean over seeds of paired differences, and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        return f"{self.mean:+.2f} ± {self.error:.2f}"


def paired_difference(a: Sequence[float], b: Sequence[float]) -> PairedDifference:
    """a - b, seed by seed."""
    found = [x - y for x, y in zip(a, b, strict=True)]
    return PairedDifference(mean(found), stdev(found) / len(found) ** 0.5)


def judge_above(found: PairedDifference) -> ClaimVerdict:
    """The verdict on `A above B` by the rule ABOVE."""
    if found.mean > 2 * found.error:
        return "reproduced"
    return "direction only" if found.mean > 0 else "not reproduced"


def mean_curve(label: str, runs: Sequence[Sequence[float]], first: int = 0) -> Curve:
    """The mean over runs, point by point; first: where the axis starts."""
    values = [mean(point) for point in zip(*runs, strict=True)]
    return Curve(label=label, x=tuple(range(first, first + len(values))), y=tuple(values))
