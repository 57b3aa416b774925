"""The linear heads of a block beside a plain loop over its episodes.

Both start from cached features and end with predictions; init and permutations are drawn inside.
Plain: for each episode, nn.Linear and torch.optim.SGD, one step a mini-batch, as published code
does on cached features. It is timed on a few epochs of one episode, with one torch thread and with
all of them, and the faster counts. Ours: one whole block of the suite's protocol without dense
queries, which the loop has not.
"""

from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from benchmarks.pairing import (
    Round,
    fastest_seconds,
    seconds,
    take_paired_rounds,
)
from support.protocols import describe_images
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fsbench.core.seeding import uniforms
from fsbench.core.specs import EpisodeSpec, EpisodicSpec, HeadSpec
from fsbench.data.base import TargetDataset
from fsbench.data.episodes import EpisodeSampler
from protocols.base import Inputs
from protocols.episodic import linear
from protocols.episodic.linear import block_size, evaluate_block

DIMS = (512, 2048)
N_CLASSES, IMAGES = 10, 300
PLAIN_EPOCHS = {1: 100, 5: 40, 20: 10, 50: 4}
"""Epochs of the plain loop that are timed; its time grows in proportion to them."""
WORKS = {1: 10, 5: 2, 20: 1, 50: 1}
"""Blocks, and episodes of the plain loop, timed together: one block of 1 shot takes 50 ms."""


def inputs(dim: int) -> Inputs:
    """Ten classes of 300 images with rectified features."""
    facts = describe_images("bench", N_CLASSES, IMAGES)
    ids = tuple(f"{name}/{i}" for name in facts.classes for i in range(IMAGES))
    labels = np.repeat(np.arange(N_CLASSES), IMAGES)
    dataset = TargetDataset("bench", facts, Path(), ids, ids, labels, facts.classes)
    features = uniforms((len(ids), dim), "bench", dim).astype(np.float32)
    return Inputs(None, dataset, features)


def train_plain_head(support: Tensor, query: Tensor, n_way: int, epochs: int) -> Tensor:
    """Train the linear head of one episode and return the classes that it predicts for queries.

    support: features (n_way * k, D), class by class; query: features (n, D).
    """
    h, labels = HeadSpec(), torch.arange(n_way).repeat_interleave(len(support) // n_way)
    head = nn.Linear(support.shape[1], n_way)
    optimizer = torch.optim.SGD(head.parameters(), h.lr, h.momentum, h.dampening, h.weight_decay)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(h.batch_size):
            optimizer.zero_grad()
            cross_entropy(head(support[batch]), labels[batch]).backward()
            optimizer.step()
    with torch.no_grad():
        return head(query).argmax(dim=1)


def time_plain(data: Inputs, spec: EpisodicSpec) -> float:
    """Return seconds per episode of the plain loop, scaled to all epochs."""
    e, epochs, works = spec.episode, PLAIN_EPOCHS[spec.episode.k_shot], WORKS[spec.episode.k_shot]
    sampler = EpisodeSampler(e, data.dataset.name, data.dataset.class_counts)

    def train() -> None:
        for _ in range(works):
            images = sampler.episode(0).images(data.dataset.by_class)
            support, query = (torch.from_numpy(data.features[part.ravel()]) for part in images)
            train_plain_head(support, query, e.n_way, epochs)

    return fastest_seconds(train) / works * spec.head.epochs / epochs


def time_blocks(data: Inputs, spec: EpisodicSpec) -> float:
    """Return seconds per episode over whole blocks, of the queries alone."""
    size, works = block_size(spec, data.features.shape[1]), WORKS[spec.episode.k_shot]
    skipped = {
        "score_dense_queries": lambda records, *_: records,
        "reconstruct_heads": lambda *_: None,
    }
    with patch.multiple(linear, **skipped):
        taken = seconds(lambda: [evaluate_block(data, spec, block) for block in range(works)])
    return taken / (size * works)


def compare(dim: int, k_shot: int, rounds: int) -> list[Round]:
    """Return seconds per episode of the plain loop and of the batched heads."""
    data, spec = inputs(dim), EpisodicSpec(episode=EpisodeSpec(k_shot=k_shot))
    return take_paired_rounds(
        lambda: time_plain(data, spec), lambda: time_blocks(data, spec), rounds
    )
