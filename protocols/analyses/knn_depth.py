"""How early a network knows its answer: a k-NN probe behind every block, and prediction depth.

SEAL, section 5 and Figures 2, 3: K = 5, all training images as the reference, every test image as
the query, at the output of every residual unit (protocol.md 5). Definition
of the depth: Baldock et al. 2021, "Deep learning through the lens of example difficulty" (K = 30),
as SEAL's section 2 gives it. Neither has code, so what is left open is a field here:

| field   | SEAL     | here                                                                |
|---------|----------|---------------------------------------------------------------------|
| k       | 5        | 5                                                                   |
| pooling | not said | average over positions; `flatten`, public re-implementations' choice |
| metric  | not said | euclidean; `cosine`                                                 |

In a tied vote the smallest label wins, as in scikit-learn. Images are not augmented.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from fsbench.backbones import Classifier
from fsbench.core.errors import UsageError
from fsbench.core.findings import Finding, Measure, View
from fsbench.core.progress import SILENT, Advance, Reporter
from fsbench.core.specs import Frozen
from fsbench.data import Split
from protocols.analyses import Need
from protocols.analyses._subject import Part, Subject

SOURCE = "SEAL (CVPR 2023), section 5, Figures 2 and 3; Baldock et al. 2021"
NEEDS: tuple[Need, ...] = ("head", "images")


PARTS: tuple[Part, Part] = ("train", "val")
"""Whose images are the reference, and whose are the query."""


class Settings(Frozen):
    """k: neighbours; images: of train and of validation at most so many, null for all, as the paper
    has it; batch_size: images a forward pass; memory: bytes of query features that are held at
    once, which the result does not depend on.
    """

    k: int = Field(5, ge=1)
    pooling: Literal["average", "flatten"] = "average"
    metric: Literal["euclidean", "cosine"] = "euclidean"
    images: int | None = Field(None, ge=1)
    batch_size: int = Field(256, ge=1)
    memory: int = Field(2**30, ge=1)
    seed: int = Field(0, ge=0)


@dataclass(frozen=True, eq=False)
class KnnDepth:
    """blocks: the last module of each of the K blocks; probes (K, N): labels by k-NN behind it;
    predicted (N,): the network's own; labels (N,): the true ones."""

    blocks: tuple[str, ...]
    probes: NDArray[np.int64]
    predicted: NDArray[np.int64]
    labels: NDArray[np.int64]

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """(K,) fractions of query images that the probe behind each block labels rightly."""
        found: NDArray[np.float64] = (self.probes == self.labels).mean(axis=1)
        return found

    @property
    def depths(self) -> NDArray[np.int64]:
        """(N,) prediction depths: blocks before the first one from which on all probes agree with
        the network. 0: all do; K: the last one does not."""
        agree = (self.probes == self.predicted)[::-1]
        found: NDArray[np.int64] = len(agree) - np.logical_and.accumulate(agree).sum(axis=0)
        return found


def passes(subject: Subject, settings: Settings) -> int:
    return sum(len(subject.chosen(part, settings.images, settings.seed)) for part in PARTS)


