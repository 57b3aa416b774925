"""Dormant units: share of units whose activity is small compared with the mean of their layer.

Paper: The Dormant Neuron Phenomenon in Deep Reinforcement Learning. G. Sokar, R. Agarwal,
P. S. Castro, U. Evci, ICML 2023, definition 3.1, https://arxiv.org/abs/2302.12902
Code:  https://github.com/google/dopamine, weight recyclers

    score of unit i = mean over inputs of |h_i| / mean over the units of its layer of the same
    unit i is tau-dormant if its score <= tau        (tau: 0.025 and 0.1 in the paper)

h_i is the activation; tau = 0 counts units that are exactly silent. A channel of a convolution is
one unit, averaged over positions too. A layer is every application of one of ACTIVATIONS, in
forward order, so a residual block has two; the head has none and does not count.

Unit: fraction of units. Differences: images of the pretraining source, without augmentation,
instead of observations of an agent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Finding, Measure, View
from protocols.analyses import Need, NotApplicable
from protocols.analyses.inputs import AnalysisInput, ImageSettings, SourcePart

SOURCE = "Sokar et al. 2023, definition 3.1; code google/dopamine"
NEEDS: tuple[Need, ...] = ("images",)
ACTIVATIONS = frozenset(
    {"relu", "hardtanh", "leaky_relu", "elu", "gelu", "silu", "mish", "hardswish", "softplus"}
)
"""Names of torch operators; relu6 is a hardtanh."""
PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "linear"})


class DormantSettings(ImageSettings):
    """Settings of the share of dormant units; tau: threshold of the score."""

    tau: float = Field(0.025, ge=0)
    part: SourcePart = "train"
    images: int | None = Field(1024, ge=1)

    @property
    def parts(self) -> tuple[SourcePart, ...]:
        return (self.part,)


SETTINGS = DormantSettings


def is_dormant(activity: Tensor, tau: float) -> Tensor:
    """Return which units (units,) of a layer are dormant, given their mean |activation|.

    A silent layer is dormant.
    """
    return activity <= tau * activity.mean()


class ActivitySums(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sums of |activation| over inputs and positions, for every unit of every layer.

    Collected while the mode is active. Channels are axis 1 after a convolution and the last axis
    after a matrix product.
    """

    def __init__(self, totals: list[Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.totals, self.layer, self.axis = totals, 0, 1

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        name = str(getattr(func, "overloadpacket", func)).rpartition(".")[2].rstrip("_")
        if name == "convolution":
            self.axis = 1
        elif name in PRODUCTS:
            self.axis = -1
        elif name in ACTIVATIONS:
            self.add(out)
        return out

    def add(self, out: Tensor) -> None:
        """Add one layer's activations (B, ...): mean over positions, sum over images."""
        units = out.movedim(self.axis, -1)
        values = units.double().abs().flatten(1, -2) if units.ndim > 2 else units.double().abs()
        total = (values.mean(dim=1) if units.ndim > 2 else values).sum(dim=0)
        if self.layer == len(self.totals):
            self.totals.append(total)
        else:
            self.totals[self.layer] += total
        self.layer += 1


@torch.no_grad()
def run(inputs: AnalysisInput, settings: DormantSettings, report: Reporter = SILENT) -> Finding:
    """Measure the shares by layer. Raises NotApplicable for a network without ACTIVATIONS."""
    (images,) = inputs.samples(settings)
    totals: list[Tensor] = []
    for x, _ in inputs.batches(images, settings.batch_size, report, "dormant units"):
        with ActivitySums(totals):
            inputs.backbone.module(x)
    if not totals:
        raise NotApplicable(
            f"{inputs.backbone.facts.ref} uses none of {', '.join(sorted(ACTIVATIONS))}",
            fix="leave dormant out of --what",
        )
    layers = [is_dormant(total, settings.tau) for total in totals]
    shares = [float(layer.double().mean()) for layer in layers]
    units = sum(len(layer) for layer in layers)
    share = sum(int(layer.sum()) for layer in layers) / units
    return Finding(
        measures=(
            Measure(name="images", value=len(images)),
            Measure(name="units", value=units),
            Measure(name=f"dormant units (tau {settings.tau:g})", value=share, share=True),
            Measure(name="dormant units, worst layer", value=max(shares), share=True),
        ),
        views=(
            View(
                title=f"dormant units (tau {settings.tau:g})",
                x="activation layer",
                y="share of units (%)",
                at=tuple(range(1, len(shares) + 1)),
                values=tuple(100 * s for s in shares),
                from_zero=True,
            ),
        ),
    )
