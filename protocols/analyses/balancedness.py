"""Balancedness: smallest norm among functionally equal weights, relative to the current norm.

Paper: Recovering Plasticity of Neural Networks via Soft Weight Rescaling. S. Oh et al., 2025,
appendix C, https://arxiv.org/abs/2507.04683
Code:  https://github.com/CILAB-RL-TEAM/soft-weight-rescaling
Smallest norm: Weight-Balancing Fixes and Flows for Deep Learning. L. K. Saul, TMLR 2023,
Algorithm 1, https://openreview.net/forum?id=uaHyXxyp2r

    balancedness = min over a of |W(a)| / |W|        in (0, 1]; 1: no rescaling is smaller

W(a) are the weights after multiplying the incoming weights of every hidden unit i by a_i > 0 and
dividing its outgoing weights by a_i; with ReLU the network computes the same function. |.| is the
Frobenius norm of all weights together (the entry-wise norm with p = q = 2). The minimum is reached
by repeating, for all hidden units at once,

    a_i = (sum of squares of outgoing weights / sum of squares of incoming weights) ^ (1 / 8)

which lowers the norm monotonically to its global minimum. Beside it, the Lipschitz constant of the
chain is bounded (Corollary 2.1, for activations with the constant 1):

    |f(x) - f(y)| <= product of |W_l|_spectral |x - y| <= product of |W_l| |x - y|

Unit: none. Differences: none. As in the official code, biases do not count, and only linear layers
are measured: those at the end of the network, as a chain.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from fsbench.backbones import Classifier
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Finding, Measure, View
from protocols.analyses import Need, NotApplicable
from protocols.analyses.inputs import AnalysisInput, AnalysisSettings

SOURCE = "Soft Weight Rescaling, Corollary 2.1, appendix C; Saul 2023, Algorithm 1"
NEEDS: tuple[Need, ...] = ("head",)
TOLERANCE = 1e-5
"""Stop when every factor of an update is this close to 1 (official code)."""
UPDATES = 100
"""Largest number of updates (official code)."""
EXPONENT = 1 / 8
"""Exponent of the ratio of sums of squares: 1 / (4 max(p, q))."""


class BalancednessSettings(AnalysisSettings):
    """Settings of the search for the smallest norm, as in the official code."""

    tolerance: float = Field(TOLERANCE, gt=0)
    updates: int = Field(UPDATES, ge=1)


SETTINGS = BalancednessSettings


def run(
    inputs: AnalysisInput, settings: BalancednessSettings, report: Reporter = SILENT
) -> Finding:
    """Measure the linear layers at the end of the network, head included.

    Raises NotApplicable for fewer than two of them.
    """
    weights = collect_chain_weights(inputs.network)
    value = compute_balancedness(weights, settings.tolerance, settings.updates)
    return Finding(
        measures=(
            Measure(name="linear layers in a chain", value=len(weights)),
            Measure(name="balancedness", value=value),
            Measure(name="Lipschitz bound", value=bound_lipschitz(weights)),
            Measure(
                name="Lipschitz bound by Frobenius norms", value=bound_lipschitz(weights, "fro")
            ),
        ),
        views=(View.bar("balancedness", value),),
    )


def collect_chain_weights(network: Classifier) -> list[Tensor]:
    """Return the weights of the fully-connected layers at the end.

    Raises NotApplicable unless they feed each other without a norm layer in between.
    """
    roles, linear = network.roles, network.roles.fully_connected
    between = roles.weighted[roles.weighted.index(linear[0]) :]
    if not roles.chain or len(linear) < 2 or between != linear:
        raise NotApplicable(
            f"{network.architecture} does not end in a plain chain of two linear layers or more,"
            " so no hidden unit can be rescaled",
            fix="leave balancedness out of --what; fsbench/mlp, cnn and vgg nets have such a chain",
        )
    return [network.model.get_submodule(name).get_parameter("weight") for name in linear]


def bound_lipschitz(weights: Sequence[Tensor], norm: Literal[2, "fro"] = 2) -> float:
    """Return the product of spectral or Frobenius norms (float64) of linear weights (out, in)."""
    return math.prod(float(torch.linalg.matrix_norm(w.detach().double(), norm)) for w in weights)


def compute_balancedness(
    weights: Sequence[Tensor], tolerance: float = TOLERANCE, updates: int = UPDATES
) -> float:
    """Return smallest norm / current norm of a chain of linear weights (out, in), in (0, 1].

    Computed in float64. Raises UsageError for weights that do not chain or are all zero.
    """
    squares = _squares(weights)
    current = sum(float(layer.sum()) for layer in squares)
    if current == 0:
        raise UsageError("all weights are zero, so their balancedness is undefined")
    smallest = _rescale(squares, find_balancing_factors(weights, tolerance, updates))
    return float((sum(float(layer.sum()) for layer in smallest) / current) ** 0.5)


def find_balancing_factors(
    weights: Sequence[Tensor], tolerance: float = TOLERANCE, updates: int = UPDATES
) -> list[Tensor]:
    """Return the factors (units,) of every hidden layer that give the chain its smallest norm.

    Layer l then has the weights a_l W_l / a_(l-1) and the bias a_l b_l. A unit without incoming or
    without outgoing weights gets the factor 1, because its norm has no smallest value above zero.
    Raises UsageError for weights that do not chain.
    """
    squares = _squares(weights)
    factors = [layer.new_ones(len(layer)) for layer in squares[:-1]]
    for _ in range(updates):
        steps = [_update(*pair) for pair in pairwise(squares)]
        squares = _rescale(squares, steps)
        factors = [a * step for a, step in zip(factors, steps, strict=True)]
        if all(float((step - 1).abs().max()) < tolerance for step in steps):
            break
    return factors


def _update(incoming: Tensor, outgoing: Tensor) -> Tensor:
    """Return one update of the factors of the units between two layers of squared weights."""
    into, out = incoming.sum(dim=1), outgoing.sum(dim=0)
    connected = (into > 0) & (out > 0)
    return torch.where(connected, out / into, 1.0) ** EXPONENT


def _rescale(squares: Sequence[Tensor], factors: Sequence[Tensor]) -> list[Tensor]:
    """Return the squared weights after multiplying hidden units by the factors."""
    one = squares[0].new_ones(1)
    sides = zip([*factors, one], [one, *factors], strict=True)
    return [
        layer * (out.square()[:, None] / into.square()[None, :])
        for layer, (out, into) in zip(squares, sides, strict=True)
    ]


def _squares(weights: Sequence[Tensor]) -> list[Tensor]:
    """Return squared weights in float64. Raises UsageError unless each layer feeds the next."""
    shapes = [tuple(weight.shape) for weight in weights]
    flat = bool(shapes) and all(len(shape) == 2 for shape in shapes)
    if not flat or any(a[0] != b[1] for a, b in pairwise(shapes)):
        raise UsageError(
            f"weights of shapes {shapes} are not a chain of linear layers",
            fix="give weights (out, in) in forward order, without convolutions",
        )
    return [weight.detach().double().square() for weight in weights]
