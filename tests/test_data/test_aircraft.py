"""FGVC-Aircraft on a small tree in the official layout."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, load_target
from fsbench.data.splits import split_dataset
from fsbench.data.targets.aircraft import FACTS

BASE, VARIANTS = "fgvc-aircraft-2013b", FACTS.classes

LISTS = {
    "train": "0034309 F-16A/B\n1025794 707-320\n",
    "val": "0900914 707-320\n",
    "trainval": "0034309 F-16A/B\n0900914 707-320\n1025794 707-320\n",
    "test": "1514522 BAE 146-200\n0747566 707-320\n",
}


@pytest.fixture
def tree(tmp_path: Path, draw: Callable[..., Path]) -> Path:
    data = tmp_path / BASE / "data"
    for line in "".join(LISTS.values()).splitlines():
        draw(data / "images" / f"{line.split()[0]}.jpg")
    for part, text in LISTS.items():
        (data / f"images_variant_{part}.txt").write_text(text)
    (data / "variants.txt").write_text("".join(f"{name}\n" for name in VARIANTS))
    return tmp_path


def test_the_train_part_is_train_and_not_trainval(tree: Path) -> None:
    dataset = load_target("fgvc-aircraft", DataRoots.parse([str(tree)]))
    train, test = split_dataset(dataset)
    assert [dataset.canonical_ids[i] for i in train] == ["train/1025794.jpg", "train/0034309.jpg"]
    assert [dataset.canonical_ids[i] for i in test] == ["test/0747566.jpg", "test/1514522.jpg"]
    assert dataset.labels[train].tolist() == [0, VARIANTS.index("F-16A/B")]
    assert dataset.labels[test].tolist() == [0, VARIANTS.index("BAE 146-200")]
    assert dataset.paths[0] == f"data/images/{dataset.canonical_ids[0].partition('/')[2]}"
    assert dataset.flags == {"subset"}


def test_a_download_into_a_folder_of_another_name_is_found(tree: Path) -> None:
    (tree / "aircraft").mkdir()
    (tree / BASE).rename(tree / "aircraft" / BASE)
    dataset = load_target("aircraft", DataRoots.parse([str(tree)]))
    assert dataset.paths[0].startswith(f"{BASE}/data/images/")
    assert dataset.image(0).size == (8, 8)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("images_variant_test.txt", "0747566 708-320\n", "test.txt names no class in '0747566.jpg"),
        ("images_variant_train.txt", "0747566 707-320\n0034309 F-16A/B\n", "name 0747566.jpg more"),
        ("images_variant_train.txt", "0747566\n", "train.txt names no class in '0747566.jpg'"),
    ],
)
def test_unofficial_files_are_named(tree: Path, file: str, text: str, message: str) -> None:
    (tree / BASE / "data" / file).write_text(text)
    with pytest.raises(DataError, match=message):
        load_target("aircraft", DataRoots.parse([str(tree)]))
