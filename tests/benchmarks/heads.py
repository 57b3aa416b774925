"""The linear heads of a block beside a plain loop over its episodes.

Both start from cached features and end with predictions; init and permutations are drawn inside.
Plain: for each episode, nn.Linear and torch.optim.SGD, one step a mini-batch, as published code
does on cached features. It is timed on a few epochs of one episode, with one torch thread and with
all of them, and the faster counts. Ours: one whole block of the suite's protocol without dense
queries, which the loop has not.
"""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from benchmarks.pairing import Settings, Side, fastest_seconds, timer
from support.protocols import describe_images
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fsbench.core.seeding import uniforms
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, HeadSpec
from fsbench.data.base import TargetDataset
from fsbench.data.episodes import EpisodeSampler
from protocols.base import Inputs
from protocols.episodic import linear

DIMS = (512, 2048)
N_CLASSES, IMAGES = 10, 300


class Row(NamedTuple):
    """Shots, the least ratio, and what is timed: blocks or episodes, and epochs of the plain loop.

    A block of 1 shot takes 50 ms; the time of the plain loop grows in proportion to its epochs.
    """

    k_shot: int
    bound: float
    works: int
    epochs: int


ROWS = (Row(1, 100, 10, 100), Row(5, 100, 2, 40), Row(20, 100, 1, 10), Row(50, 60, 1, 4))


def make_inputs(dim: int, classes: int = N_CLASSES, images: int = IMAGES) -> Inputs:
    """Return classes of so many images each with rectified features."""
    facts = describe_images("bench", classes, images)
    ids = tuple(f"{name}/{i}" for name in facts.classes for i in range(images))
    labels = np.repeat(np.arange(classes), images)
    dataset = TargetDataset("bench", facts, Path(), ids, ids, labels, facts.classes)
    return Inputs(None, dataset, uniforms((len(ids), dim), "bench", dim).astype(np.float32))


def train_plain_head(support: Tensor, query: Tensor, n_way: int, epochs: int) -> Tensor:
    """Train the linear head of one episode and return the classes that it predicts for queries.

    support: features (n_way * k, D), class by class; query: features (n, D).
    """
    h, device = HeadSpec(), support.device
    labels = torch.arange(n_way, device=device).repeat_interleave(len(support) // n_way)
    head = nn.Linear(support.shape[1], n_way, device=device)
    optimizer = torch.optim.SGD(head.parameters(), h.lr, h.momentum, h.dampening, h.weight_decay)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels), device=device).split(h.batch_size):
            optimizer.zero_grad()
            cross_entropy(head(support[batch]), labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        return head(query).argmax(dim=1)


def make_sides(settings: Settings, folder: Path, row: Row, dim: int) -> tuple[Side, Side]:
    """Return the plain loop, scaled to all epochs, and whole blocks, of the queries alone."""
    data = replace(make_inputs(dim), device=settings.device)
    spec = EpisodicSpec(episode=EpisodeSpec(k_shot=row.k_shot))
    sampler = EpisodeSampler(spec.episode, data.dataset.name, data.dataset.class_counts)

    def plain() -> None:
        for _ in range(row.works):
            images = sampler.episode(0).images(data.dataset.by_class)
            rows = (torch.from_numpy(data.features[part.ravel()]) for part in images)
            support, query = (part.to(data.device) for part in rows)
            train_plain_head(support, query, spec.episode.n_way, row.epochs)

    skipped = {
        "score_dense_queries": lambda records, *_: records,
        "reconstruct_heads": lambda *_: None,
    }

    def ours() -> None:
        with patch.multiple(linear, **skipped):
            for block in range(row.works):
                linear.evaluate_block(data, spec, block)

    scale = spec.head.epochs / row.epochs / row.works
    episodes = linear.block_size(spec, dim) * row.works
    return lambda: fastest_seconds(plain) * scale, timer(ours, episodes)
