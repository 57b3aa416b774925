"""What feature extraction costs beside the bare network: `python tests/benchmarks/features.py`.

Bare: the network alone on blocks of ready float images. Ours: FeatureStore.get into a fresh cache,
with cropping, normalising, checks and writing. Rows `arrays`: images are decoded and resized
already, on all threads; ours should reach 0.9 of the bare throughput. Rows `files`: JPEG files on
one decoding thread beside one torch thread, so that reading them first and then running the network
takes the sum of both times, and overlapped at best the longer one; on a GPU the network leaves the
threads alone. All are warmed and taken in turns; the table shows medians, and an A/A row (ours
against ours) for the noise. Rows for GPUs are skipped where none is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from fsbench import backbones
from fsbench.backbones.decoding import blocks
from fsbench.backbones.features import FeatureStore, block_size
from fsbench.data.base import TargetDataset
from fsbench.schema import DatasetFacts
from fsbench.seeding import words
from fsbench.specs import ImageSpec

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
    Row("timm/resnet50", 224, "arrays", 6),
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
    text = dict.fromkeys(
        ("title", "label_rule", "layout", "download", "license", "citation", "homepage"), "bench"
    )
    facts = DatasetFacts(
        name="bench",
        domain="target",
        classes=("a",),
        images_per_class=(n,),
        folders=("bench",),
        **text,
    )
    ids = tuple(f"a/{i:06}.jpg" for i in range(n))
    labels = np.zeros(n, np.int64)
    if row.images == "arrays":
        side = ImageSpec(input_size=row.side).resize
        ready = tuple(noise(i, side) for i in range(min(n, DISTINCT)))
        return Decoded("bench", facts, folder, ids, ids, labels, ("a",), images=ready)
    (folder / "a").mkdir()
    for i, name in enumerate(ids):
        noise(i % DISTINCT, FILE_SIDE).save(folder / name, quality=90)
    return TargetDataset("bench", facts, folder, ids, ids, labels, ("a",))


class Case:
    """One row on one device."""

    def __init__(self, row: Row, device: str, folder: Path) -> None:
        self.row, self.device, self.folder = row, device, folder
        self.backbone = backbones.load(row.ref, random_init=0, device=device)
        self.spec = ImageSpec(input_size=row.side)
        self.size = block_size(self.backbone.facts.feature_dim, row.side)
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
        for _ in blocks(self.dataset, self.spec, self.size, 0, self.workers):
            pass

    def ours(self) -> None:
        self.runs += 1
        store = FeatureStore(self.folder / "cache", workers=self.workers, device=self.device)
        store.get(self.backbone, self.dataset, self.spec, f"run {self.runs}")


def seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def measure(case: Case, repeats: int) -> Iterator[float]:
    """Median seconds of the bare network, of decoding, of ours, and of ours again (A/A)."""
    works = (case.bare, case.decode, case.ours, case.ours)
    for work in works:
        work()
    rounds = [[seconds(work) for work in works] for _ in range(repeats)]
    return (median(column) for column in zip(*rounds, strict=True))


def line(case: Case, repeats: int) -> str:
    bare, decode, ours, again = measure(case, repeats)
    row, rate = case.row, case.images
    text = f"{row.ref:>22} {row.side:4} {row.images:>7} {rate / bare:9.1f} {rate / decode:9.1f}"
    text += f" {rate / ours:9.1f} {bare / ours:10.2f}"
    overlap = f"{(bare + decode) / ours:6.2f}x" if row.images == "files" else f"{'-':>7}"
    best = f"{(bare + decode) / max(bare, decode):6.2f}x" if row.images == "files" else f"{'-':>7}"
    return f"{text} {overlap} {best}   A/A {again / ours:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rows", type=int, nargs="+", choices=range(len(ROWS)))
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"torch {torch.__version__}, {given.threads} threads, median of {given.repeats}")
    print(f"{'images/s':>46} {'':>9} {'':>9}")
    print(
        f"{'network':>22} {'px':>4} {'images':>7} {'bare':>9} {'decode':>9} {'ours':>9}"
        f" {'ours/bare':>10} {'overlap':>7} {'best':>7}"
    )
    for number, row in enumerate(ROWS):
        if given.rows is not None and number not in given.rows:
            continue
        if row.gpu and device == "cpu" and given.rows is None:
            print(f"{row.ref:>22} {row.side:4} {row.images:>7}   skipped: needs a GPU")
            continue
        torch.set_num_threads(1 if row.images == "files" else given.threads)
        with TemporaryDirectory() as folder:
            case = Case(row, device if row.gpu else "cpu", Path(folder))
            print(line(case, given.repeats), flush=True)


if __name__ == "__main__":
    main()
