"""What feature extraction refuses, and its blocks and locks."""

import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fsbench import backbones
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import (
    FeatureRequest,
    FeatureStore,
    feature_block_size,
)
from fsbench.core.arrays import lock_folder
from fsbench.core.errors import CheckpointError, DataError, UsageError
from fsbench.core.specs import ImageSpec
from fsbench.data.base import TargetDataset

Pictures = Callable[..., TargetDataset]
SMALL = ImageSpec(input_size=16)
PRINT = "0" * 64


class Sick(nn.Module):
    """One feature an image, NaN from the given call on; or the same for all."""

    def __init__(self, sick_call: int | None) -> None:
        super().__init__()
        self.calls, self.sick_call = 0, sick_call

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.sick_call is None:
            return torch.ones(len(x), 64)
        bad = float("nan") if self.calls > self.sick_call else 0.0
        return x.mean((2, 3)).repeat(1, 22)[:, :64] + bad


def test_features_that_are_not_finite_are_refused(
    backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    with pytest.raises(CheckpointError, match=r"fsbench/toy_resnet gives NaN.*images 4 to 5"):
        store.get(FeatureRequest(replace(backbone, module=Sick(2)), pictures(6), SMALL, PRINT))
    assert not list(store.folder.glob("*/meta.json"))


def test_constant_features_are_refused(
    backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    with pytest.raises(CheckpointError, match=r"fsbench/toy_resnet gives the same features"):
        store.get(FeatureRequest(replace(backbone, module=Sick(None)), pictures(6), SMALL, PRINT))
    assert not list(store.folder.glob("*/meta.json"))


def test_a_size_that_the_network_does_not_take(pictures: Pictures, store: FeatureStore) -> None:
    fixed = backbones.load_backbone("timm/test_vit_relpos", random_init=0)
    with pytest.raises(
        UsageError, match="takes no images of 16 px, it was trained at 160"
    ) as caught:
        store.get(FeatureRequest(fixed, pictures(4), SMALL, PRINT))
    assert "--input-size native" in caught.value.fix


def test_a_corrupt_image_is_named(
    backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    dataset = pictures(6)
    (dataset.root / "004.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"004\.png"):
        store.get(FeatureRequest(backbone, dataset, SMALL, PRINT))


def test_a_batch_of_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a batch size of 1"):
        FeatureStore(tmp_path, batch_size=1)


def test_the_block_size_is_a_function_of_the_shapes() -> None:
    """About 2**22 pixels a block, half for wide networks, between 8 and 128 images."""
    assert [feature_block_size(512, s) for s in (32, 64, 224, 384, 1024)] == [128, 128, 64, 16, 8]
    assert [feature_block_size(2048, s) for s in (32, 64, 224, 384, 1024)] == [128, 128, 32, 8, 8]


def hold(folder: Path, started: Any, release: Any) -> None:
    from fsbench.core.progress import SILENT

    with lock_folder(folder, SILENT):
        started.set()
        release.wait(20)


def test_two_processes_do_not_extract_at_once(tmp_path: Path, report: Any) -> None:
    context = multiprocessing.get_context("fork")
    started, release = context.Event(), context.Event()
    holder = context.Process(target=hold, args=(tmp_path / "key", started, release))
    holder.start()
    assert started.wait(20)
    report.log = lambda text: (report.lines.append(text), release.set())
    with lock_folder(tmp_path / "key", report):
        assert release.is_set()
    holder.join(20)
    assert "waiting" in report.text
