"""Weight percentiles: distribution of the weights, the largest one and the share near zero.

Paper: Weight Compander: A Simple Weight Reparameterization for Regularization. R. Cakaj,
J. Mehnert, B. Yang, 2023, section IV-D, Figures 3 and 4, https://arxiv.org/abs/2306.16993

    percentile_p(w) for nine p;    max |w|;    share of weights with |w| < dead

The figures draw the percentiles of the first convolution per epoch, to show that large weights are
bounded and fewer weights stay at zero. Weights are the kernels of convolutions and linear layers as
the forward pass uses them (with a reparametrization: the effective ones); biases and norm layers do
not count.

Unit: that of the weights. Differences: the paper says "approximately 0" without a number; here
|w| < 0.01.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from fsbench.core.errors import FsbenchError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Finding, Measure, View
from protocols.analyses import Need, NotApplicable
from protocols.analyses.inputs import AnalysisInput, AnalysisSettings

SOURCE = "Weight Compander (Cakaj et al.), Figures 3 and 4"
NEEDS: tuple[Need, ...] = ()
PERCENTILES = (0.0, 7.0, 16.0, 31.0, 50.0, 69.0, 84.0, 93.0, 100.0)
"""Percentiles of the figures, minimum and maximum included."""
DEAD = 0.01
"""Weights with a smaller magnitude count as dead (the paper states no number)."""
ALL = "all"
"""Key of the whole network."""
KINDS = (_ConvNd, nn.Linear)


class WeightPercentilesSettings(AnalysisSettings):
    """Settings of the percentiles.

    percentiles: in [0, 100]; dead: weights with |w| below it count as near zero.
    """

    percentiles: tuple[Annotated[float, Field(ge=0, le=100)], ...] = Field(
        PERCENTILES, min_length=1
    )
    dead: float = Field(DEAD, gt=0)


SETTINGS = WeightPercentilesSettings


class WeightSpread(NamedTuple):
    """Number of weights, percentiles of w, max |w|, and share of |w| < threshold."""

    n: int
    percentiles: tuple[float, ...]
    largest: float
    dead: float


def run(
    inputs: AnalysisInput, settings: WeightPercentilesSettings, report: Reporter = SILENT
) -> Finding:
    """Measure the head-free backbone. Raises NotApplicable without convolution and linear layer."""
    model, share = inputs.backbone.module, f"weights near zero (|w| < {settings.dead:g})"
    layers = measure_percentiles(model, settings.percentiles, settings.dead)
    whole = layers.pop(ALL)
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
                at=tuple(range(1, len(layers) + 1)),
                values=tuple(100 * layer.dead for layer in layers.values()),
                places=tuple(layers),
                from_zero=True,
            ),
        ),
    )


def measure_percentiles(
    model: nn.Module, percentiles: Sequence[float] = PERCENTILES, dead: float = DEAD
) -> dict[str, WeightSpread]:
    """Return the spread of the effective weights by layer, in module order, and of `all`.

    percentiles: in [0, 100], interpolated linearly in float64. Raises NotApplicable for a network
    without convolution and linear layer, FsbenchError for weights that are not finite.
    """
    kernels = {n: m.weight.detach() for n, m in model.named_modules() if isinstance(m, KINDS)}
    if not kernels:
        raise NotApplicable(
            f"{type(model).__name__} has no convolution and no linear layer",
            fix="leave weight_percentiles out of --what",
        )
    values = {name: flatten_finite(name, weight) for name, weight in kernels.items()}
    values[ALL] = np.concatenate(list(values.values()))
    return {name: measure_spread(weights, percentiles, dead) for name, weights in values.items()}


def flatten_finite(name: str, weight: Tensor) -> NDArray[np.floating]:
    """Return a flat copy of a tensor, float64 if it is float64, else float32."""
    dtype = torch.float64 if weight.dtype == torch.float64 else torch.float32
    values: NDArray[np.floating] = weight.to("cpu", dtype).flatten().numpy().copy()
    if not np.isfinite(values).all():
        raise FsbenchError(
            f"the weights of {name} are not finite", fix="use the checkpoint of an earlier epoch"
        )
    return values


def measure_spread(
    values: NDArray[np.floating], percentiles: Sequence[float], dead: float
) -> WeightSpread:
    """Measure the spread of values (N,), which are reordered."""
    below = int(np.count_nonzero((values < dead) & (values > -dead)))
    quantiles = select_quantiles(values, np.asarray(percentiles, np.float64) / 100)
    lowest, highest = select_quantiles(values, np.array([0.0, 1.0]))
    return WeightSpread(
        len(values), tuple(quantiles.tolist()), max(-lowest, highest), below / len(values)
    )


def select_quantiles(
    values: NDArray[np.floating], parts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the values at these parts (0 to 1) of the sorted order; sorts partly in place.

    Only the needed positions are sorted and converted to float64, so a large network costs one copy
    of its weights.
    """
    at = parts * (len(values) - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, len(values) - 1)
    values.partition(np.union1d(low, high))
    a, b = values[low].astype(np.float64), values[high].astype(np.float64)
    quantiles: NDArray[np.float64] = a + (at - low) * (b - a)
    return quantiles
