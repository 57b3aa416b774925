"""k-NN depth: accuracy of a k-NN probe behind every block, and prediction depth.

Paper: Simulated Annealing in Early Layers Leads to Better Generalization (SEAL). A. M. Sarfi et
al., CVPR 2023, section 5, Figures 2 and 3, https://arxiv.org/abs/2304.04858
Depth: Deep Learning Through the Lens of Example Difficulty. R. Baldock, H. Maennel, B. Neyshabur,
NeurIPS 2021 (there K = 30).

    probe_b(x) = majority label of the K training images nearest to x in the features behind block b
    depth(x)   = smallest b such that probes b+1, b+2, ... all give the network's prediction

The reference are all training images, the query all validation images. In a tied vote the smallest
label wins, as in scikit-learn. Neither paper publishes code, so open choices are settings:

| setting | SEAL       | here                                                             |
|---------|------------|------------------------------------------------------------------|
| k       | 5          | 5                                                                |
| pooling | not stated | average over positions; `flatten` as in public reimplementations |
| metric  | not stated | euclidean; `cosine`                                              |

Units: fraction of images, number of blocks. Differences: none known. Images are not augmented.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from fsbench.backbones import Classifier
from fsbench.backbones.architectures import record_outputs
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Advance, Reporter
from fsbench.core.schema import Finding, Measure, View
from fsbench.data import Split
from protocols.analyses import Need
from protocols.analyses.inputs import AnalysisInput, ImageSettings, SourcePart

SOURCE = "SEAL (CVPR 2023), section 5, Figures 2 and 3; Baldock et al. 2021"
NEEDS: tuple[Need, ...] = ("head", "images")


class KnnDepthSettings(ImageSettings):
    """Settings of the k-NN probes.

    k: neighbours; memory: bytes of query features at a time, which does not change the result.
    """

    k: int = Field(5, ge=1)
    pooling: Literal["average", "flatten"] = "average"
    metric: Literal["euclidean", "cosine"] = "euclidean"
    memory: int = Field(2**30, ge=1)

    @property
    def parts(self) -> tuple[SourcePart, ...]:
        """Parts of the source for the reference and the query."""
        return ("train", "val")


SETTINGS = KnnDepthSettings


@dataclass(frozen=True, eq=False)
class KnnDepth:
    """Labels of N query images by k-NN probes behind K blocks.

    blocks: last module of each block; probes (K, N): labels of the probes; predicted (N,): labels
    of the network; labels (N,): true labels.
    """

    blocks: tuple[str, ...]
    probes: NDArray[np.int64]
    predicted: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """Fraction of correctly labelled query images per probe (K,)."""
        fractions: NDArray[np.float64] = (self.probes == self.labels).mean(axis=1)
        return fractions

    @property
    def depths(self) -> NDArray[np.int64]:
        """Prediction depth per query image (N,), from 0 (all probes agree) to K."""
        agree = (self.probes == self.predicted)[::-1]
        depths: NDArray[np.int64] = len(agree) - np.logical_and.accumulate(agree).sum(axis=0)
        return depths


def run(inputs: AnalysisInput, settings: KnnDepthSettings, report: Reporter = SILENT) -> Finding:
    """Probe the network. Raises UsageError for fewer training images than neighbours."""
    reference, query = inputs.samples(settings)
    result = probe_blocks(inputs.network, reference, query, settings, report)
    depths = np.bincount(result.depths, minlength=len(result.blocks) + 1) / len(query)
    return Finding(
        measures=(
            Measure(name="reference images", value=len(reference)),
            Measure(name="query images", value=len(query)),
            Measure(name="mean prediction depth (blocks)", value=float(result.depths.mean())),
            *(
                Measure(name=f"accuracy behind block {i} ({block})", value=a, share=True)
                for i, (block, a) in enumerate(
                    zip(result.blocks, result.accuracies.tolist(), strict=True), start=1
                )
            ),
        ),
        views=(
            View(
                title=f"k-NN probe (K = {settings.k})",
                x="block",
                y="accuracy (%)",
                at=tuple(range(1, len(result.blocks) + 1)),
                values=tuple((100 * result.accuracies).tolist()),
                places=result.blocks,
            ),
            View(
                title="prediction depth",
                x="blocks before all probes agree",
                y="share of images (%)",
                at=tuple(range(len(depths))),
                values=tuple((100 * depths).tolist()),
                from_zero=True,
            ),
        ),
    )


def probe_blocks(
    network: Classifier,
    reference: Split,
    query: Split,
    spec: KnnDepthSettings | None = None,
    report: Reporter = SILENT,
) -> KnnDepth:
    """Probe every block of `network` (fsbench.backbones.load_classifier) on its device.

    Memory: `spec.memory`, two batches, and k neighbours per query image and block; the reference is
    read once for every part of the query that fits. Raises UsageError for fewer than k images.
    """
    spec = spec or KnnDepthSettings()
    if len(reference) < spec.k:
        raise UsageError(
            f"k = {spec.k} neighbours need as many reference images; there are {len(reference)}",
            fix="give more images, or a smaller k",
        )
    probe = BlockProbe(network, spec)
    bytes_of_one = sum(feature.nbytes for feature in probe.features(query.images[:1])[0])
    parts = list(split_batches(query, max(1, spec.memory // bytes_of_one)))
    what, total = f"k-NN probe {network.facts.ref}", len(query) + len(parts) * len(reference)
    with report.task(what, total, "images") as advance:
        labels = [probe.label(reference, part, advance) for part in parts]
    probes, predicted = (torch.cat(row, dim=-1).cpu().numpy() for row in zip(*labels, strict=True))
    return KnnDepth(probe.blocks, probes, predicted, query.labels)


class BlockProbe:
    """A network whose features behind every block are labelled by k-NN."""

    def __init__(self, network: Classifier, spec: KnnDepthSettings) -> None:
        self.model, self.spec, self.facts = network.model, spec, network.facts
        self.blocks = tuple(block[-1] for block in network.roles.blocks)
        self.device = next(network.model.parameters()).device
        self.channels_last = getattr(network.model, "output_fmt", "") == "NHWC"  # Swin, in timm

    def label(self, reference: Split, query: Split, advance: Advance) -> tuple[Tensor, Tensor]:
        """Return the labels (K, N) of the probes and (N,) of the network."""
        batches = [self.features(b.images) for b in split_batches(query, self.spec.batch_size)]
        blocks = [torch.cat(features) for features in zip(*(f for f, _ in batches), strict=True)]
        neighbours = [NearestNeighbours(features, self.spec.k) for features in blocks]
        advance(len(query))
        for batch in split_batches(reference, self.spec.batch_size):
            labels = torch.from_numpy(np.array(batch.labels)).to(self.device)
            for nearest, features in zip(neighbours, self.features(batch.images)[0], strict=True):
                nearest.update(features, labels)
            advance(len(batch))
        votes = torch.stack([nearest.vote() for nearest in neighbours])
        return votes, torch.cat([predicted for _, predicted in batches])

    @torch.no_grad()
    def features(self, images: NDArray[np.uint8]) -> tuple[list[Tensor], Tensor]:
        """Return features (B, D) float32 behind every block, and the network's labels (B,)."""
        x = torch.from_numpy(np.array(images)).to(self.device).float() / 255
        mean, std = (x.new_tensor(v).view(1, 3, 1, 1) for v in (self.facts.mean, self.facts.std))
        with record_outputs(self.model, self.blocks, self.pool) as by_block:
            logits: Tensor = self.model((x - mean) / std)
        return [by_block[name] for name in self.blocks], logits.argmax(dim=1)

    def pool(self, output: Tensor) -> Tensor:
        """Pool maps (B, C, ...) or (B, ..., C), or tokens (B, n, C), to (B, D).

        The result is a copy, because later layers work in place.
        """
        channels_last = output.ndim == 3 or (output.ndim == 4 and self.channels_last)
        maps = output.movedim(-1, 1) if channels_last else output
        values = maps.float().flatten(2) if maps.ndim > 2 else maps.float()[..., None]
        pooled = values.mean(dim=2) if self.spec.pooling == "average" else values.flatten(1).clone()
        return nn.functional.normalize(pooled) if self.spec.metric == "cosine" else pooled


