"""Margins: probability of the true class minus the largest other one, on training images.

Paper: The Impact of Reinitialization on Generalization in Convolutional Neural Networks.
I. Alabdulmohsin, H. Maennel, D. Keysers, 2021, section 4, Figure 4,
https://arxiv.org/abs/2109.00267

    margin(x, y) = p_y(x) - max over j != y of p_j(x),    p = softmax of the logits, in [-1, 1]

The figure shows the 400 smallest margins of the training images.

Unit: difference of probabilities. Differences: none known. Images are not augmented.
"""

import torch
from pydantic import Field
from torch import Tensor

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Finding, Measure, View
from protocols.analyses import Need
from protocols.analyses.inputs import AnalysisInput, ImageSettings

SOURCE = "reinitialization study, section 4, Figure 4"
NEEDS: tuple[Need, ...] = ("head", "images")


class MarginsSettings(ImageSettings):
    """Settings of the margins; smallest: number of margins to show."""

    smallest: int = Field(400, ge=1)


SETTINGS = MarginsSettings


def compute_margins(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the margins (N,) float64 of logits (N, C) and labels (N,)."""
    probabilities = logits.double().softmax(dim=1)
    true = probabilities.gather(1, labels[:, None])
    others = probabilities.scatter(1, labels[:, None], -1.0)
    return true[:, 0] - others.amax(dim=1)


@torch.no_grad()
def run(inputs: AnalysisInput, settings: MarginsSettings, report: Reporter = SILENT) -> Finding:
    """Measure the margins. Raises CheckpointError for a network with non-finite logits."""
    model = inputs.network.model
    (images,) = inputs.samples(settings)
    parts = inputs.batches(images, settings.batch_size, report, "margins")
    margins = torch.cat([compute_margins(model(x), y) for x, y in parts]).cpu()
    inputs.require_finite(margins, "logits")
    low = margins.sort().values[: settings.smallest].tolist()
    return Finding(
        measures=(
            Measure(name="images", value=len(margins)),
            Measure(name="smallest margin", value=low[0]),
            Measure(name=f"mean of the {len(low)} smallest", value=sum(low) / len(low)),
            Measure(name="wrong images", value=float((margins < 0).double().mean()), share=True),
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
