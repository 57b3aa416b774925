"""Episodic head `linear`: a new linear classifier on frozen features, trained by SGD.

Source: Guo et al., "A Broader Study of Cross-Domain Few-Shot Learning", ECCV 2020, section 5
(IBM/cdfsl-benchmark, `finetune.py --freeze_backbone`), and its descendants: raw features, PyTorch's
default initialization, SGD as in HeadSpec, top-1 accuracy over all queries at once. The same
classifiers are also scored on all dense queries (protocols/heads/scoring.py). Every setting that
differs between the published codes is listed in protocols/README.md.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from fsbench.core.records import EpisodeRecords, concatenate
from fsbench.core.specs import EpisodicSpec
from fsbench.data.episodes import Episode, EpisodeSampler
from protocols.base import Inputs
from protocols.heads import gram
from protocols.heads.execution import run_side_by_side
from protocols.heads.gram import Gram, UntrainedHeads, support_and_query
from protocols.heads.scoring import make_episode_records, reconstruct_heads, score_dense_queries
from protocols.heads.sgd import TrainedHeads, train_heads

ADAPTATION = "linear"

BLOCK = 200
PIECES = (100, 50, 25, 10, 5, 2)
FEW_IMAGES = 10
"""Most support images of an episode at which a whole block is trained together: operations on less
take microseconds then, and two threads would only wait for each other at Python's lock."""
PREPARED, SCORED = 100, 50
"""Episodes of such a block that one thread prepares before the training, and scores after it."""
GRAM_BYTES = 16 * 2**20
DTYPES = {"float32": torch.float32, "float64": torch.float64}


def block_size(spec: EpisodicSpec, dim: int, device: str = "cpu") -> int:
    """Return 200: a third of the official 600 episodes, seconds of work to repeat after a kill."""
    return BLOCK


def trained_piece_size(spec: EpisodicSpec) -> int:
    """Return the largest of PIECES whose Gram matrices fit into GRAM_BYTES, or a whole block."""
    n = spec.episode.n_way * spec.episode.k_shot
    if n <= FEW_IMAGES:
        return BLOCK
    fits = GRAM_BYTES // (n * n * DTYPES[spec.head.dtype].itemsize)
    return next((size for size in PIECES if size <= fits), PIECES[-1])


class PreparedPiece(NamedTuple):
    """Episodes with all that their heads need: start, order of the support, Gram matrices."""

    episodes: Sequence[Episode]
    start: UntrainedHeads
    orders: Tensor
    support: Gram
    query: Gram


class TrainedPiece(NamedTuple):
    """Episodes whose heads are trained, with their queries."""

    episodes: Sequence[Episode]
    start: UntrainedHeads
    query: Gram
    heads: TrainedHeads

    def split(self, size: int) -> "list[TrainedPiece]":
        """Return pieces of so many episodes."""
        position, share = self.heads
        parts = (slice(low, low + size) for low in range(0, len(self.episodes), size))
        return [
            TrainedPiece(
                self.episodes[part],
                UntrainedHeads(*(whole[part] for whole in self.start)),
                Gram(*(whole[part] for whole in self.query)),
                TrainedHeads(position[part], share),
            )
            for part in parts
        ]


def evaluate_block(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
    """Evaluate the episodes of one block. Raise DataError if the data set is too small."""
    sampler, size = EpisodeSampler.of(spec.episode, inputs.dataset), trained_piece_size(spec)
    episodes = [sampler.episode(i) for i in range(block * BLOCK, (block + 1) * BLOCK)]
    prepare, score = partial(prepare_piece, inputs, spec), partial(score_piece, inputs, spec)

    def evaluate(piece: Sequence[Episode]) -> EpisodeRecords:
        [trained] = train_pieces(spec, [prepare(piece)])
        return score(trained)

    if size < BLOCK:
        pieces = split_into_pieces(episodes, size)
        return concatenate(run_side_by_side(evaluate, pieces, inputs.device))
    prepared = run_side_by_side(prepare, split_into_pieces(episodes, PREPARED), inputs.device)
    [trained] = run_side_by_side(partial(train_pieces, spec), [prepared], inputs.device)
    parts = [part for piece in trained for part in piece.split(SCORED)]
    return concatenate(run_side_by_side(score, parts, inputs.device))


def split_into_pieces(episodes: Sequence[Episode], size: int) -> list[Sequence[Episode]]:
    """Return pieces of so many episodes."""
    return [episodes[low : low + size] for low in range(0, len(episodes), size)]


def prepare_piece(inputs: Inputs, spec: EpisodicSpec, episodes: Sequence[Episode]) -> PreparedPiece:
    """Draw the untrained heads and the order of the images, and multiply the features."""
    e, device = spec.episode, inputs.device
    names, indices = (e.stream, inputs.dataset.name), [episode.index for episode in episodes]
    reference = torch.empty(0, dtype=DTYPES[spec.head.dtype], device=device)
    start = gram.draw_untrained_heads(names, indices, inputs.features.shape[1], e.n_way, reference)
    orders = gram.draw_orders(names, indices, spec.head.epochs, e.n_way * e.k_shot, device)
    return PreparedPiece(episodes, start, orders, *support_and_query(inputs, episodes, start))


def train_pieces(spec: EpisodicSpec, pieces: Sequence[PreparedPiece]) -> list[TrainedPiece]:
    """Train the heads of all these pieces together."""
    support = Gram(*map(torch.cat, zip(*(piece.support for piece in pieces), strict=True)))
    orders = torch.cat([piece.orders for piece in pieces])
    labels = torch.arange(spec.episode.n_way, device=orders.device)
    labels = labels.repeat_interleave(spec.episode.k_shot)
    position, share = train_heads(support, labels, orders, spec.head)
    parts = position.split_with_sizes([len(piece.episodes) for piece in pieces])
    return [
        TrainedPiece(piece.episodes, piece.start, piece.query, TrainedHeads(part, share))
        for piece, part in zip(pieces, parts, strict=True)
    ]


def score_piece(inputs: Inputs, spec: EpisodicSpec, piece: TrainedPiece) -> EpisodeRecords:
    """Return the outcomes of the queries and of all dense queries."""
    episodes, start, query, heads = piece
    records = make_episode_records(episodes, heads.logits(query), spec.episode.n_query)
    return score_dense_queries(
        records, inputs, episodes, reconstruct_heads(inputs, episodes, start, heads)
    )
