"""Shared part of the episodic heads that are fitted to frozen features without SGD steps.

The file `protocols/episodic/<name>.py` of such a head holds its settings (a FittedSpec) and

    fit(settings, support (E, n_way, k_shot, D)) -> classify
    classify(images (E, m, D)) -> scores (E, m, n_way), the highest is the prediction

for E episodes at once. The fit of a transductive head also receives all queries (E, q, D); other
heads never see them, so they are inductive by construction. Inductive heads that return a
LinearClassifier are also scored on all dense queries (protocols/heads/scoring.py). Settings of a
head whose outcomes stay the same at any scale of raw features declare SCALE_FREE. Everything is
float64 on the CPU, where it takes seconds and no bit depends on an accelerator. torch is imported
inside functions because readers of results need the settings only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from fsbench.core.records import EpisodeRecords, concatenate
from fsbench.core.specs import EpisodicSpec, FittedSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from fsbench.data.episodes import Episode
    from protocols.base import Inputs
    from protocols.heads.gram import UntrainedHeads

    Classifier = Callable[[Tensor], Tensor]
    Fit = Callable[..., Classifier]
    Evaluate = Callable[[Inputs, EpisodicSpec, int], EpisodeRecords]

BLOCK = 200
"""Episodes per block, as for `linear`."""
HALF = 100
"""Episodes whose dense queries are scored at once."""
PIECES = (100, 50, 25, 10, 5, 2)
FEATURE_BYTES = 16 * 2**20
SHORTEST = 1e-12
"""Shortest length that a feature vector is divided by: zero vectors stay zero."""


@dataclass(frozen=True, eq=False)
class LinearClassifier:
    """Classifiers linear in the features: weight (E, D, n_way) and bias (E, n_way)."""

    weight: "Tensor"
    bias: "Tensor"

    def __call__(self, images: "Tensor") -> "Tensor":
        from torch import baddbmm

        return baddbmm(self.bias[:, None], images, self.weight)


def make_protocol(fit: "Fit") -> "tuple[Callable[..., int], Evaluate]":
    """Return block_size and evaluate_block of the head that `fit` fits."""
    return lambda spec, dim, device="cpu": BLOCK, partial(evaluate_fitted_block, fit)


def fitted_piece_size(spec: EpisodicSpec, dim: int) -> int:
    """Return the largest of PIECES whose features fit into FEATURE_BYTES."""
    e = spec.episode
    fits = FEATURE_BYTES // (8 * dim * e.n_way * (e.k_shot + e.n_query))
    return next((size for size in PIECES if size <= fits), PIECES[-1])


def evaluate_fitted_block(
    fit: "Fit", inputs: "Inputs", spec: EpisodicSpec, block: int
) -> EpisodeRecords:
    """Evaluate the episodes of one block. Raise DataError if the data set is too small."""
    from threadpoolctl import threadpool_limits

    from fsbench.data.episodes import EpisodeSampler  # not where a board only names heads
    from protocols.heads.execution import run_side_by_side

    sampler = EpisodeSampler.of(spec.episode, inputs.dataset)
    prepared = prepare_inputs(inputs, spec)
    halves = [range(low, low + HALF) for low in range(block * BLOCK, (block + 1) * BLOCK, HALF)]

    def evaluate(indices: range) -> EpisodeRecords:
        return evaluate_episodes(fit, prepared, spec, [sampler.episode(i) for i in indices])

    with threadpool_limits(1, user_api="blas"):  # scikit-learn's products, as side_by_side torch's
        return concatenate(run_side_by_side(evaluate, halves, prepared.device))


def prepare_inputs(inputs: "Inputs", spec: EpisodicSpec) -> "Inputs":
    """Return the inputs on the CPU, with features normalized as the settings say."""
    import numpy as np

    features = inputs.features
    if spec.fitted is not None and spec.fitted.normalize == "l2":
        squares = np.einsum("nd,nd->n", features, features, dtype=np.float64)
        lengths = np.maximum(np.sqrt(squares), SHORTEST).astype(np.float32)
        features = features / lengths[:, None]
    return replace(inputs, features=features, device="cpu")


def evaluate_episodes(
    fit: "Fit", inputs: "Inputs", spec: EpisodicSpec, episodes: "Sequence[Episode]"
) -> EpisodeRecords:
    """Evaluate these episodes, fitted piece by piece."""
    size = fitted_piece_size(spec, inputs.features.shape[1])
    pieces = [episodes[low : low + size] for low in range(0, len(episodes), size)]
    fitted = [fit_piece(fit, inputs, spec, piece) for piece in pieces]
    records = concatenate([part for part, _ in fitted])
    heads = [classify for _, classify in fitted if isinstance(classify, LinearClassifier)]
    if spec.transductive or not heads:
        return records
    from protocols.heads.scoring import score_dense_queries

    return score_dense_queries(records, inputs, episodes, stack_heads(heads))


def fit_piece(
    fit: "Fit", inputs: "Inputs", spec: EpisodicSpec, episodes: "Sequence[Episode]"
) -> "tuple[EpisodeRecords, Classifier]":
    """Fit these episodes together; return their records and the classifier."""
    from protocols.heads.scoring import make_episode_records

    settings = spec.fitted or FittedSpec()
    images = [episode.images(inputs.dataset.by_class) for episode in episodes]
    support, query = (stack_features(inputs.features, part) for part in zip(*images, strict=True))
    query = query.flatten(1, 2)
    classify = fit(settings, support, *((query,) if settings.transductive else ()))
    return make_episode_records(episodes, classify(query), spec.episode.n_query), classify


def stack_features(
    features: "NDArray[np.float32]", images: "Sequence[NDArray[np.int64]]"
) -> "Tensor":
    """Return features (E, n_way, m, D) of the images (n_way, m) of each episode."""
    import numpy as np
    import torch

    return torch.from_numpy(features[np.stack(images)]).double()


def stack_heads(heads: Sequence[LinearClassifier]) -> "UntrainedHeads":
    """Stack all classifiers, with zero rows for the padding of features."""
    import torch
    from torch.nn.functional import pad

    from protocols.heads.gram import UntrainedHeads, padded_dim

    weight = torch.cat([head.weight for head in heads])
    bias = torch.cat([head.bias for head in heads])
    return UntrainedHeads(
        pad(weight, (0, 0, 0, padded_dim(weight.shape[1]) - weight.shape[1])), bias
    )


def one_hot_labels(support: "Tensor") -> "Tensor":
    """Return one-hot labels (n_way * k_shot, n_way) of the support images, class by class."""
    import torch

    n_way, k_shot = support.shape[1:3]
    return torch.eye(n_way, dtype=support.dtype).repeat_interleave(k_shot, dim=0)
