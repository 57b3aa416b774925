"""Episodic protocols whose head is fitted to frozen features in one go: what they share.

A file of one, `finetune_<name>.py`, holds its settings (a FittedSpec) and a function

    fit(settings, support (E, n_way, k_shot, D)) -> classify
    classify(images (E, m, D)) -> scores (E, m, n_way), the highest is the prediction

for E episodes at once. The fit of a transductive head is given all queries (E, q, D) as well; no
other one is shown them, so that `inductive` is a fact and no promise. Everything is float64 on the
CPU, where it takes seconds and no bit depends on an accelerator. torch is imported inside functions
because whoever reads a result needs the settings alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fsbench.data.episodes import Episode, EpisodeSampler
from fsbench.records import EpisodeRecords, concatenate
from fsbench.specs import EpisodicSpec, FittedSpec
from protocols.base import Inputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    Classifier = Callable[[Tensor], Tensor]
    Fit = Callable[..., Classifier]

BLOCK = 200
PIECES = (100, 50, 25, 10, 5, 2)
FEATURE_BYTES = 16 * 2**20


def protocol(
    fit: Fit,
) -> tuple[
    Callable[[EpisodicSpec, int], int], Callable[[Inputs, EpisodicSpec, int], EpisodeRecords]
]:
    """block_size and evaluate_block of the head that `fit` fits."""

    def evaluate(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
        return evaluate_block(fit, inputs, spec, block)

    return block_size, evaluate


def block_size(spec: EpisodicSpec, dim: int) -> int:
    """Always 200, as for `linear`."""
    return BLOCK


def piece_size(spec: EpisodicSpec, dim: int) -> int:
    """Episodes fitted together: the largest of PIECES whose features fit into FEATURE_BYTES."""
    e = spec.episode
    fits = FEATURE_BYTES // (8 * dim * e.n_way * (e.k_shot + e.n_query))
    return next((size for size in PIECES if size <= fits), PIECES[-1])


def evaluate_block(fit: Fit, inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
    """Outcomes of the episodes of one block. Raises DataError if the data set is too small."""
    from threadpoolctl import threadpool_limits

    from protocols.pieces import side_by_side

    sampler = EpisodeSampler.of(spec.episode, inputs.dataset)
    size = piece_size(spec, inputs.features.shape[1])
    pieces = [range(low, low + size) for low in range(block * BLOCK, (block + 1) * BLOCK, size)]

    def evaluate(indices: range) -> EpisodeRecords:
        return evaluate_piece(fit, inputs, spec, [sampler.episode(i) for i in indices])

    with threadpool_limits(1, user_api="blas"):  # scikit-learn's products, as side_by_side torch's
        return concatenate(side_by_side(evaluate, pieces, "cpu"))


def evaluate_piece(
    fit: Fit, inputs: Inputs, spec: EpisodicSpec, episodes: Sequence[Episode]
) -> EpisodeRecords:
    """Outcomes of these episodes, fitted together."""
    from protocols.outcomes import episode_records

    settings = spec.fitted or FittedSpec()
    found = [episode.images(inputs.dataset.by_class) for episode in episodes]
    support, query = (read(inputs.features, part, settings) for part in zip(*found, strict=True))
    query = query.flatten(1, 2)
    classify = fit(settings, support, *((query,) if settings.transductive else ()))
    return episode_records(episodes, classify(query), spec.episode.n_query)


def read(
    features: NDArray[np.float32], images: Sequence[NDArray[np.int64]], settings: FittedSpec
) -> Tensor:
    """Features (E, n_way, m, D) of the images (n_way, m) of each episode."""
    import numpy as np
    import torch
    from torch.nn.functional import normalize

    found = torch.from_numpy(features[np.stack(images)]).double()
    return normalize(found, dim=-1) if settings.normalize == "l2" else found


def one_hot(support: Tensor) -> Tensor:
    """Labels (n_way * k_shot, n_way) of the support images, class by class."""
    import torch

    n_way, k_shot = support.shape[1:3]
    return torch.eye(n_way, dtype=support.dtype).repeat_interleave(k_shot, dim=0)
