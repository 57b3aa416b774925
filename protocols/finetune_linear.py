"""Episodic protocol `linear`: the backbone stays frozen, a fresh linear head is fine-tuned.

Source: protocol.md 3 (IBM finetune.py with --freeze_backbone and its descendants): raw features,
PyTorch's default init, SGD of HeadSpec, top-1 over all queries at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fsbench.data.episodes import Episode, EpisodeSampler
from fsbench.records import EpisodeRecords, concatenate
from fsbench.specs import EpisodicSpec
from protocols import draws
from protocols.base import Inputs
from protocols.gather import padded, support_and_query
from protocols.heads import Heads, train
from protocols.outcomes import episode_records
from protocols.pieces import side_by_side

ADAPTATION = "linear"

PIECES_A_BLOCK = 4
PIECES = (50, 25, 10, 5, 2)
PIECE_BYTES = 160 * 2**20
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def block_size(spec: EpisodicSpec, dim: int) -> int:
    """Four pieces: enough to keep cores busy, few enough to resume from and to shard.

    A piece holds the largest number of PIECES of episodes whose features and Gram matrices fit into
    PIECE_BYTES: more save overhead, fewer save memory. 200 for features up to 2048 numbers.
    """
    return PIECES_A_BLOCK * _piece_size(spec, dim)


def evaluate_block(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
    """Outcomes of the episodes of one block. Raises DataError if the data set is too small."""
    dataset = inputs.dataset
    sampler = EpisodeSampler(spec.episode, dataset.name, dataset.class_counts)
    size = _piece_size(spec, inputs.features.shape[1])
    first = block * PIECES_A_BLOCK
    pieces = [range(p * size, (p + 1) * size) for p in range(first, first + PIECES_A_BLOCK)]

    def evaluate(indices: range) -> EpisodeRecords:
        return evaluate_piece(inputs, spec, [sampler.episode(i) for i in indices])

    return concatenate(side_by_side(evaluate, pieces, inputs.device))


def evaluate_piece(
    inputs: Inputs, spec: EpisodicSpec, episodes: Sequence[Episode]
) -> EpisodeRecords:
    """Outcomes of these episodes, trained together; their bits depend on nothing else."""
    support, query = support_and_query(inputs, episodes, DTYPES[spec.head.dtype])
    indices = [episode.index for episode in episodes]
    heads = fine_tune(support, spec, inputs.dataset.name, indices, inputs.features.shape[1])
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


def _piece_size(spec: EpisodicSpec, dim: int) -> int:
    e = spec.episode
    support, images = e.n_way * e.k_shot, e.n_way * (e.k_shot + e.n_query)
    floats = images * padded(dim) + support * support
    fits = PIECE_BYTES // (floats * DTYPES[spec.head.dtype].itemsize)
    return next((size for size in PIECES if size <= fits), PIECES[-1])
