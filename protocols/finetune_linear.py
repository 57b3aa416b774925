"""Episodic protocol `linear`: the backbone stays frozen, a fresh linear head is fine-tuned.

Source: protocol.md 3 (IBM finetune.py with --freeze_backbone and its descendants): raw features,
PyTorch's default init, SGD of HeadSpec, top-1 over all queries at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fsbench.data.episodes import EpisodeSampler
from fsbench.records import EpisodeRecords
from fsbench.specs import EpisodicSpec
from protocols import draws
from protocols.base import Inputs
from protocols.gather import padded, support_and_query
from protocols.heads import Heads, train
from protocols.outcomes import episode_records

ADAPTATION = "linear"

BLOCKS = (200, 100, 50, 20, 10, 4, 2)
BLOCK_BYTES = 400 * 2**20
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def block_size(spec: EpisodicSpec, dim: int) -> int:
    """The largest of BLOCKS whose features and Gram matrices fit into BLOCK_BYTES.

    Large blocks save overhead, small ones memory; nearly all divide the official 600 episodes.
    """
    e = spec.episode
    support, images = e.n_way * e.k_shot, e.n_way * (e.k_shot + e.n_query)
    item = DTYPES[spec.head.dtype].itemsize
    episode = item * (images * padded(dim) + support * support)
    return next((size for size in BLOCKS if size * episode <= BLOCK_BYTES), BLOCKS[-1])


def evaluate_block(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
    """Outcomes of the episodes of one block. Raises DataError if the data set is too small."""
    dataset, dim = inputs.dataset, inputs.features.shape[1]
    size = block_size(spec, dim)
    sampler = EpisodeSampler(spec.episode, dataset.name, dataset.class_counts)
    indices = range(block * size, (block + 1) * size)
    episodes = [sampler.episode(i) for i in indices]
    support, query = support_and_query(inputs, episodes, DTYPES[spec.head.dtype])
    heads = fine_tune(support, spec, dataset.name, indices, dim)
    return episode_records(episodes, heads.logits(query), spec.episode.n_query)


def fine_tune(
    support: Tensor, spec: EpisodicSpec, dataset: str, indices: Sequence[int], dim: int
) -> Heads:
    """Heads trained on support features (E, n_way * k_shot, P) of the given episodes.

    dim: feature dimension before padding to P; it sets the width of the init.
    """
    episode = spec.episode
    names = (episode.digest(), dataset)
    labels = torch.arange(episode.n_way, device=support.device).repeat_interleave(episode.k_shot)
    start = Heads(*draws.untrained(names, indices, dim, episode.n_way, support))
    orders = draws.orders(names, indices, spec.head.epochs, support)
    return train(support, labels, start, orders, spec.head)
