"""How time and memory grow: episodic tasks, extraction (`python -m benchmarks --rows growth`).

Every size runs in a fresh process of one thread, after a small one of the same kind: the smallest
sizes are not those that load modules. Time is processor time, of child processes too, which other
programs change little; memory is what the peak grows by, of which allocators explain the last MiB.
The exponent k of n^k is the slope of a straight line through the logarithms of all sizes; `last` is
that between the two largest sizes, where a fixed part hides nothing. A growth in proportion has 1.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from benchmarks.pairing import (
    MEBIBYTE,
    Use,
    in_fresh_processes,
    make_growth_row,
    processor_seconds,
)
from PIL import Image
from support.protocols import describe_images

import fsbench
from fsbench.api.listing import Row
from fsbench.backbones import load_backbone
from fsbench.backbones.features import FeatureRequest, FeatureStore
from fsbench.core.process import peak_memory
from fsbench.core.specs import ImageSpec
from fsbench.data.base import TargetDataset


def use_of(work: Callable[[], object]) -> Use:
    """Return what the work takes in this process, and in those that it starts."""
    peak, started = peak_memory(), processor_seconds()
    work()
    return Use(processor_seconds() - started, max(peak_memory() - peak, MEBIBYTE))


class Generated(TargetDataset):
    """One image in memory, for every index."""

    def image(self, index: int) -> Image.Image:
        return Image.new("RGB", (36, 36), (index % 256, index // 256 % 256, 9))


def generate_images(images: int) -> TargetDataset:
    """Return so many images of one class."""
    facts, ids = describe_images("bench", 1, images), tuple(f"class0/{i}" for i in range(images))
    return Generated("bench", facts, Path(), ids, ids, np.zeros(images, np.int64), facts.classes)


def use_episodes(episodes: int) -> Use:
    """Evaluate so many 5-way 1-shot episodes on cached features and write their result."""
    backbone = load_backbone("fsbench/toy_resnet", random_init=0)
    options = {"input_size": 32, "threads": 1, "progress": False}

    with tempfile.TemporaryDirectory() as cache:

        def evaluate(n: int) -> None:
            fsbench.evaluate(backbone, "toy_photo:5w1s", episodes=n, cache=cache, **options)

        evaluate(50)
        return use_of(lambda: evaluate(episodes))


def use_extraction(images: int) -> Use:
    """Extract the features of so many images of 32 px."""
    torch.set_num_threads(1)
    backbone = load_backbone("fsbench/toy_resnet", random_init=0)
    small, dataset = generate_images(256), generate_images(images)
    with tempfile.TemporaryDirectory() as folder:
        store, image = FeatureStore(Path(folder), workers=1), ImageSpec(input_size=32)
        store.get(FeatureRequest(backbone, small, image, "small"))
        return use_of(lambda: store.get(FeatureRequest(backbone, dataset, image, "whole")))


KINDS: dict[str, tuple[Sequence[int], Callable[[int], Use]]] = {
    "episodic task on cached features, 5-way 1-shot linear, toy_resnet (episodes)": (
        (100, 1_000, 10_000, 100_000),
        use_episodes,
    ),
    "extraction, toy_resnet, 32 px (images)": ((1_000, 10_000, 100_000), use_extraction),
}
"""Work -> its sizes, and what one size of it takes."""


def measure(quick: bool) -> list[Row]:
    """Return and print a row for every kind of work. quick: without the largest size."""
    rows: list[Row] = []
    for work, (sizes, use) in KINDS.items():
        chosen = sizes[:-1] if quick else sizes
        uses = [in_fresh_processes(use, (size,), 1)[0] for size in chosen]
        rows.append(make_growth_row(work, chosen, uses))
        print(", ".join(f"{column} {value}" for column, value in rows[-1].items()), flush=True)
    return rows
