"""Sharpness: how much worse the network gets when Gaussian noise is added to its weights.

"The Impact of Reinitialization", section 4 and Figure 5 (methods.md A9): the change of the training
loss under w + N(0, sigma^2 I), swept over sigma. The noise goes to every parameter, those of
normalisation layers included; BatchNorm stays in eval mode with its statistics. The loss is plain
cross-entropy on training images without augmentation. The paper gives neither the sigmas nor the
number of draws. All sigmas of a draw scale the same noise; the weights are put back bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, NamedTuple

import torch
from pydantic import Field
from torch import nn
from torch.nn.functional import cross_entropy

from fsbench.core.errors import CheckpointError
from fsbench.core.findings import Finding, Measure, View
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.seeding import Name, torch_generator
from fsbench.core.specs import Frozen
from fsbench.data import Split
from protocols.analyses import Need
from protocols.analyses._subject import Subject

SOURCE = "reinitialization study, section 4, Figure 5"
NEEDS: tuple[Need, ...] = ("head", "images")


class Settings(Frozen):
    """draws: noises, each used at every sigma; images: random ones of train, for all networks."""

    sigmas: tuple[Annotated[float, Field(gt=0)], ...] = Field(
        (0.001, 0.002, 0.005, 0.01, 0.02, 0.05), min_length=1
    )
    draws: int = Field(3, ge=1)
    images: int | None = Field(1000, ge=1)
    batch_size: int = Field(256, ge=1)
    seed: int = Field(0, ge=0)


class Score(NamedTuple):
    """loss: mean cross-entropy, maybe infinite or NaN; accuracy: a fraction."""

    loss: float
    accuracy: float


@contextmanager
def noised(model: nn.Module, sigma: float, *names: Name) -> Iterator[None]:
    """Inside, every parameter has noise of the stream `names`; afterwards it is what it was."""
    parameters = list(model.parameters())
    kept = [parameter.detach().clone() for parameter in parameters]
    generator = torch_generator(*names)
    try:
        with torch.no_grad():
            for parameter in parameters:
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.add_(noise.to(parameter), alpha=sigma)
        yield
    finally:
        with torch.no_grad():
            for parameter, old in zip(parameters, kept, strict=True):
                parameter.copy_(old)


@torch.no_grad()
def score(subject: Subject, images: Split, batch_size: int) -> Score:
    """Of the network as it is."""
    loss, right = 0.0, 0
    for x, y in subject.batches(images, batch_size):
        logits = subject.network.model(x).double()
        loss += float(cross_entropy(logits, y, reduction="sum"))
        right += int(((logits.argmax(dim=1) == y) & logits.isfinite().all(dim=1)).sum())
    return Score(loss / len(images), right / len(images))


def passes(subject: Subject, settings: Settings) -> int:
    evaluations = 1 + settings.draws * len(settings.sigmas)
    return evaluations * len(subject.chosen("train", settings.images, settings.seed))


def run(subject: Subject, settings: Settings, report: Reporter = SILENT) -> Finding:
    """Sigmas at which a draw has no finite loss are counted and left out of the picture."""
    images = subject.chosen("train", settings.images, settings.seed)
    model, rows = subject.network.model, []
    steps = 1 + settings.draws * len(settings.sigmas)
    with report.task(f"sharpness {subject.backbone.facts.ref}", steps, "noises") as advance:
        clean = score(subject, images, settings.batch_size)
        advance(1)
        for sigma in settings.sigmas:
            row = []
            for draw in range(settings.draws):
                with noised(model, sigma, "sharpness", settings.seed, draw):
                    row.append(score(subject, images, settings.batch_size))
                advance(1)
            rows.append(row)
    return finding(settings, clean, rows, len(images), subject.backbone.facts.ref)


def finding(
    settings: Settings, clean: Score, rows: Sequence[Sequence[Score]], images: int, ref: str
) -> Finding:
    """Numbers and curves from the scores (sigmas, draws). Raises CheckpointError."""
    if not torch.tensor(clean.loss).isfinite():
        raise CheckpointError(
            f"{ref} has no finite loss", fix="check the run: its log shows where the loss went"
        )
    table = torch.tensor(rows, dtype=torch.float64)
    losses, accuracies = table[..., 0] - clean.loss, 100 * table[..., 1]
    finite = losses.isfinite()
    drawn = finite.all(dim=1)
    at = [s for s, whole in zip(settings.sigmas, drawn.tolist(), strict=True) if whole]
    increases = [
        Measure(name=f"loss increase at sigma {s:g}", value=float(row.mean()))
        for s, row in zip(at, losses[drawn], strict=True)
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
            view("train loss under noise", "increase of the loss", at, losses[drawn]),
            view("train accuracy under noise", "accuracy (%)", list(settings.sigmas), accuracies),
        ),
    )


def view(title: str, y: str, at: list[float], table: torch.Tensor) -> View:
    """Mean and range over the draws of a table (sigmas, draws)."""
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
