"""Dormant units: the share of units whose activity is next to nothing beside their layer's.

Sokar et al. 2023, "The Dormant Neuron Phenomenon in Deep Reinforcement Learning", definition 3.1:
the score of a unit is the mean of |activation| over inputs divided by the mean over the units of
its layer, and the unit is tau-dormant when the score is at most tau. A channel of a convolution is
one unit, its activity the mean over positions too (official code google/dopamine, weight
recyclers). tau: 0.025 and 0.1 in the paper; 0 counts units that are exactly silent.

A layer is every application of one of the functions in ACTIVATIONS, in forward order, however the
network writes it, so a residual unit has two. The head has none and is left out, as there. Images
are not augmented.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from pydantic import Field
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from fsbench.core.findings import Finding, Measure, View
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import Frozen
from protocols.analyses import Need, NotApplicable
from protocols.analyses._subject import Part, Subject

SOURCE = "Sokar et al. 2023, definition 3.1; code google/dopamine"
NEEDS: tuple[Need, ...] = ("images",)
ACTIVATIONS = frozenset(
    {"relu", "hardtanh", "leaky_relu", "elu", "gelu", "silu", "mish", "hardswish", "softplus"}
)
"""Names of torch's own operators; relu6 is a hardtanh."""
PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "linear"})


class Settings(Frozen):
    """tau: threshold of the score; images: random ones of `part`, the same for every network."""

    tau: float = Field(0.025, ge=0)
    part: Part = "train"
    images: int | None = Field(1024, ge=1)
    batch_size: int = Field(256, ge=1)
    seed: int = Field(0, ge=0)


def dormant(activity: Tensor, tau: float) -> Tensor:
    """(units,) bool from the mean |activation| (units,) of a layer; a silent layer is dormant."""
    return activity <= tau * activity.mean()


class Activity(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, sums |activation| of every unit over the inputs and positions of every layer.

    Channels are axis 1 behind a convolution and the last axis behind a matrix product.
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
        """One layer's activations (B, ...), as a mean over positions and a sum over images."""
        units = out.movedim(self.axis, -1)
        values = units.double().abs().flatten(1, -2) if units.ndim > 2 else units.double().abs()
        total = (values.mean(dim=1) if units.ndim > 2 else values).sum(dim=0)
        if self.layer == len(self.totals):
            self.totals.append(total)
        else:
            self.totals[self.layer] += total
        self.layer += 1


def passes(subject: Subject, settings: Settings) -> int:
    return len(subject.chosen(settings.part, settings.images, settings.seed))


@torch.no_grad()
def run(subject: Subject, settings: Settings, report: Reporter = SILENT) -> Finding:
    """Raises NotApplicable for a network without any of the known activations."""
    images = subject.chosen(settings.part, settings.images, settings.seed)
    totals: list[Tensor] = []
    for x, _ in subject.batches(images, settings.batch_size, report, "dormant units"):
        with Activity(totals):
            subject.backbone.module(x)
    if not totals:
        raise NotApplicable(
            f"{subject.backbone.facts.ref} uses none of {', '.join(sorted(ACTIVATIONS))}",
            fix="leave dormant out of --what",
        )
    found = [dormant(total, settings.tau) for total in totals]
    shares = [float(each.double().mean()) for each in found]
    units = sum(len(each) for each in found)
    share = sum(int(each.sum()) for each in found) / units
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
