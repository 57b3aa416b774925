"""How time and memory grow: jobs, entries, episodes, images, dimensions, classes.

    PYTHONPATH=tests python -m benchmarks --rows growth --quick

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
from benchmarks.heads import make_inputs
from benchmarks.pairing import Use, in_fresh_processes, make_growth_row, use_of
from benchmarks.sweeps import use_jobs
from PIL import Image
from support.protocols import describe_images
from support.site import write_board

import fsbench
from fsbench.api.listing import Row
from fsbench.backbones import load_backbone
from fsbench.backbones.features import FeatureRequest, FeatureStore
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, ImageSpec, ProbeSpec
from fsbench.data.base import TargetDataset
from leaderboard.site.page import build_site
from protocols.episodic import linear as heads
from protocols.probes import linear as probe


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


def use_entries(entries: int) -> Use:
    """Read a board of so many entries of 8 columns of 100 episodes, rank it and write its page."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as site:
        names = [f"entry-{i:04}" for i in range(entries)]
        write_board(Path(folder), names, targets=("eurosat", "isic"), shots=(1, 5), n_episodes=100)
        return use_of(lambda: build_site(Path(folder), Path(site)))


def use_dimensions(dim: int) -> Use:
    """Train the linear heads of a block of 200 5-way 5-shot episodes."""
    torch.set_num_threads(1)
    small, inputs = make_inputs(16), make_inputs(dim, images=30)
    spec = EpisodicSpec(episode=EpisodeSpec(k_shot=5))
    heads.evaluate_block(small, spec, 0)
    return use_of(lambda: heads.evaluate_block(inputs, spec, 0))


def use_classes(classes: int) -> Use:
    """Train the linear probe for two epochs on 10,000 images of 64 dimensions."""
    torch.set_num_threads(1)
    small, inputs = make_inputs(64, 2, 30), make_inputs(64, classes, 12_000 // classes)
    test, train = np.arange(12_000).reshape(-1, 6)[:, :1], np.arange(12_000).reshape(-1, 6)[:, 1:]
    spec, parts = ProbeSpec(epochs=2), (train.ravel(), test.ravel())
    probe.evaluate_linear_probe(small, spec, *(part[part < 60] for part in parts))
    return use_of(lambda: probe.evaluate_linear_probe(inputs, spec, *parts))


KINDS: dict[str, tuple[Sequence[int], Callable[[int], Use]]] = {
    "planning, finding done and starting the jobs of a sweep (jobs)": (
        (600, 6_000, 60_000),
        use_jobs,
    ),
    "board of 8 columns of 100 episodes, read, ranked and built (entries)": (
        (25, 100, 400),
        use_entries,
    ),
    "episodic task on cached features, 5-way 1-shot linear, toy_resnet (episodes)": (
        (100, 1_000, 10_000, 100_000),
        use_episodes,
    ),
    "extraction, toy_resnet, 32 px (images)": ((1_000, 10_000, 100_000), use_extraction),
    "linear heads of 200 episodes, 5-way 5-shot (dimensions)": (
        (512, 2_048, 8_192),
        use_dimensions,
    ),
    "linear probe, 2 epochs of 10,000 images of 64 dimensions (classes)": (
        (10, 100, 1_000),
        use_classes,
    ),
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
