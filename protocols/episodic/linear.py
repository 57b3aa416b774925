"""Episodic protocol `linear`: the backbone stays frozen, a fresh linear head is fine-tuned.

Source: protocol.md 3 (IBM finetune.py with --freeze_backbone and its descendants): raw features,
PyTorch's default init, SGD of HeadSpec, top-1 over all queries at once. The same heads
are scored on all other possible queries too (protocols/heads/scoring.py).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fsbench.core.records import EpisodeRecords, concatenate
from fsbench.core.specs import EpisodicSpec
from fsbench.data.episodes import Episode, EpisodeSampler
from protocols.base import Inputs
from protocols.heads import draws
from protocols.heads.execution import run_side_by_side
from protocols.heads.gram import support_and_query
from protocols.heads.scoring import episode_records, reconstruct_heads, score_dense_queries
from protocols.heads.sgd import train_heads

ADAPTATION = "linear"

BLOCK = 200
PIECES = (100, 50, 25, 10, 5, 2)
GRAM_BYTES = 16 * 2**20
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def block_size(spec: EpisodicSpec, dim: int) -> int:
    """Always 200: a third of the official 600 to resume from, seconds of work."""
    return BLOCK


def trained_piece_size(spec: EpisodicSpec) -> int:
    """Episodes trained together: the largest of PIECES whose Gram matrices fit into GRAM_BYTES."""
    n = spec.episode.n_way * spec.episode.k_shot
    fits = GRAM_BYTES // (n * n * DTYPES[spec.head.dtype].itemsize)
    return next((size for size in PIECES if size <= fits), PIECES[-1])


def evaluate_block(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
    """Outcomes of the episodes of one block. Raises DataError if the data set is too small."""
    sampler, size = EpisodeSampler.of(spec.episode, inputs.dataset), trained_piece_size(spec)
    pieces = [range(low, low + size) for low in range(block * BLOCK, (block + 1) * BLOCK, size)]

    def evaluate(indices: range) -> EpisodeRecords:
        return train_piece(inputs, spec, [sampler.episode(i) for i in indices])

    return concatenate(run_side_by_side(evaluate, pieces, inputs.device))


def train_piece(inputs: Inputs, spec: EpisodicSpec, episodes: Sequence[Episode]) -> EpisodeRecords:
    """Outcomes of these episodes, trained together."""
    e, device = spec.episode, inputs.device
    names, indices = (e.stream, inputs.dataset.name), [episode.index for episode in episodes]
    like = torch.empty(0, dtype=DTYPES[spec.head.dtype], device=device)
    start = draws.draw_untrained_heads(names, indices, inputs.features.shape[1], e.n_way, like)
    orders = draws.draw_orders(names, indices, spec.head.epochs, e.n_way * e.k_shot, device)
    labels = torch.arange(e.n_way, device=device).repeat_interleave(e.k_shot)
    support, query = support_and_query(inputs, episodes, start)
    trained = train_heads(support, labels, orders, spec.head)
    records = episode_records(episodes, trained.logits(query), e.n_query)
    return score_dense_queries(
        records, inputs, episodes, reconstruct_heads(inputs, episodes, start, trained)
    )
