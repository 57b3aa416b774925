"""Flowers-102 on a small tree in the official layout, .mat files included."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat
from torchvision.datasets import Flowers102

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, load_target
from fsbench.data.splits import split_dataset
from fsbench.data.targets.flowers102 import FACTS

LABELS = [77, 1, 102, 1, 5]
"""Of images 1 to 5, counted from 1."""


@pytest.fixture
def tree(tmp_path: Path, draw: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Train: image 4 and 1; validation: 3; test: 2 and 5. torchvision's hashes are switched off."""
    files = {key: (name, None) for key, (name, _) in Flowers102._file_dict.items()}
    monkeypatch.setattr(Flowers102, "_file_dict", files)
    base = tmp_path / "flowers-102"
    for n in range(1, 6):
        draw(base / "jpg" / f"image_{n:05d}.jpg")
    savemat(base / "imagelabels.mat", {"labels": np.array([LABELS], np.uint8)})
    ids = {"trnid": [4, 1], "valid": [3, 3], "tstid": [2, 5]}
    savemat(base / "setid.mat", {name: np.array([row], np.uint16) for name, row in ids.items()})
    return tmp_path


def test_parts_labels_and_ids(tree: Path) -> None:
    dataset = load_target("flowers102", DataRoots.parse([str(tree)]))
    assert dataset.canonical_ids == (
        "test/image_00002.jpg",
        "train/image_00004.jpg",
        "test/image_00005.jpg",
        "train/image_00001.jpg",
    )
    assert dataset.labels.tolist() == [0, 0, 4, 76]
    train, test = split_dataset(dataset)
    assert (train.tolist(), test.tolist()) == ([1, 3], [0, 2])
    assert dataset.class_names[76] == "passion flower"
    assert dataset.flags == {"subset"}
    assert "2 of 1020 train images and 2 of 6149 test images are present" in dataset.notes[0]
    assert dataset.image(3).mode == "RGB"


def test_the_mats_are_checked_by_hash(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"image": ("102flowers.tgz", None), "setid": ("setid.mat", None)}
    monkeypatch.setattr(Flowers102, "_file_dict", files | {"label": ("imagelabels.mat", "0" * 32)})
    with pytest.raises(DataError, match=r"lacks the official imagelabels.mat and setid.mat"):
        load_target("flowers102", DataRoots.parse([str(tree)]))


def test_missing_images_are_counted_and_missing_folders_named(tree: Path, tmp_path: Path) -> None:
    (tree / "flowers-102" / "jpg" / "image_00005.jpg").unlink()
    dataset = load_target("flower102", DataRoots.parse([f"flowers102={tree / 'flowers-102'}"]))
    assert "1 of 6149 test images are present; the lists name 4" in dataset.notes[0]
    (tmp_path / "x" / "flowers102").mkdir(parents=True)
    with pytest.raises(DataError, match=r"lacks flowers-102/jpg"):
        load_target("flowers102", DataRoots.parse([str(tmp_path / "x")]))


def test_the_facts_are_torchvisions() -> None:
    assert FACTS.classes == tuple(Flowers102.classes)
