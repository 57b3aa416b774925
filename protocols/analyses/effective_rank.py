"""Effective rank: how many directions the features of a backbone use.

Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality": the exponential
of the entropy (natural logarithm) of the singular values of the feature matrix (N, D) divided by
their sum. It lies between 1 and min(N, D); equal singular values give min(N, D). Features are those
of fsbench.backbones, the head's input, as they are; `centred` takes their mean away first. Images
are not augmented.
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
from protocols.analyses._subject import Part, Subject

SOURCE = "Roy and Vetterli 2007, The effective rank"
NEEDS: tuple[Need, ...] = ("images",)


class Settings(Frozen):
    """images: random ones of `part`; more than D are needed for the rank to be about features."""

    part: Part = "train"
    centred: bool = False
    images: int | None = Field(4096, ge=1)
    batch_size: int = Field(256, ge=1)
    seed: int = Field(0, ge=0)


def effective_rank(singular: Tensor) -> float:
    """Of singular values (r,), not all zero; zeros among them count nothing."""
    shares = singular.double() / singular.double().sum()
    return float(torch.special.entr(shares).sum().exp())


def passes(subject: Subject, settings: Settings) -> int:
    return len(subject.chosen(settings.part, settings.images, settings.seed))


@torch.no_grad()
def run(subject: Subject, settings: Settings, report: Reporter = SILENT) -> Finding:
    """Raises CheckpointError for features that are not finite or all zero."""
    images = subject.chosen(settings.part, settings.images, settings.seed)
    parts = subject.batches(images, settings.batch_size, report, "effective rank")
    features = torch.cat([subject.backbone.module(x).double().cpu() for x, _ in parts])
    if settings.centred:
        features -= features.mean(dim=0)
    if not features.isfinite().all() or not features.any():
        raise CheckpointError(
            f"{subject.backbone.facts.ref} gives features that are not finite or all the same",
            fix="check the checkpoint: the network is damaged or not trained",
        )
    singular = torch.linalg.svdvals(features)
    rank, dim = effective_rank(singular), features.shape[1]
    curve = (singular / singular[0]).tolist()
    kept = [(i, s) for i, s in enumerate(curve, start=1) if s > 0]
    return Finding(
        measures=(
            Measure(name="images", value=len(features)),
            Measure(name="features", value=dim),
            Measure(name="effective rank", value=rank),
            Measure(name="effective rank / features", value=rank / dim, share=True),
        ),
        views=(
            View(
                title="singular values of the features",
                x="index",
                y="singular value / largest",
                at=tuple(float(i) for i, _ in kept),
                values=tuple(s for _, s in kept),
                log_x=True,
                y_scale="log",
            ),
        ),
    )
