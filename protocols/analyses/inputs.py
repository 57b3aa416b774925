"""Inputs of an analysis: a backbone, its source classifier, and images of the source."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from fsbench.backbones import Backbone, Classifier
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.seeding import Name, permutations
from fsbench.data import SourceDataset, Split
from fsbench.data.augmentation import Augmentation, augment

SourcePart = Literal["train", "val"]


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

    def sample(self, part: SourcePart, n: int | None, seed: int) -> Split:
        """Sample n images of a part, the same for every network, in their order; None: all."""
        images = self.split(part)
        if n is None or n >= len(images):
            return images
        index = np.sort(permutations(1, len(images), "analysis", part, seed)[0][:n])
        return Split(images.images[index], images.labels[index])

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
