"""Margins: by how much the network prefers the true class, on the training images it likes least.

"The Impact of Reinitialization", section 4 and Figure 4 (methods.md A9): the probability of the
true class less the largest other one, after the softmax, in [-1, 1]; drawn are the 400 smallest of
the training sample. Images are not augmented.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from fsbench.core.errors import CheckpointError
from fsbench.core.findings import Finding, Measure, View
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import Frozen
from protocols.analyses import Need
from protocols.analyses._subject import Subject

SOURCE = "reinitialization study, section 4, Figure 4"
NEEDS: tuple[Need, ...] = ("head", "images")


class Settings(Frozen):
    """smallest: margins that are kept; images: of train, null for all, as the paper has it."""

    smallest: int = Field(400, ge=1)
    images: int | None = Field(None, ge=1)
    batch_size: int = Field(256, ge=1)
    seed: int = Field(0, ge=0)


def margins(logits: Tensor, labels: Tensor) -> Tensor:
    """(N,) float64 in [-1, 1] of logits (N, C) and labels (N,)."""
    shares = logits.double().softmax(dim=1)
    true = shares.gather(1, labels[:, None])
    others = shares.scatter(1, labels[:, None], -1.0)
    return true[:, 0] - others.amax(dim=1)


def passes(subject: Subject, settings: Settings) -> int:
    return len(subject.chosen("train", settings.images, settings.seed))


@torch.no_grad()
def run(subject: Subject, settings: Settings, report: Reporter = SILENT) -> Finding:
    """Raises CheckpointError for a network whose logits are not finite."""
    model = subject.network.model
    images = subject.chosen("train", settings.images, settings.seed)
    parts = subject.batches(images, settings.batch_size, report, "margins")
    found = torch.cat([margins(model(x), y) for x, y in parts]).cpu()
    if not found.isfinite().all():
        raise CheckpointError(
            f"{subject.backbone.facts.ref} gives logits that are not finite",
            fix="check the run: its log shows where the loss went",
        )
    low = found.sort().values[: settings.smallest].tolist()
    return Finding(
        measures=(
            Measure(name="images", value=len(found)),
            Measure(name="smallest margin", value=low[0]),
            Measure(name=f"mean of the {len(low)} smallest", value=sum(low) / len(low)),
            Measure(name="wrong images", value=float((found < 0).double().mean()), share=True),
        ),
        views=(
            View(
                title=f"{settings.smallest} smallest margins on train",
                x="rank",
                y="margin",
                at=tuple(range(1, len(low) + 1)),
                values=tuple(low),
            ),
        ),
    )