class NearestNeighbours:
    """The k nearest of the reference images so far, for every query image."""

    def __init__(self, query: Tensor, k: int) -> None:
        self.shift = query.mean(dim=0)
        """Subtracted from all features: distances stay the same and lose fewer digits."""
        self.query, self.k = query.sub_(self.shift), k
        self.distances = query.new_empty(len(query), 0)
        self.labels = torch.empty(len(query), 0, dtype=torch.int64, device=query.device)

    def update(self, features: Tensor, labels: Tensor) -> None:
        """Add reference images (B, D) with labels (B,)."""
        features = features - self.shift
        squares = features.square().sum(dim=1)  # that of the query image changes no order
        new = torch.addmm(squares[None], self.query, features.mT, alpha=-2)
        distances = torch.cat([self.distances, new], dim=1)
        candidates = torch.cat([self.labels, labels.expand(len(self.query), -1)], dim=1)
        k = min(self.k, distances.shape[1])
        self.distances, index = distances.topk(k, dim=1, largest=False)
        self.labels = candidates.gather(1, index)

    def vote(self) -> Tensor:
        """Return the most frequent label (N,), the smallest one in a tie."""
        votes = (self.labels[:, :, None] == self.labels[:, None, :]).sum(dim=2)
        beaten = votes < votes.amax(dim=1, keepdim=True)
        return self.labels.masked_fill(beaten, torch.iinfo(torch.int64).max).amin(dim=1)


def split_batches(images: Split, size: int) -> Iterator[Split]:
    """Yield parts of `size` images, in order."""
    for start in range(0, len(images), size):
        yield images.take(slice(start, start + size))
