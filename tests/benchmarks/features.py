"""What feature extraction costs beside the bare network: `python -m benchmarks.features`.

Bare: the network alone on blocks of ready float images. Ours: FeatureStore.get into a fresh cache,
with cropping, normalising, checks and writing. Rows `arrays`: images are decoded and resized
already, on all threads; ours should reach 0.9 of the bare throughput. Rows `files`: JPEG files on
one decoding thread beside one torch thread, so that reading them first and then running the network
takes the sum of both times, and overlapped at best the longer one; on a GPU the network leaves the
threads alone. Rows for GPUs are skipped where none is.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch
from benchmarks.pairing import (
    AGAIN,
    OURS,
    PLAIN,
    Measurement,
    Round,
    describe_generated,
    in_fresh_processes,
    mean_seconds,
    take_rounds,
    timer,
)
from PIL import Image

from fsbench import backbones
from fsbench.backbones.features import FeatureRequest, FeatureStore, blocks, feature_block_size
from fsbench.core.seeding import words
from fsbench.core.specs import ImageSpec
from fsbench.data.base import TargetDataset

FILE_SIDE = 320
"""Side (px) of the JPEG files."""
DISTINCT = 64
"""Images that are decoded ahead; larger data sets repeat them."""


class Row(NamedTuple):
    """A network, the side of its images (px), where they come from, blocks an extraction."""

    ref: str
    side: int
    images: str
    blocks: int = 2
    gpu: bool = False


ROWS = (
    Row("fsbench/pilot_resnet", 32, "arrays", 32),
    Row("timm/resnet18", 64, "arrays", 8),
    Row("timm/resnet18", 224, "arrays"),
    Row("timm/resnet50", 224, "arrays"),
    Row("timm/resnet18", 64, "files"),
    Row("timm/resnet18", 224, "files"),
    Row("timm/resnet50", 224, "arrays", 32, gpu=True),
    Row("timm/resnet50", 224, "files", 32, gpu=True),
)


@dataclass(frozen=True, eq=False)
class Decoded(TargetDataset):
    """Images of the wanted size in memory."""

    images: tuple[Image.Image, ...] = ()

    def image(self, index: int) -> Image.Image:
        return self.images[index % len(self.images)]


def noise(number: int, side: int) -> Image.Image:
    """Smooth noise, so that a JPEG of it has the size of a photograph's."""
    coarse = words(3 * 16 * 16, "features", number).astype(np.uint8).reshape(16, 16, 3)
    return Image.fromarray(coarse).resize((side, side), Image.Resampling.BICUBIC)


def dataset(row: Row, n: int, folder: Path) -> TargetDataset:
    """n images of one class, in memory or as files in `folder`."""
    facts = describe_generated(1, n)
    ids = tuple(f"class0/{i:06}.jpg" for i in range(n))
    labels = np.zeros(n, np.int64)
    if row.images == "arrays":
        side = ImageSpec(input_size=row.side).resize
        ready = tuple(noise(i, side) for i in range(min(n, DISTINCT)))
        return Decoded("bench", facts, folder, ids, ids, labels, facts.classes, images=ready)
    (folder / "class0").mkdir()
    for i, name in enumerate(ids):
        noise(i % DISTINCT, FILE_SIDE).save(folder / name, quality=90)
    return TargetDataset("bench", facts, folder, ids, ids, labels, facts.classes)


class Case:
    """One row on one device."""

    def __init__(self, row: Row, device: str, folder: Path) -> None:
        self.row, self.device, self.folder = row, device, folder
        self.backbone = backbones.load_backbone(row.ref, random_init=0, device=device)
        self.spec = ImageSpec(input_size=row.side)
        self.size = feature_block_size(self.backbone.facts.feature_dim, row.side)
        self.images = self.size * row.blocks
        self.dataset = dataset(row, self.images, folder)
        self.workers, self.runs = (1 if row.images == "files" else 2), 0
        ready = torch.rand(self.size, 3, row.side, row.side, device=device)
        self.ready = ready.contiguous(memory_format=torch.channels_last)

    def bare(self) -> None:
        with torch.no_grad():
            for _ in range(self.row.blocks):
                self.backbone.module(self.ready)
        if self.device != "cpu":
            torch.cuda.synchronize()

    def decode(self) -> None:
        request = FeatureRequest(self.backbone, self.dataset, self.spec)
        for _ in blocks(request, self.size, 0, self.workers):
            pass

    def ours(self) -> None:
        self.runs += 1
        store = FeatureStore(self.folder / "cache", workers=self.workers, device=self.device)
        store.get(FeatureRequest(self.backbone, self.dataset, self.spec, f"run {self.runs}"))


def take_row(row: Row, device: str, threads: int, at_least: float) -> list[Round]:
    """Seconds per image of two rounds or more, for so many seconds at least."""
    torch.set_num_threads(1 if row.images == "files" else threads)
    with TemporaryDirectory() as folder:
        case = Case(row, device, Path(folder))
        works = {PLAIN: case.bare, "decode": case.decode, OURS: case.ours, AGAIN: case.ours}
        sides = {name: timer(work, case.images) for name, work in works.items()}
        return take_rounds(sides, at_least=at_least)


def line(row: Row, measured: Measurement) -> str:
    rates = " ".join(f"{1 / measured.seconds(side):9.1f}" for side in (PLAIN, "decode", OURS))
    ratios, noise = measured.ratios(), f"A/A {measured.noise:.2f}"
    text = f"{row.ref:>22} {row.side:4} {row.images:>7} {rates} {measured.ratio():9.2f}"
    text += f" {ratios[0]:5.2f} to {ratios[-1]:.2f}"
    if row.images != "files":
        return f"{text} {'-':>7} {'-':>7}   {noise}"
    overlap = median(measured.values(lambda r: both(r) / mean_seconds(r, OURS)))
    best = median(measured.values(lambda r: both(r) / max(r[PLAIN], r["decode"])))
    return f"{text} {overlap:6.2f}x {best:6.2f}x   {noise}"


def both(taken: Round) -> float:
    """Seconds of decoding and of the network, one after the other."""
    return taken[PLAIN] + taken["decode"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--processes", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rows", type=int, nargs="+", choices=range(len(ROWS)))
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(
        f"torch {torch.__version__}, {options.threads} threads, {options.processes} processes a row"
    )
    print(f"{'images/s':>46}")
    print(
        f"{'network':>22} {'px':>4} {'images':>7} {'bare':>9} {'decode':>9} {'ours':>9}"
        f" {'ours/bare':>9} {'range':>13} {'overlap':>7} {'best':>7}"
    )
    for number, row in enumerate(ROWS):
        if options.rows is not None and number not in options.rows:
            continue
        if row.gpu and device == "cpu":
            print(f"{row.ref:>22} {row.side:4} {row.images:>7}   skipped: needs a GPU")
            continue
        arguments = (row, device if row.gpu else "cpu", options.threads, options.seconds)
        processes = in_fresh_processes(take_row, arguments, options.processes)
        print(line(row, Measurement(processes)), flush=True)


if __name__ == "__main__":
    main()
