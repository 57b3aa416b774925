"""Balancedness: how near the weights of a network are to their smallest functional equals.

"Soft Weight Rescaling", appendix C (methods.md B6), and its official code; the smallest norm by
Saul 2023, "Weight-balancing fixes and flows for deep learning", Algorithm 1.

Under ReLU a hidden unit may have its incoming weights multiplied by a > 0 and its outgoing ones
divided by it: the network computes the same. With p = q = 2 the entry-wise norm is the Frobenius
norm of all weights together, and balancedness is

    min over a of |W(a)| / |W|        in (0, 1], 1: no rescaling is smaller

Every update multiplies all hidden units at once by

    a_i = (sum of squares of outgoing weights / that of incoming weights) ^ (1 / 8)

which lowers the norm monotonically to its global minimum. As in the official code biases do not
count. Linear layers only: a convolution's channels could be rescaled likewise, but neither the
paper nor its code measures them, so the linear layers after them are measured as a chain of their
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from pydantic import Field
from torch import Tensor

from fsbench.backbones import Classifier
from fsbench.core.errors import UsageError
from fsbench.core.findings import Finding, Measure, View
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import Frozen
from protocols.analyses import Need, NotApplicable
from protocols.analyses._subject import Subject

SOURCE = "Soft Weight Rescaling, appendix C; Saul 2023, Algorithm 1"
NEEDS: tuple[Need, ...] = ("head",)
TOLERANCE = 1e-5
"""Stop when no factor of an update is further from 1 (official code)."""
UPDATES = 100
"""Updates at most (official code)."""
EXPONENT = 1 / 8
"""Of the ratio of sums of squares: 1 / (4 max(p, q))."""


class Settings(Frozen):
    """Of the search for the smallest norm, as in the official code."""

    tolerance: float = Field(TOLERANCE, gt=0)
    updates: int = Field(UPDATES, ge=1)


def passes(subject: Subject, settings: Settings) -> int:
    return 0


def run(subject: Subject, settings: Settings, report: Reporter = SILENT) -> Finding:
    """Of the linear layers at the end, head included. Raises NotApplicable without two of them."""
    weights = chain(subject.network)
    found = balancedness(weights, settings.tolerance, settings.updates)
    return Finding(
        measures=(
            Measure(name="linear layers in a chain", value=len(weights)),
            Measure(name="balancedness", value=found),
        ),
        views=(View.bar("balancedness", found),),
    )


def chain(network: Classifier) -> list[Tensor]:
    """Weights of the fully-connected layers, which must feed each other without a norm between."""
    roles, linear = network.roles, network.roles.fully_connected
    between = roles.weighted[roles.weighted.index(linear[0]) :]
    if not roles.chain or len(linear) < 2 or between != linear:
        raise NotApplicable(
            f"{network.architecture} does not end in a plain chain of two linear layers or more,"
            " so no hidden unit can be rescaled",
            fix="leave balancedness out of --what; fsbench/mlp, cnn and vgg nets have such a chain",
        )
    return [network.model.get_submodule(name).get_parameter("weight") for name in linear]


def balancedness(
    weights: Sequence[Tensor], tolerance: float = TOLERANCE, updates: int = UPDATES
) -> float:
    """Smallest norm over current norm of a chain of linear weights (out, in), in (0, 1].

    In float64. Raises UsageError for weights that do not chain or are all zero.
    """
    squares = _squares(weights)
    now = sum(float(layer.sum()) for layer in squares)
    if now == 0:
        raise UsageError("all weights are zero, so their balancedness is undefined")
    least = _rescaled(squares, balancing(weights, tolerance, updates))
    return float((sum(float(layer.sum()) for layer in least) / now) ** 0.5)


def balancing(
    weights: Sequence[Tensor], tolerance: float = TOLERANCE, updates: int = UPDATES
) -> list[Tensor]:
    """Factors (units,) float64 of every hidden layer that give the chain its smallest norm.

    Layer l then has the weights a_l W_l / a_(l-1) and the bias a_l b_l. A unit without incoming or
    without outgoing weights keeps its own: its norm has no smallest value above zero. Raises
    UsageError for weights that do not chain.
    """
    squares = _squares(weights)
    found = [layer.new_ones(len(layer)) for layer in squares[:-1]]
    for _ in range(updates):
        steps = [_update(*pair) for pair in pairwise(squares)]
        squares = _rescaled(squares, steps)
        found = [a * step for a, step in zip(found, steps, strict=True)]
        if all(float((step - 1).abs().max()) < tolerance for step in steps):
            break
    return found


def _update(incoming: Tensor, outgoing: Tensor) -> Tensor:
    """One multiplicative update of the units between two layers of squared weights."""
    before, after = incoming.sum(dim=1), outgoing.sum(dim=0)
    alive = (before > 0) & (after > 0)
    return torch.where(alive, after / before, 1.0) ** EXPONENT


def _rescaled(squares: Sequence[Tensor], factors: Sequence[Tensor]) -> list[Tensor]:
    """Squared weights after multiplying hidden units by the factors."""
    one = squares[0].new_ones(1)
    sides = zip([*factors, one], [one, *factors], strict=True)
    return [
        layer * (out.square()[:, None] / into.square()[None, :])
        for layer, (out, into) in zip(squares, sides, strict=True)
    ]


def _squares(weights: Sequence[Tensor]) -> list[Tensor]:
    """Squared weights in float64. Raises UsageError when one layer does not feed the next."""
    shapes = [tuple(weight.shape) for weight in weights]
    flat = bool(shapes) and all(len(shape) == 2 for shape in shapes)
    if not flat or any(a[0] != b[1] for a, b in pairwise(shapes)):
        raise UsageError(
            f"weights of shapes {shapes} are no chain of linear layers",
            fix="give weights (out, in) in forward order, without convolutions",
        )
    return [weight.detach().double().square() for weight in weights]
