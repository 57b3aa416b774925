"""Inputs of an analysis: a backbone, its source classifier, and images of the source."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from fsbench.backbones import Backbone, Classifier
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.seeding import Name, permutations
from fsbench.core.specs import Frozen
from fsbench.data import SourceDataset, Split
from fsbench.data.augmentation import Augmentation, augment

SourcePart = Literal["train", "val"]


class AnalysisSettings(Frozen):
    """Base of the settings of an analysis that needs no images."""

    def count_passes(self, inputs: "AnalysisInput") -> int:
        """Return the number of images times forward passes."""
        return 0


class ImageSettings(AnalysisSettings):
    """Base of the settings of an analysis of images.

    images: most images of a part, random and the same for every network; null for all.
    """

    images: int | None = Field(None, ge=1)
    batch_size: int = Field(256, ge=1)
    seed: int = Field(0, ge=0)

    @property
    def parts(self) -> tuple[SourcePart, ...]:
        """The parts of the source that are sampled."""
        return ("train",)

    def count_passes(self, inputs: "AnalysisInput") -> int:
        return sum(map(len, inputs.samples(self)))


@dataclass(frozen=True, eq=False)
class AnalysisInput:
    """A backbone, and the network with its head and the source images where an analysis needs them.

    backbone: head-free, frozen, on `device`; classifier: the same network with its head, for a run
    of fsbench; source: pretraining data. Both networks have the same weights, mean and std.
    """

    backbone: Backbone
    classifier: Classifier | None = None
    source: SourceDataset | None = None
    device: str = "cpu"

    @property
    def network(self) -> Classifier:
        """The classifier. Raises UsageError for a backbone without a head."""
        if self.classifier is None:
            raise UsageError(
                f"{self.backbone.facts.ref} has no source classifier", fix="pass a run as run:DIR"
            )
        return self.classifier

    def split(self, part: SourcePart) -> Split:
        """Return a part of the source. Raises UsageError without a source."""
        if self.source is None:
            raise UsageError(
                f"no images for {self.backbone.facts.ref}", fix="name a source with --source"
            )
        return self.source.train if part == "train" else self.source.val

    def samples(self, settings: ImageSettings) -> list[Split]:
        """Return the sampled images of every part that the settings name, in their order."""
        return [self.sample(part, settings.images, settings.seed) for part in settings.parts]

    def sample(self, part: SourcePart, n: int | None, seed: int) -> Split:
        """Sample n images of a part, the same for every network, in their order; None: all."""
        images = self.split(part)
        if n is None or n >= len(images):
            return images
        index = np.sort(permutations(1, len(images), "analysis", part, seed)[0][:n])
        return images.take(index)

    def require_finite(self, values: Tensor, what: str) -> None:
        """Raise CheckpointError unless all values are finite."""
        if not values.isfinite().all():
            raise CheckpointError(
                f"{self.backbone.facts.ref} gives {what} that are not finite",
                fix="check the run: its log shows where the loss went",
            )

    def batches(
        self,
        images: Split,
        size: int,
        report: Reporter = SILENT,
        what: str = "",
        augmentation: Augmentation = "none",
        names: tuple[Name, ...] = (),
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield normalised images (B, 3, s, s) and labels (B,) on the device.

        augmentation: applied to every batch, with the random stream `names`.
        """
        with report.task(f"{what} {self.backbone.facts.ref}", len(images), "images") as advance:
            for start in range(0, len(images), size):
                part = slice(start, start + size)
                pixels = torch.from_numpy(np.array(images.images[part])).to(self.device)
                pixels = augment(pixels, augmentation, (*names, "augmentation", start))
                unit = pixels / 255 if pixels.is_floating_point() else pixels
                labels = torch.from_numpy(np.array(images.labels[part])).to(self.device)
                yield self.backbone.normalised(unit), labels
                advance(len(labels))