def run(subject: Subject, settings: Settings, report: Reporter = SILENT) -> Finding:
    """Raises UsageError for fewer training images than neighbours."""
    reference, query = (subject.chosen(part, settings.images, settings.seed) for part in PARTS)
    found = knn_depth(subject.network, reference, query, settings, report)
    depths = np.bincount(found.depths, minlength=len(found.blocks) + 1) / len(query)
    return Finding(
        measures=(
            Measure(name="reference images", value=len(reference)),
            Measure(name="query images", value=len(query)),
            Measure(name="mean prediction depth (blocks)", value=float(found.depths.mean())),
            *(
                Measure(name=f"accuracy behind block {i} ({block})", value=a, share=True)
                for i, (block, a) in enumerate(
                    zip(found.blocks, found.accuracies.tolist(), strict=True), start=1
                )
            ),
        ),
        views=(
            View(
                title=f"k-NN probe (K = {settings.k})",
                x="block",
                y="accuracy (%)",
                at=tuple(range(1, len(found.blocks) + 1)),
                values=tuple((100 * found.accuracies).tolist()),
                places=found.blocks,
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


def knn_depth(
    network: Classifier,
    reference: Split,
    query: Split,
    spec: Settings | None = None,
    report: Reporter = SILENT,
) -> KnnDepth:
    """Probe every block of `network` (fsbench.backbones.classifier) on its model's device.

    Memory: `spec.memory`, two batches, and k neighbours a query image and block; the reference is
    read once for every part of the query that fits. Raises UsageError for fewer than k images.
    """
    spec = spec or Settings()
    if len(reference) < spec.k:
        raise UsageError(
            f"{spec.k} neighbours were asked of {len(reference)} reference images",
            fix="give more images, or a smaller k",
        )
    probe = Probe(network, spec)
    parts = list(probe.parts(query))
    what, total = f"k-NN probe {network.facts.ref}", len(query) + len(parts) * len(reference)
    with report.task(what, total, "images") as advance:
        found = [probe.label(reference, part, advance) for part in parts]
    probes, predicted = (torch.cat(each, dim=-1).cpu().numpy() for each in zip(*found, strict=True))
    return KnnDepth(probe.blocks, probes, predicted, query.labels)


class Probe:
    """A network with the features behind its blocks."""

    def __init__(self, network: Classifier, spec: Settings) -> None:
        self.model, self.spec, self.facts = network.model, spec, network.facts
        self.blocks = tuple(block[-1] for block in network.roles.blocks)
        self.device = next(network.model.parameters()).device
        self.channels_behind = getattr(network.model, "output_fmt", "") == "NHWC"  # Swin, in timm

    def parts(self, query: Split) -> Iterator[Split]:
        """The query in runs whose features fit into the memory."""
        one = sum(feature.nbytes for feature in self.features(query.images[:1])[0])
        return split(query, max(1, self.spec.memory // one))

    def label(self, reference: Split, query: Split, advance: Advance) -> tuple[Tensor, Tensor]:
        """(K, N) labels of the probes and (N,) of the network."""
        batches = [self.features(b.images) for b in split(query, self.spec.batch_size)]
        seen = [torch.cat(features) for features in zip(*(f for f, _ in batches), strict=True)]
        nearest = [Nearest(features, self.spec.k) for features in seen]
        advance(len(query))
        for batch in split(reference, self.spec.batch_size):
            labels = torch.from_numpy(np.array(batch.labels)).to(self.device)
            for found, features in zip(nearest, self.features(batch.images)[0], strict=True):
                found.see(features, labels)
            advance(len(batch))
        return torch.stack([n.vote() for n in nearest]), torch.cat([own for _, own in batches])

    @torch.no_grad()
    def features(self, images: NDArray[np.uint8]) -> tuple[list[Tensor], Tensor]:
        """Features (B, D) float32 behind every block, and the network's labels (B,)."""
        found: dict[str, Tensor] = {}

        def keep(name: str) -> torch.utils.hooks.RemovableHandle:
            def hook(module: nn.Module, inputs: object, output: Tensor) -> None:
                found[name] = self.pooled(output)

            return self.model.get_submodule(name).register_forward_hook(hook)

        x = torch.from_numpy(np.array(images)).to(self.device).float() / 255
        mean, std = (x.new_tensor(v).view(1, 3, 1, 1) for v in (self.facts.mean, self.facts.std))
        hooks = [keep(name) for name in self.blocks]
        try:
            logits: Tensor = self.model((x - mean) / std)
        finally:
            for handle in hooks:
                handle.remove()
        return [found[name] for name in self.blocks], logits.argmax(dim=1)

    def pooled(self, output: Tensor) -> Tensor:
        """Maps (B, C, ...), of some networks (B, ..., C), or tokens (B, n, C) -> (B, D), copied:
        later layers work in place."""
        behind = output.ndim == 3 or (output.ndim == 4 and self.channels_behind)
        maps = output.movedim(-1, 1) if behind else output
        values = maps.float().flatten(2) if maps.ndim > 2 else maps.float()[..., None]
        pooled = values.mean(dim=2) if self.spec.pooling == "average" else values.flatten(1).clone()
        return nn.functional.normalize(pooled) if self.spec.metric == "cosine" else pooled


class Nearest:
    """The k nearest reference images so far of every query image."""

    def __init__(self, query: Tensor, k: int) -> None:
        self.shift = query.mean(dim=0)
        """Taken from all features: distances stay as they are, and lose fewer digits."""
        self.query, self.k = query.sub_(self.shift), k
        self.distances = query.new_empty(len(query), 0)
        self.labels = torch.empty(len(query), 0, dtype=torch.int64, device=query.device)

    def see(self, features: Tensor, labels: Tensor) -> None:
        """Consider more reference images (B, D) with labels (B,)."""
        features = features - self.shift
        squares = features.square().sum(dim=1)  # a query image's own square moves no neighbour
        new = torch.addmm(squares[None], self.query, features.mT, alpha=-2)
        distances = torch.cat([self.distances, new], dim=1)
        known = torch.cat([self.labels, labels.expand(len(self.query), -1)], dim=1)
        k = min(self.k, distances.shape[1])
        self.distances, index = distances.topk(k, dim=1, largest=False)
        self.labels = known.gather(1, index)

    def vote(self) -> Tensor:
        """(N,) the most frequent label, the smallest one in a tie."""
        votes = (self.labels[:, :, None] == self.labels[:, None, :]).sum(dim=2)
        beaten = votes < votes.amax(dim=1, keepdim=True)
        return self.labels.masked_fill(beaten, torch.iinfo(torch.int64).max).amin(dim=1)


def split(images: Split, size: int) -> Iterator[Split]:
    """Runs of `size` images, in order."""
    for start in range(0, len(images), size):
        part = slice(start, start + size)
        yield Split(images.images[part], images.labels[part])
