"""The synthetic experiment of the reinitialization study: its data and gradient descent.

https://arxiv.org/abs/2109.00267, section 1.1: of 128 values the first three are +-signal by the
bits of one of 8 classes, the others standard normal. The paper does not state the size of the test
set (here 2000), momentum and decay (none), whether masks include biases (no), the scope of DSD (one
global threshold), the layers of FC (the last two) or a normaliser after the head (none).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtri

from fsbench.claims._training import PLAIN, build_claim_recipe, make_source
from fsbench.core import seeding
from fsbench.data.source import SourceDataset, Split
from pretrain.recipes.recipe import Recipe

TRAIN, TEST, VALUES, CLASSES, BITS = 256, 2000, 128, 8, 3
SIDE, ROUNDS, STEPS = 8, 9, 200


def draw_source(signal: float, seed: int) -> SourceDataset:
    """Draw the data. Vectors are stored as float images (N, 3, 8, 8), padded with zeros."""
    sizes = enumerate((TRAIN, TEST))
    train, test = (draw_split(signal, n, "synthetic", seed, part) for part, n in sizes)
    classes = [f"{label:03b}" for label in range(CLASSES)]
    scale = 0.0, 1 / 255  # the loader's normalisation changes nothing
    return make_source(f"synthetic-{signal:g}-{seed}", train, test, classes, scale)


def draw_split(signal: float, n: int, *names: seeding.Name) -> Split:
    """Draw n vectors and labels from the stream `names`, with the same noise at every signal."""
    labels = (seeding.uniforms((n,), *names, "labels") * CLASSES).astype(np.int64)
    values = np.zeros((n, 3 * SIDE * SIDE), np.float32)
    tiny = np.finfo(np.float64).tiny
    values[:, :VALUES] = ndtri(np.maximum(seeding.uniforms((n, VALUES), *names, "values"), tiny))
    values[:, :BITS] = signal * (2.0 * (labels[:, None] >> np.arange(BITS) & 1) - 1)
    return Split(values.reshape(n, 3, SIDE, SIDE), labels)  # type: ignore[arg-type]


def build_descent_recipe(
    methods: Sequence[Mapping[str, object]], plan: Mapping[str, int], seed: int, **fields: object
) -> Recipe:
    """Build gradient descent with these methods under this plan; fields: other changes."""
    data = {"source": "synthetic", "batch_size": TRAIN, "loader": "full_batch"}
    descent = {"architecture": "study_mlp", "lr": 0.05, "momentum": 0.0}
    return build_claim_recipe(methods, plan, seed, **PLAIN | data | descent | fields)
