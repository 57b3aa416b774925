"""A tiny source and tiny recipes: a whole run takes a fraction of a second."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from support.protocols import describe_images
from torch import Tensor

from fsbench.core.progress import SILENT
from fsbench.core.seeding import words
from fsbench.data import SourceDataset, Split
from pretrain.recipes import registry, schedules
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import PublishedFigure, Recipe
from pretrain.training import loop
from pretrain.training.loop import Trainer, train_recipe

SIDE, CLASSES = 8, 4
TINY = (
    "width=8",
    "input_size=8",
    "batch_size=8",
    "plan.rounds=2",
    "plan.epochs=4",
    "plan.epoch_images=16",
)
"""Two steps an epoch, eight epochs; SEAL ascends in the first epoch of the second round."""


RUN_RECORD = {
    "recipe": "toy/normal", "recipe_digest": "ab" * 32, "architecture": "toy_resnet", "width": 4,
    "normalizers": {}, "n_classes": 5, "input_size": 24, "mean": [0.4, 0.5, 0.6],
    "std": [0.2, 0.3, 0.4], "source": "toy_source", "source_accuracy": 0.75, "steps": 30,
}  # fmt: skip
"""run.json of a finished run of toy_resnet with five classes."""


def published_figures(name: str) -> tuple[PublishedFigure, ...]:
    """The accuracies that papers print for a recipe."""
    row = registry.find_paper_row(name)
    return row.figures if row else ()


def drop_epochs(recipe: Recipe) -> tuple[int, ...]:
    """The epochs of a round at whose start a `step` schedule drops the rate."""
    clocks = [TrainingClock(recipe.plan, epoch=epoch) for epoch in range(recipe.plan.epochs)]
    return tuple(clock.epoch for clock in clocks if schedules.lr_drop(recipe, clock, 1))


TASKS = ("way=2", "shots=1", "queries=1", "val_episodes=2")
"""What makes two tasks of a batch of a meta-learner."""


def split(n: int, name: str) -> Split:
    """Random images whose brightness tells the class."""
    labels = np.arange(n, dtype=np.int64) % CLASSES
    noise = words(n * 3 * SIDE * SIDE, "tiny", name).astype(np.uint64) % np.uint64(64)
    images = noise.reshape(n, 3, SIDE, SIDE) + labels[:, None, None, None].astype(np.uint64) * 48
    return Split(images.astype(np.uint8), labels)


@cache
def source() -> SourceDataset:
    """40 training and 12 validation images of 8 px, four classes."""
    return SourceDataset(
        name="tiny",
        facts=describe_images("tiny", "abcd", 10, "source"),
        train=split(40, "train"),
        val=split(12, "val"),
        mean=(0.4, 0.5, 0.6),
        std=(0.2, 0.25, 0.3),
        fingerprint="0" * 64,
    )


def tiny(method: str, *assignments: str) -> Recipe:
    """tiny("seal", "lr=0.1"): the toy recipe of a method, shrunk to the tiny source.

    Skips the test for a meta-learner where learn2learn is missing.
    """
    toy = registry.load_recipe(f"toy/{method}")
    texts = [*TINY, *(f"{method}.{text}" for text in TASKS if toy.loader == "episodes")]
    if toy.loader == "episodes":
        pytest.importorskip("learn2learn", reason="meta-learners need it: make meta")
    named = [text.partition("=")[0] for text in assignments]
    defaults = [text for text in texts if text.partition("=")[0] not in named]
    return toy.override([*defaults, *assignments])


def train(
    out: Path, method: str, *assignments: str, data: SourceDataset | None = None, **options: Any
) -> Path:
    """Train tiny(method, *assignments) in `out`, on the tiny source or other data."""
    return train_recipe(tiny(method, *assignments), data or source(), out, **options)


def record(run: Path) -> dict[str, Any]:
    """run.json of a finished run."""
    facts: dict[str, Any] = json.loads((run / "run.json").read_text())
    return facts


def weights(run: Path) -> dict[str, Tensor]:
    """The exported tensors of a finished run."""
    return load_file(run / "model.safetensors")


def lines(run: Path, name: str = "log.jsonl") -> list[dict[str, Any]]:
    """A line log of a run."""
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


def equal(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> bool:
    """The same names and the same bits."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


EASY = ("plan.stop_accuracy=0.5", "plan.epoch_images=40", "plan.epochs=12", "width=4")
"""Two of four classes apart ends a round: reached within a few epochs, in some rounds at once."""


def assert_same_run(ours: Path, theirs: Path) -> None:
    """Two finished runs have the same bytes of weights and logs, and the same totals."""
    for name in ("model.safetensors", "log.jsonl", "rewrites.jsonl"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    for name in ("flops", "event_flops", "samples", "steps", "rounds"):
        assert record(ours)[name] == record(theirs)[name], name


class Killed(Exception):
    """Stands for a kill in the tests that stop a run from inside."""


def trainer(recipe: Recipe, out: Path) -> Trainer:
    """A started trainer, to be driven epoch by epoch or step by step."""
    out.mkdir(parents=True, exist_ok=True)
    made = Trainer(recipe, source(), out, torch.device("cpu"), SILENT)
    made._start()
    return made


def epochs(made: Trainer, n: int) -> None:
    """Run n whole epochs."""
    for _ in range(n):
        made._epoch(lambda images: None)


def killed_at(
    step: int,
    recipe: Recipe,
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    data: SourceDataset | None = None,
    device: str = "cpu",
) -> None:
    """Train in `out` with a checkpoint after every step, and die before step `step`."""
    take = Trainer._step

    def stepping(self: Trainer, steps: int) -> None:
        if self.ctx.clock.step == step:
            raise Killed
        take(self, steps)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_step", stepping)
        patch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
        patch.setattr(loop, "GPU_CHECK_STEPS", 1)
        with pytest.raises(Killed):
            train_recipe(recipe, data or source(), out, device=device)
