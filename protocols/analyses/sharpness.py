"""Sharpness: increase of the training loss when Gaussian noise is added to the weights.

Paper: The Impact of Reinitialization on Generalization in Convolutional Neural Networks.
I. Alabdulmohsin, H. Maennel, D. Keysers, 2021, section 4, Figure 5,
https://arxiv.org/abs/2109.00267

    sharpness(sigma) = mean over draws of L(w + sigma z) - L(w),    z ~ N(0, I)

The noise is added to every parameter, those of norm layers included; batch norm stays in eval mode
with its statistics. L is plain cross-entropy on training images without augmentation.

Unit: nats. Differences: the paper states neither the sigmas nor the number of draws. All sigmas of
a draw scale the same noise; the weights are restored exactly.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, NamedTuple

import torch
from pydantic import Field
from torch import nn
from torch.nn.functional import cross_entropy

from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Finding, Measure, View
from fsbench.core.seeding import Name, torch_generator
from fsbench.data import Split
from protocols.analyses import Need
from protocols.analyses.inputs import AnalysisInput, ImageSettings

SOURCE = "reinitialization study, section 4, Figure 5"
NEEDS: tuple[Need, ...] = ("head", "images")


class SharpnessSettings(ImageSettings):
    """Settings of the sharpness; draws: noise vectors, each used at every sigma."""

    sigmas: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        (0.001, 0.002, 0.005, 0.01, 0.02, 0.05), min_length=1
    )
    draws: int = Field(3, ge=1)
    images: int | None = Field(1000, ge=1)

    @property
    def evaluations(self) -> int:
        """Number of losses that are measured."""
        return 1 + self.draws * len(self.sigmas)

    def count_passes(self, inputs: AnalysisInput) -> int:
        return self.evaluations * super().count_passes(inputs)


SETTINGS = SharpnessSettings


class LossAndAccuracy(NamedTuple):
    """Mean cross-entropy, possibly infinite or NaN, and accuracy as a fraction."""

    loss: float
    accuracy: float


@contextmanager
def add_noise(model: nn.Module, sigma: float, *names: Name) -> Iterator[None]:
    """Add noise from the stream `names` to every parameter, and restore it on exit."""
    parameters = list(model.parameters())
    originals = [parameter.detach().clone() for parameter in parameters]
    generator = torch_generator(*names)
    try:
        with torch.no_grad():
            for parameter in parameters:
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.add_(noise.to(parameter), alpha=sigma)
        yield
    finally:
        with torch.no_grad():
            for parameter, original in zip(parameters, originals, strict=True):
                parameter.copy_(original)


@torch.no_grad()
def measure_loss(inputs: AnalysisInput, images: Split, batch_size: int) -> LossAndAccuracy:
    """Measure loss and accuracy of the network with its current weights."""
    loss, correct = 0.0, 0
    for x, y in inputs.batches(images, batch_size):
        logits = inputs.network.model(x).double()
        loss += float(cross_entropy(logits, y, reduction="sum"))
        correct += int(((logits.argmax(dim=1) == y) & logits.isfinite().all(dim=1)).sum())
    return LossAndAccuracy(loss / len(images), correct / len(images))


def run(inputs: AnalysisInput, settings: SharpnessSettings, report: Reporter = SILENT) -> Finding:
    """Sweep sigma; draws without a finite loss are counted and left out of the figure.

    Raises CheckpointError if the loss without noise is not finite.
    """
    (images,) = inputs.samples(settings)
    model, rows = inputs.network.model, []
    what = f"sharpness {inputs.backbone.facts.ref}"
    with report.task(what, settings.evaluations, "noises") as advance:
        clean = measure_loss(inputs, images, settings.batch_size)
        inputs.require_finite(torch.tensor(clean.loss), "losses")
        advance(1)
        for sigma in settings.sigmas:
            row = []
            for draw in range(settings.draws):
                with add_noise(model, sigma, "sharpness", settings.seed, draw):
                    row.append(measure_loss(inputs, images, settings.batch_size))
                advance(1)
            rows.append(row)
    return summarize_noise(settings, clean, rows, len(images))


def summarize_noise(
    settings: SharpnessSettings,
    clean: LossAndAccuracy,
    rows: Sequence[Sequence[LossAndAccuracy]],
    images: int,
) -> Finding:
    """Build the finding from the scores (sigmas, draws)."""
    table = torch.tensor(rows, dtype=torch.float64)
    losses, accuracies = table[..., 0] - clean.loss, 100 * table[..., 1]
    finite = losses.isfinite()
    complete = finite.all(dim=1)
    at = [s for s, whole in zip(settings.sigmas, complete.tolist(), strict=True) if whole]
    increases = [
        Measure(name=f"loss increase at sigma {s:g}", value=float(row.mean()))
        for s, row in zip(at, losses[complete], strict=True)
    ]
    return Finding(
        measures=(
            Measure(name="images", value=images),
            Measure(name="train loss", value=clean.loss),
            Measure(name="train accuracy", value=clean.accuracy, share=True),
            *increases,
            Measure(name="draws without a finite loss", value=int((~finite).sum())),
        ),
        views=(
            summarize_draws("train loss under noise", "increase of the loss", at, losses[complete]),
            summarize_draws(
                "train accuracy under noise", "accuracy (%)", list(settings.sigmas), accuracies
            ),
        ),
    )


def summarize_draws(title: str, y: str, at: list[float], table: torch.Tensor) -> View:
    """Build the view of the mean and the range over the draws of a table (sigmas, draws)."""
    return View(
        title=title,
        x="sigma of the noise",
        y=y,
        at=tuple(at),
        values=tuple(table.mean(dim=1).tolist()),
        low=tuple(row.min().item() for row in table),
        high=tuple(row.max().item() for row in table),
        log_x=True,
    )
