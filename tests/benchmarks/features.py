"""What feature extraction costs beside the bare network: `python tests/benchmarks/features.py`.

Bare: the network alone on blocks of ready float images. Ours: FeatureStore.get into a fresh cache,
with cropping, normalising, checks and writing. Rows `arrays`: images are decoded and resized
already, on all threads; ours should reach 0.9 of the bare throughput. Rows `files`: JPEG files on
one decoding thread beside one torch thread, so that reading them first and then running the network
takes the sum of both times, and overlapped at best the longer one; on a GPU the network leaves the
threads alone. All are warmed and taken in turns, in several fresh processes, which keep freed
memory as the command does: a network's pace depends on where its activations come to lie, and a
machine's changes from second to second. A ratio is the median over processes of the median of their
rounds, with its range; A/A (ours against ours) shows the noise that is left. Rows for GPUs are
skipped where none is.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from fsbench import backbones
from fsbench.backbones.features import FeatureStore, blocks, feature_block_size
from fsbench.core.process import keep_freed_memory
from fsbench.core.schema import DatasetFacts
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


class Turn(NamedTuple):
    """Seconds an image of the bare network, of decoding, and of ours, twice."""

    bare: float
    decode: float
    first: float
    again: float

    @property
    def ours(self) -> float:
        return (self.first + self.again) / 2


def take_turns(row: Row, device: str, threads: int, at_least: float) -> list[Turn]:
    """Two turns or more for so many seconds at least; in a fresh process."""
    keep_freed_memory()
    torch.set_num_threads(1 if row.images == "files" else threads)
    with TemporaryDirectory() as folder:
        case = Case(row, device, Path(folder))
        works = (case.bare, case.decode, case.ours, case.ours)
        for work in works[:-1]:
            work()
        turns: list[Turn] = []
        started = time.perf_counter()
        while len(turns) < 2 or time.perf_counter() - started < at_least:
            turns.append(Turn(*(seconds(work) / case.images for work in works)))
        return turns


def line(row: Row, processes: list[list[Turn]]) -> str:
    def typical(ratio: Callable[[Turn], float]) -> list[float]:
        return sorted(median(map(ratio, turns)) for turns in processes)

    def rate(part: str) -> float:
        return 1 / median(typical(lambda turn: getattr(turn, part)))

    text = f"{row.ref:>22} {row.side:4} {row.images:>7}"
    text += f" {rate('bare'):9.1f} {rate('decode'):9.1f} {rate('ours'):9.1f}"
    ratios = typical(lambda turn: turn.bare / turn.ours)
    text += f" {median(ratios):9.2f} {ratios[0]:5.2f} to {ratios[-1]:.2f}"
    noise = median(typical(lambda turn: turn.again / turn.first))
    if row.images == "files":
        overlap = median(typical(lambda turn: (turn.bare + turn.decode) / turn.ours))
        best = median(typical(lambda turn: (turn.bare + turn.decode) / max(turn.bare, turn.decode)))
        return f"{text} {overlap:6.2f}x {best:6.2f}x   A/A {noise:.2f}"
    return f"{text} {'-':>7} {'-':>7}   A/A {noise:.2f}"


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
        given_all = (row, device if row.gpu else "cpu", options.threads, options.seconds)
        with get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
            processes = fresh.starmap(take_turns, [given_all] * options.processes, chunksize=1)
        print(line(row, processes), flush=True)


if __name__ == "__main__":
    main()
