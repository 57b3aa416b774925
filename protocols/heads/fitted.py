"""Episodic protocols whose head is fitted to frozen features in one go: what they share.

A file of one, `protocols/episodic/<name>.py`, holds its settings (a FittedSpec) and a function

    fit(settings, support (E, n_way, k_shot, D)) -> classify
    classify(images (E, m, D)) -> scores (E, m, n_way), the highest is the prediction

for E episodes at once. The fit of a transductive head is given all queries (E, q, D) as well; no
other one is shown them, so that `inductive` is a fact and no promise. Inductive heads that return a
Linear are scored on all other possible queries too (protocols/heads/scoring.py). Everything is
float64 on
the CPU, where it takes seconds and no bit depends on an accelerator. torch is imported inside
functions because whoever reads a result needs the settings alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fsbench.core.records import EpisodeRecords, concatenate
from fsbench.core.specs import EpisodicSpec, FittedSpec
from fsbench.data.episodes import Episode, EpisodeSampler
from protocols.base import Inputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from protocols.heads.gram import UntrainedHeads

    Classifier = Callable[[Tensor], Tensor]
    Fit = Callable[..., Classifier]

BLOCK = 200
HALF = 100
"""Episodes that meet the whole data set at once, for their dense queries."""
PIECES = (100, 50, 25, 10, 5, 2)
FEATURE_BYTES = 16 * 2**20
SHORTEST = 1e-12
"""Length below which a feature vector is not scaled to 1: zeros stay zeros."""


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """A classifier that is linear in the features: weight (E, D, n_way) and bias (E, n_way)."""

    weight: Tensor
    bias: Tensor

    def __call__(self, images: Tensor) -> Tensor:
        from torch import baddbmm

        return baddbmm(self.bias[:, None], images, self.weight)


def make_protocol(
    fit: Fit,
) -> tuple[
    Callable[[EpisodicSpec, int], int], Callable[[Inputs, EpisodicSpec, int], EpisodeRecords]
]:
    """block_size and evaluate_block of the head that `fit` fits."""

    def evaluate(inputs: Inputs, spec: EpisodicSpec, block: int) -> EpisodeRecords:
        return evaluate_fitted_block(fit, inputs, spec, block)

    return fitted_block_size, evaluate


def fitted_block_size(spec: EpisodicSpec, dim: int) -> int:
    """Always 200, as for `linear`."""
    return BLOCK


def fitted_piece_size(spec: EpisodicSpec, dim: int) -> int:
    """Episodes fitted together: the largest of PIECES whose features fit into FEATURE_BYTES."""
    e = spec.episode
    fits = FEATURE_BYTES // (8 * dim * e.n_way * (e.k_shot + e.n_query))
    return next((size for size in PIECES if size <= fits), PIECES[-1])


def evaluate_fitted_block(
    fit: Fit, inputs: Inputs, spec: EpisodicSpec, block: int
) -> EpisodeRecords:
    """Outcomes of the episodes of one block. Raises DataError if the data set is too small."""
    from threadpoolctl import threadpool_limits

    from protocols.heads.execution import run_side_by_side

    sampler = EpisodeSampler.of(spec.episode, inputs.dataset)
    given = prepare_inputs(inputs, spec)
    halves = [range(low, low + HALF) for low in range(block * BLOCK, (block + 1) * BLOCK, HALF)]

    def evaluate(indices: range) -> EpisodeRecords:
        return evaluate_episodes(fit, given, spec, [sampler.episode(i) for i in indices])

    with threadpool_limits(1, user_api="blas"):  # scikit-learn's products, as side_by_side torch's
        return concatenate(run_side_by_side(evaluate, halves, given.device))


def prepare_inputs(inputs: Inputs, spec: EpisodicSpec) -> Inputs:
    """On the CPU, with features scaled as the settings say."""
    import numpy as np

    features = inputs.features
    if spec.fitted is not None and spec.fitted.normalize == "l2":
        squares = np.einsum("nd,nd->n", features, features, dtype=np.float64)
        lengths = np.maximum(np.sqrt(squares), SHORTEST).astype(np.float32)
        features = features / lengths[:, None]
    return replace(inputs, features=features, device="cpu")


def evaluate_episodes(
    fit: Fit, inputs: Inputs, spec: EpisodicSpec, episodes: Sequence[Episode]
) -> EpisodeRecords:
    """Outcomes of these episodes, fitted piece by piece."""
    size = fitted_piece_size(spec, inputs.features.shape[1])
    pieces = [episodes[low : low + size] for low in range(0, len(episodes), size)]
    found = [fit_piece(fit, inputs, spec, piece) for piece in pieces]
    records = concatenate([part for part, _ in found])
    heads = [classify for _, classify in found if isinstance(classify, LinearClassifier)]
    if spec.transductive or not heads:
        return records
    from protocols.heads.scoring import score_dense_queries

    return score_dense_queries(records, inputs, episodes, stack_heads(heads))


def fit_piece(
    fit: Fit, inputs: Inputs, spec: EpisodicSpec, episodes: Sequence[Episode]
) -> tuple[EpisodeRecords, Classifier]:
    """Outcomes of these episodes, fitted together, and what was fitted."""
    from protocols.heads.scoring import episode_records

    settings = spec.fitted or FittedSpec()
    found = [episode.images(inputs.dataset.by_class) for episode in episodes]
    support, query = (stack_features(inputs.features, part) for part in zip(*found, strict=True))
    query = query.flatten(1, 2)
    classify = fit(settings, support, *((query,) if settings.transductive else ()))
    return episode_records(episodes, classify(query), spec.episode.n_query), classify


def stack_features(features: NDArray[np.float32], images: Sequence[NDArray[np.int64]]) -> Tensor:
    """Features (E, n_way, m, D) of the images (n_way, m) of each episode."""
    import numpy as np
    import torch

    return torch.from_numpy(features[np.stack(images)]).double()


def stack_heads(heads: Sequence[LinearClassifier]) -> UntrainedHeads:
    """All heads as protocols/heads/scoring.py takes them: rows of zeros meet the padding of
    features."""
    import torch
    from torch.nn.functional import pad

    from protocols.heads.gram import UntrainedHeads, padded_dim

    weight = torch.cat([head.weight for head in heads])
    bias = torch.cat([head.bias for head in heads])
    return UntrainedHeads(
        pad(weight, (0, 0, 0, padded_dim(weight.shape[1]) - weight.shape[1])), bias
    )


def one_hot_labels(support: Tensor) -> Tensor:
    """Labels (n_way * k_shot, n_way) of the support images, class by class."""
    import torch

    n_way, k_shot = support.shape[1:3]
    return torch.eye(n_way, dtype=support.dtype).repeat_interleave(k_shot, dim=0)
