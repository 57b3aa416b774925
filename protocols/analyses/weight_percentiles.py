"""How the weights of a network are spread: percentiles, the largest one, the share near zero.

"Weight Compander", section IV-D: its Figures 3 and 4 draw nine percentiles of the first
convolution's weights per epoch, to show that large weights are bounded and fewer weights rest at
zero. Counted are the kernels of convolutions and linear layers as forward uses them, so under a
reparametrization the effective ones; biases and norm layers are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from fsbench.core.errors import FsbenchError, UsageError
from fsbench.core.findings import Finding, Measure, View
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import Frozen
from protocols.analyses import Need, NotApplicable
from protocols.analyses._subject import Subject

SOURCE = "Weight Compander (Cakaj et al.), Figures 3 and 4"
NEEDS: tuple[Need, ...] = ()
PERCENTILES = (0.0, 7.0, 16.0, 31.0, 50.0, 69.0, 84.0, 93.0, 100.0)
"""The lines of the figures, minimum and maximum included."""
DEAD = 0.01
"""The paper says "approximately 0" without a number; weights below this count as dead here."""
ALL = "all"
"""Name of the row of the whole network."""
KINDS = (_ConvNd, nn.Linear)


class Settings(Frozen):
    """percentiles: in [0, 100]; dead: weights with |w| below it count as near zero."""

    percentiles: tuple[Annotated[float, Field(ge=0, le=100)], ...] = Field(
        PERCENTILES, min_length=1
    )
    dead: float = Field(DEAD, gt=0)


class Spread(NamedTuple):
    """n: weights; percentiles: of w; largest: max |w|; dead: share of |w| < threshold."""

    n: int
    percentiles: tuple[float, ...]
    largest: float
    dead: float


def passes(subject: Subject, settings: Settings) -> int:
    return 0


def run(subject: Subject, settings: Settings, report: Reporter = SILENT) -> Finding:
    """Of the head-free backbone. Raises NotApplicable without convolution and linear layer."""
    model, share = subject.backbone.module, f"weights near zero (|w| < {settings.dead:g})"
    if not kernels(model):
        raise NotApplicable(
            f"{subject.backbone.facts.ref} has no convolution and no linear layer",
            fix="leave weight_percentiles out of --what",
        )
    found = weight_percentiles(model, settings.percentiles, settings.dead)
    whole = found.pop(ALL)
    return Finding(
        measures=(
            Measure(name="weights", value=whole.n),
            Measure(name="largest |weight|", value=whole.largest),
            Measure(name=share, value=whole.dead, share=True),
        ),
        views=(
            View(
                title="percentiles of all weights",
                x="percentile",
                y="weight",
                at=settings.percentiles,
                values=whole.percentiles,
                y_scale="symlog",
            ),
            View(
                title=share,
                x="layer",
                y="share of weights (%)",
                at=tuple(range(1, len(found) + 1)),
                values=tuple(100 * layer.dead for layer in found.values()),
                places=tuple(found),
                from_zero=True,
            ),
        ),
    )


def weight_percentiles(
    model: nn.Module, percentiles: Sequence[float] = PERCENTILES, dead: float = DEAD
) -> dict[str, Spread]:
    """The spread of every layer's weights by the layer's name, and of all of them (`all`).

    percentiles: in [0, 100], interpolated linearly in float64. Raises UsageError for other ones or
    a network without convolution and linear layer, FsbenchError for weights that are not finite.
    """
    if not all(0 <= p <= 100 for p in percentiles):
        raise UsageError(f"percentiles {tuple(percentiles)}", fix="give numbers from 0 to 100")
    values = {name: flat(name, weight) for name, weight in kernels(model).items()}
    if not values:
        raise UsageError(
            f"{type(model).__name__} has no convolution and no linear layer",
            fix="give a network with weights",
        )
    values[ALL] = np.concatenate(list(values.values()))
    return {name: spread(weights, percentiles, dead) for name, weights in values.items()}


def kernels(model: nn.Module) -> Mapping[str, Tensor]:
    """The effective weight of every convolution and linear layer, in the order of the modules."""
    return {n: m.weight.detach() for n, m in model.named_modules() if isinstance(m, KINDS)}


def flat(name: str, weight: Tensor) -> NDArray[np.floating]:
    """The values of a tensor in a copy of their own, float64 where they are, else float32."""
    dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
    values: NDArray[np.floating] = weight.to("cpu", dtype).flatten().numpy().copy()
    if not np.isfinite(values).all():
        raise FsbenchError(f"the weights of {name} are not finite", fix="look at an earlier epoch")
    return values


def spread(values: NDArray[np.floating], percentiles: Sequence[float], dead: float) -> Spread:
    """Of values (N,), which are reordered."""
    below = int(np.count_nonzero((values < dead) & (values > -dead)))
    found = order_statistics(values, np.asarray(percentiles, np.float64) / 100)
    lowest, highest = order_statistics(values, np.array([0.0, 1.0]))
    return Spread(len(values), tuple(found.tolist()), max(-lowest, highest), below / len(values))


def order_statistics(
    values: NDArray[np.floating], parts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Values at these parts (0 to 1) of the sorted order; they are partly sorted in place.

    Only the needed places are put in order and only they become float64, so a large network costs
    one copy of its weights.
    """
    at = parts * (len(values) - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, len(values) - 1)
    values.partition(np.union1d(low, high))
    a, b = values[low].astype(np.float64), values[high].astype(np.float64)
    found: NDArray[np.float64] = a + (at - low) * (b - a)
    return found
