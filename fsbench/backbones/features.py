"""Features of a whole data set, extracted once and kept by content.

Equal bits within a fingerprint (torch, CPU capability, threads, block size): the images go through
the network in fixed blocks on absolute indices, the last one padded to full size (design.md 5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fsbench.backbones import devices, feature_files
from fsbench.backbones.base import Backbone
from fsbench.backbones.decoding import Pixels, blocks
from fsbench.backbones.feature_files import Features, Journal
from fsbench.core.canonical import digest
from fsbench.core.errors import CheckpointError, FsbenchError, UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import ImageSpec
from fsbench.data.base import TargetDataset
from fsbench.data.views import View

VERSION = 1
"""Raised whenever the way from an image to its features changes: old caches are then left alone."""

CONSTANT = 1e-6
"""Features that differ by no more than this part of their largest value are all the same."""


def block_size(dim: int, input_size: int) -> int:
    """Images a forward pass: 8 to 128, a power of two, a function of the shapes alone.

    About 4.2 million pixels, half of it for networks of more than 1024 features (64 images of 224
    px for ResNet-18, 32 for ResNet-50), never of the memory that happens to be free.
    """
    pixels = 2**22 if dim <= 1024 else 2**21
    return min(128, max(8, 1 << (pixels // input_size**2).bit_length() - 1))


class FeatureStore:
    """Features by content, in <cache>/features/<key>/.

    batch_size: images a forward pass, at least 2; None lets `block_size` say; workers: decoding
    threads. Both leave the episodes alone, and only batch_size is part of the key.
    """

    def __init__(
        self,
        cache: Path,
        batch_size: int | None = None,
        workers: int = 2,
        device: str = "cpu",
        report: Reporter = SILENT,
    ) -> None:
        if batch_size is not None and batch_size < 2:
            raise UsageError(
                f"a batch of {batch_size} image", fix="use at least 2: one image has other bits"
            )
        self.folder = cache / "features"
        self.batch_size, self.workers = batch_size, workers
        self.device, self.report = device, report

    def get(
        self,
        backbone: Backbone,
        dataset: TargetDataset,
        image: ImageSpec,
        fingerprint: str,
        view: View | None = None,
    ) -> Features:
        """Features (N, D) float32 of all images in data set order, extracted if need be.

        fingerprint: of the whole data set (fsbench.data.fingerprint), of which `dataset` may be a
        part where a random view is asked for. Raises UsageError for an input size
        that the network does not take, DataError for a corrupt image, CheckpointError for features
        that are not finite or all the same.
        """
        about = self.describe(backbone, image, fingerprint)
        if view is not None:
            about |= {"view": asdict(view), "images": dataset.images_hash}
        folder = self.folder / key(about)
        shape = (len(dataset), backbone.facts.feature_dim)
        with feature_files.locked(folder, self.report):
            found = feature_files.read(folder, shape, self.report)
            if found is None:
                check_input_size(backbone, image.input_size, self.device)
                journal = Journal(folder, shape, self.report)
                self.extract(backbone, dataset, image, journal, about, view)
                found = feature_files.read(folder, shape, self.report)
        if found is None:
            raise FsbenchError(f"{folder} is not what was written", fix="check the disk")
        return found

    def holds(self, backbone: Backbone, image: ImageSpec, fingerprint: str) -> bool:
        """Whether `get` would find these features instead of extracting them."""
        return (self.folder / key(self.describe(backbone, image, fingerprint))).is_dir()

    def describe(self, backbone: Backbone, image: ImageSpec, fingerprint: str) -> dict[str, Any]:
        """All that the bits of the features depend on."""
        import PIL

        facts = backbone.facts
        module = {"module": backbone.fingerprint} if backbone.fingerprint else {}
        return module | {
            "version": VERSION,
            "weights_hash": facts.weights_hash,
            "architecture": facts.architecture,
            "features": facts.features,
            "mean": facts.mean,
            "std": facts.std,
            "image": image.model_dump(mode="json"),
            "data": fingerprint,
            "dtype": "float32",
            "block": self.batch_size or block_size(facts.feature_dim, image.input_size),
            "torch": torch.__version__,
            "pillow": PIL.__version__,
            "device": devices.model_name(self.device),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        }

    def extract(
        self,
        backbone: Backbone,
        dataset: TargetDataset,
        image: ImageSpec,
        journal: Journal,
        about: dict[str, Any],
        view: View | None = None,
    ) -> None:
        """Run the network over the blocks that the journal lacks, and finish it."""
        n, size, ref = len(dataset), int(about["block"]), backbone.facts.ref
        what, done = f"features of {dataset.name} by {ref}", min(journal.done * size, n)
        with self.report.task(what, n, "images", done) as advance:
            for start, rows in self.rows(backbone, dataset, image, journal.done, view):
                journal.write(start, rows)
                advance(len(rows))
        if constant(journal.array):
            raise sick(ref, f"the same features for all {n} images of {dataset.name}")
        journal.finish({**about, "model": ref, "dataset": dataset.name})

    def rows(
        self,
        backbone: Backbone,
        dataset: TargetDataset,
        image: ImageSpec,
        first: int = 0,
        view: View | None = None,
    ) -> Iterator[tuple[int, Features]]:
        """(index of its first image, features) of every block from `first` on, none of them kept.

        Raises CheckpointError for features that are not finite.
        """
        ref = backbone.facts.ref
        size = self.batch_size or block_size(backbone.facts.feature_dim, image.input_size)
        for start, n, pixels in blocks(dataset, image, size, first, self.workers, view):
            rows = forward(backbone, pixels, self.device)[:n]
            if not np.isfinite(rows).all():
                raise sick(ref, f"NaN or infinity on images {start} to {start + n - 1}")
            yield start, rows


def key(about: dict[str, Any]) -> str:
    """sha-256 of the description, 64 hex digits."""
    return digest(about, compact=False)


def forward(backbone: Backbone, pixels: Pixels, device: str) -> Features:
    """Features (B, D) of pixels (B, 3, s, s) uint8, without TF32 and without autotuning.

    Raises FsbenchError when the device's memory is too small for the block.
    """
    cudnn = torch.backends.cudnn
    images = torch.from_numpy(pixels).to(device).contiguous(memory_format=torch.channels_last)
    try:
        with torch.no_grad(), cudnn.flags(benchmark=False, deterministic=True, allow_tf32=False):
            rows: Features = backbone.features(images).cpu().numpy()
    except torch.OutOfMemoryError as error:
        raise FsbenchError(
            f"{len(pixels)} images of {pixels.shape[-1]} px do not fit into the memory of {device}",
            fix="pass a smaller --batch-size",
        ) from error
    return rows


def check_input_size(backbone: Backbone, size: int, device: str) -> None:
    """Raises UsageError if the network does not take images of side `size` (px)."""
    native = backbone.facts.input_size
    if size == native:
        return
    try:
        forward(backbone, np.zeros((2, 3, size, size), dtype=np.uint8), device)
    except (AssertionError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"{backbone.facts.ref} takes no images of {size} px, it was trained at {native} px: "
            f"{str(error).splitlines()[0]}",
            fix=f"--input-size native, or --input-size {native}",
        ) from error


def constant(rows: Features) -> bool:
    """Whether all of several rows are the same vector."""
    spread = float(np.max(rows.max(axis=0) - rows.min(axis=0)))
    return len(rows) > 1 and spread <= CONSTANT * float(np.abs(rows).max())


def sick(ref: str, what: str) -> CheckpointError:
    return CheckpointError(
        f"{ref} gives {what}",
        fix="its weights are damaged or the network is not trained; check the checkpoint",
    )
