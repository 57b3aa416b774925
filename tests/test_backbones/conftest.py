"""A small data set of files, a run folder, and a reporter that remembers."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from support import protocols
from support.pretrain import RUN_RECORD
from support.reporters import Recorder

from fsbench import backbones
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureStore
from fsbench.backbones.networks import load_architecture
from fsbench.core.seeding import stream, words
from fsbench.data.base import TargetDataset


@pytest.fixture
def report() -> Recorder:
    return Recorder()


@pytest.fixture
def backbone() -> Backbone:
    return backbones.load_backbone("fsbench/toy_resnet", random_init=0)


@pytest.fixture
def store(tmp_path: Path, report: Recorder) -> FeatureStore:
    return FeatureStore(tmp_path / "cache", batch_size=4, report=report)


@pytest.fixture
def save(tmp_path: Path) -> Callable[[Any], str]:
    """save(tree): the path of a file of torch."""

    def write(tree: Any) -> str:
        torch.save(tree, tmp_path / "weights.pth")
        return str(tmp_path / "weights.pth")

    return write


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
        ids = tuple(f"{i:03}" for i in range(n))
        paths = tuple(f"{i}.png" for i in ids)
        return replace(protocols.target(name, (n,)), root=folder, paths=paths, canonical_ids=ids)

    return make


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """A finished run: toy_resnet of width 4 with five classes."""
    folder = tmp_path / "toy-normal-s0"
    folder.mkdir()
    with stream("test run"):
        model = load_architecture("toy_resnet").build(5, 4)
    save_file(model.state_dict(), folder / "model.safetensors")
    (folder / "run.json").write_text(json.dumps(RUN_RECORD))
    return folder
