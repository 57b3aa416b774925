"""A small data set of files, a run folder, and a reporter that remembers."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from safetensors.torch import save_file

from fsbench import backbones
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureStore
from fsbench.backbones.networks import load_architecture
from fsbench.core.seeding import stream, words
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts


class Remembering:
    """A Reporter that keeps log lines and tasks as (what, total, done before, advanced)."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tasks: list[list[Any]] = []

    def log(self, text: str) -> None:
        self.lines.append(text)

    @contextmanager
    def task(self, what: str, total: int, unit: str, done: int = 0) -> Iterator[Any]:
        task: list[Any] = [what, total, done, 0]
        self.tasks.append(task)

        def advance(n: int) -> None:
            task[3] += n

        yield advance

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@pytest.fixture
def report() -> Remembering:
    return Remembering()


@pytest.fixture
def backbone() -> Backbone:
    return backbones.load_backbone("fsbench/toy_resnet", random_init=0)


@pytest.fixture
def store(tmp_path: Path, report: Remembering) -> FeatureStore:
    return FeatureStore(tmp_path / "cache", batch_size=4, report=report)


@pytest.fixture
def pictures(tmp_path: Path) -> Callable[..., TargetDataset]:
    """pictures(n, seed): n noise images of 20 px as PNG files, one class."""

    def make(n: int, *, name: str = "noise", changed: int = -1) -> TargetDataset:
        folder = tmp_path / name
        folder.mkdir()
        for i in range(n):
            bits = words(20 * 20 * 3, "picture", i, int(i == changed))
            pixels = (bits >> np.uint64(56)).astype(np.uint8).reshape(20, 20, 3)
            Image.fromarray(pixels).save(folder / f"{i:03}.png")
        paths = tuple(f"{i:03}.png" for i in range(n))
        facts = DatasetFacts(
            name=name,
            title=name,
            domain="target",
            classes=("a",),
            images_per_class=(n,),
            label_rule="one class",
            layout="files",
            folders=(name,),
            download="none",
            license="none",
            citation="none",
            homepage="none",
        )
        ids = tuple(path.removesuffix(".png") for path in paths)
        labels = np.zeros(n, dtype=np.int64)
        return TargetDataset(name, facts, folder, paths, ids, labels, ("a",))

    return make


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A finished run: toy_resnet of width 4 with five classes."""
    folder = tmp_path / "toy-normal-s0"
    folder.mkdir()
    with stream("test run"):
        model = load_architecture("toy_resnet").build(5, 4)
    save_file(model.state_dict(), folder / "model.safetensors")
    record = {
        "recipe": "toy/normal",
        "recipe_digest": "ab" * 32,
        "architecture": "toy_resnet",
        "width": 4,
        "n_classes": 5,
        "input_size": 24,
        "mean": [0.4, 0.5, 0.6],
        "std": [0.2, 0.3, 0.4],
        "source": "toy_source",
        "source_accuracy": 0.75,
        "steps": 30,
        "flags": [],
    }
    (folder / "run.json").write_text(json.dumps(record))
    return folder
