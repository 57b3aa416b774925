"""The synthetic experiment of the reinitialization study: its data, recipes and training.

https://arxiv.org/abs/2109.00267, section 1.1: x has 128 values, y is one of 8 classes; the first
three values are +-signal by the bits of y, the others standard normal. 256 training vectors,
gradient descent at 0.05 on all of them, 9 rounds of 200 steps, 20 % of the weights redrawn, N = 3
for LW.

The paper does not state the size of the test set (here 2000), momentum and decay (none), whether
masks include biases (no), the scope of DSD (one global threshold), the layers of FC (the last two)
or a normaliser after the head (none).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fsbench.claims import _runs
from fsbench.core import seeding
from fsbench.data.source import SourceDataset, Split

if TYPE_CHECKING:
    from pretrain.recipes.recipe import Recipe

TRAIN, TEST, VALUES, CLASSES, BITS = 256, 2000, 128, 8, 3
SIDE, ROUNDS, STEPS = 8, 9, 200
METHODS: dict[str, dict[str, object]] = {
    "BL": {"name": "normal"},
    "WELSR": {"name": "welsr"},
    "DSD": {"name": "dsd", "scope": "global"},
    "WELS": {"name": "wels"},
    "FC": {"name": "fc"},
    "LW": {"name": "lw", "repeats": 3, "head_block": True},
}
"""Method and settings by column of Table 1."""


@lru_cache(1)
def draw_source(signal: float, seed: int) -> SourceDataset:
    """Draw the data. Vectors are stored as float images (N, 3, 8, 8), padded with zeros.

    The last draw is cached, because the methods of a table share it.
    """
    train, test = (
        draw_split(signal, n, "synthetic", seed, part) for part, n in enumerate((TRAIN, TEST))
    )
    name = f"synthetic-{signal:g}-{seed}"
    return SourceDataset(
        name=name,
        facts=_runs.describe_generated_data(
            name="synthetic",
            title="Synthetic vectors of the reinitialization study",
            classes=tuple(f"{label:03b}" for label in range(CLASSES)),
            label_rule="the bits of the label are the signs of the first three values",
            license="none",
            citation="The Impact of Reinitialization, section 1.1",
        ),
        train=train,
        val=test,
        n_classes=CLASSES,
        mean=(0.0, 0.0, 0.0),
        std=(1 / 255, 1 / 255, 1 / 255),  # the loader's normalisation changes nothing
        fingerprint=name,
    )


def draw_split(signal: float, n: int, *names: seeding.Name) -> Split:
    """Draw n vectors and labels from the stream `names`, with the same noise at every signal."""
    from scipy.special import ndtri

    labels = (seeding.uniforms((n,), *names, "labels") * CLASSES).astype(np.int64)
    values = np.zeros((n, 3 * SIDE * SIDE), np.float32)
    tiny = np.finfo(np.float64).tiny
    values[:, :VALUES] = ndtri(np.maximum(seeding.uniforms((n, VALUES), *names, "values"), tiny))
    values[:, :BITS] = signal * (2.0 * (labels[:, None] >> np.arange(BITS) & 1) - 1)
    images: Any = values.reshape(n, 3, SIDE, SIDE)
    return Split(images, labels)


def build_column_recipe(column: str, seed: int, architecture: str = "study_mlp") -> "Recipe":
    """Build gradient descent with the method of this column of Table 1."""
    plan = {"rounds": ROUNDS, "epochs": 1, "epoch_images": STEPS * TRAIN}
    return build_descent_recipe((METHODS[column],), plan, seed, architecture=architecture)


def build_descent_recipe(
    methods: Sequence[Mapping[str, object]], plan: Mapping[str, int], seed: int, **fields: object
) -> "Recipe":
    """Build gradient descent with these methods under this plan; fields: other changes."""
    descent: dict[str, object] = {
        "architecture": "study_mlp",
        "source": "synthetic",
        "batch_size": TRAIN,
        "loader": "full_batch",
        "lr": 0.05,
        "momentum": 0.0,
    }
    return _runs.build_claim_recipe(methods, plan, seed, **_runs.PLAIN | descent | fields)


class Accuracies(NamedTuple):
    """Test accuracy, and training accuracy over the steps of the last epoch (%)."""

    test: float
    train: float


def train_columns(
    columns: Sequence[str], signal: float, seed: int, architecture: str = "study_mlp"
) -> list[Accuracies]:
    """Return the accuracies of these columns on one draw of the data, in order.

    Methods whose round 0 is plain training share one copy of it, which changes no bit.
    """
    from pretrain.training import first_round
    from pretrain.training.loop import train_recipe

    data = draw_source(signal, seed)
    scores = []
    with TemporaryDirectory() as folder:
        for column in columns:
            chosen, home = build_column_recipe(column, seed, architecture), Path(folder) / column
            if first_round.can_share_first_round(chosen):
                plain = first_round.shared_recipe(chosen)
                shared = first_round.train_first_round(plain, data, Path(folder) / plain.digest())
                first_round.start_from_first_round(chosen, data, shared, home)
            scores.append(summarize_run(_runs.read_run_files(train_recipe(chosen, data, home))))
    return scores


def train_and_score(chosen: "Recipe", signal: float) -> Accuracies:
    """Train on the data of the recipe's seed."""
    return summarize_run(_runs.train_once(chosen, draw_source(signal, chosen.seed)))


def summarize_run(run: _runs.RunFiles) -> Accuracies:
    """Return the accuracies of a finished run."""
    return Accuracies(100 * run.facts["source_accuracy"], 100 * run.log[-1]["train_accuracy"])
