"""Effective rank: the number of directions that the features of a backbone use.

Paper: The Effective Rank: A Measure of Effective Dimensionality. O. Roy, M. Vetterli, EUSIPCO 2007.

    p_i = sigma_i / sum of sigma,        effective rank = exp(- sum of p_i ln p_i)

sigma_i are the singular values of the feature matrix (N, D). The rank lies between 1 and min(N, D);
equal singular values give min(N, D).

Unit: number of directions. Differences: none. Features are the input of the head; `centred`
subtracts their mean first. Images are not augmented.
"""

import torch
from pydantic import Field
from torch import Tensor

from fsbench.core.errors import CheckpointError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Finding, Measure, View
from protocols.analyses import Need
from protocols.analyses.inputs import AnalysisInput, ImageSettings, SourcePart

SOURCE = "Roy and Vetterli 2007, The effective rank"
NEEDS: tuple[Need, ...] = ("images",)


class EffectiveRankSettings(ImageSettings):
    """Settings of the effective rank; more than D images, or their number bounds it."""

    part: SourcePart = "train"
    centred: bool = False
    images: int | None = Field(4096, ge=1)

    @property
    def parts(self) -> tuple[SourcePart, ...]:
        return (self.part,)


SETTINGS = EffectiveRankSettings


def compute_effective_rank(singular: Tensor) -> float:
    """Return the effective rank of singular values (r,), not all zero; zeros do not count."""
    shares = singular.double() / singular.double().sum()
    return float(torch.special.entr(shares).sum().exp())


@torch.no_grad()
def run(
    inputs: AnalysisInput, settings: EffectiveRankSettings, report: Reporter = SILENT
) -> Finding:
    """Measure the rank. Raises CheckpointError for features that are not finite or all zero."""
    (images,) = inputs.samples(settings)
    parts = inputs.batches(images, settings.batch_size, report, "effective rank")
    features = torch.cat([inputs.backbone.module(x).double().cpu() for x, _ in parts])
    if settings.centred:
        features -= features.mean(dim=0)
    if not features.isfinite().all() or not features.any():
        raise CheckpointError(
            f"{inputs.backbone.facts.ref} gives features that are not finite or all the same",
            fix="check the checkpoint: the network is damaged or not trained",
        )
    singular = torch.linalg.svdvals(features)
    rank, dim = compute_effective_rank(singular), features.shape[1]
    curve = (singular / singular[0]).tolist()
    positive = [(i, s) for i, s in enumerate(curve, start=1) if s > 0]
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
                at=tuple(float(i) for i, _ in positive),
                values=tuple(s for _, s in positive),
                log_x=True,
                y_scale="log",
            ),
        ),
    )
