"""Stanford Dogs on a small tree in the official layout, lists as MATLAB cell arrays."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, load_target
from fsbench.data.splits import split_dataset
from fsbench.data.targets.dogs import FACTS

LAST = "n02116738-African_hunting_dog"
TRAIN = {f"{LAST}/n02116738_1.jpg": 120, "n02085620-Chihuahua/n02085620_5927.jpg": 1}
TEST = {"n02085620-Chihuahua/n02085620_7.jpg": 1, "n02085782-Japanese_spaniel/n02085782_1.jpg": 2}


def write_list(path: Path, entries: dict[str, int]) -> None:
    """file_list is an N x 1 cell array of texts, labels an N x 1 array counted from 1."""
    cells = np.empty((len(entries), 1), dtype=object)
    cells[:, 0] = list(entries)
    labels = np.array(list(entries.values()), np.uint8)[:, None]
    savemat(path, {"file_list": cells, "annotation_list": cells, "labels": labels})


@pytest.fixture
def tree(tmp_path: Path, draw: Callable[..., Path]) -> Path:
    folder = tmp_path / "stanford_dogs"
    for name in TRAIN | TEST:
        draw(folder / "Images" / name)
    write_list(folder / "train_list.mat", TRAIN)
    write_list(folder / "test_list.mat", TEST)
    return folder


def test_labels_count_from_one_in_the_lists_and_from_zero_here(tree: Path) -> None:
    dataset = load_target("stanford-dogs", DataRoots.parse([str(tree.parent)]))
    train, test = split_dataset(dataset)
    assert [dataset.canonical_ids[i] for i in train] == [f"train/{name}" for name in [*TRAIN][::-1]]
    assert dataset.labels[train].tolist() == [0, 119]
    assert dataset.labels[test].tolist() == [0, 1]
    assert dataset.class_names[119] == LAST
    assert dataset.paths[0].startswith("Images/n02085620-Chihuahua/")
    assert dataset.flags == {"subset"}


def test_breeds_are_in_the_order_of_their_wnids() -> None:
    assert list(FACTS.classes) == sorted(FACTS.classes)
    assert not any(name.startswith("n02110341") for name in FACTS.classes), "it has no dalmatian"


@pytest.mark.parametrize("shift", [-1, 1])
def test_labels_that_are_not_those_of_the_folders_are_refused(tree: Path, shift: int) -> None:
    write_list(tree / "test_list.mat", {name: label + shift for name, label in TEST.items()})
    with pytest.raises(DataError, match=r"test_list.mat: the label of .* is not that of its"):
        load_target("dogs", DataRoots.parse([str(tree.parent)]))


def test_damaged_and_missing_lists_are_named(tree: Path) -> None:
    (tree / "train_list.mat").write_bytes(b"no mat")
    with pytest.raises(DataError, match=r"cannot read .*train_list.mat"):
        load_target("dogs", DataRoots.parse([str(tree.parent)]))
    savemat(tree / "train_list.mat", {"labels": np.ones((2, 1))})
    with pytest.raises(DataError, match=r"cannot read .*train_list.mat: 'file_list'"):
        load_target("dogs", DataRoots.parse([str(tree.parent)]))
    (tree / "train_list.mat").unlink()
    with pytest.raises(DataError, match=r"lacks train_list.mat"):
        load_target("dogs", DataRoots.parse([str(tree.parent)]))
