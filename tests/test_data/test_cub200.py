"""CUB-200-2011 on a small tree in the official layout."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, load_target
from fsbench.data.splits import split_dataset

FIRST, LAST = "001.Black_footed_Albatross", "200.Common_Yellowthroat"
IMAGES = {1: f"{FIRST}/b.jpg", 2: f"{FIRST}/a.jpg", 3: f"{LAST}/c.jpg", 4: f"{LAST}/d.jpg"}
LABELS = {1: 1, 2: 1, 3: 200, 4: 200}
TRAINED = {1: 1, 2: 0, 3: 1, 4: 0}
TABLES = {
    "images.txt": IMAGES,
    "image_class_labels.txt": LABELS,
    "train_test_split.txt": TRAINED,
    "classes.txt": {1: FIRST, 200: LAST},
}


@pytest.fixture
def tree(tmp_path: Path, draw: Callable[..., Path]) -> Path:
    base = tmp_path / "CUB_200_2011"
    for name in IMAGES.values():
        draw(base / "images" / name)
    for file, rows in TABLES.items():
        (base / file).write_text("".join(f"{n} {value}\n" for n, value in rows.items()))
    return tmp_path


def test_one_in_the_split_file_is_train(tree: Path) -> None:
    dataset = load_target("cub", DataRoots.parse([str(tree)]))
    train, test = split_dataset(dataset)
    assert [dataset.canonical_ids[i] for i in train] == [f"train/{IMAGES[1]}", f"train/{IMAGES[3]}"]
    assert [dataset.canonical_ids[i] for i in test] == [f"test/{IMAGES[2]}", f"test/{IMAGES[4]}"]
    assert dataset.labels[train].tolist() == dataset.labels[test].tolist() == [0, 199]
    assert dataset.flags == {"subset"}
    assert dataset.paths[0] == f"images/{IMAGES[2]}"


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("image_class_labels.txt", "3 200", "3 199", "label of 200.Common_Yellowthroat/c.jpg"),
        ("image_class_labels.txt", "3 200\n", "", "name different images"),
        ("images.txt", FIRST, "001.Albatross", "names no class in '001.Albatross/b.jpg'"),
        ("images.txt", " 001", "\n001", "has a line without two fields"),
    ],
)
def test_tables_with_errors_are_named(
    tree: Path, file: str, old: str, new: str, message: str
) -> None:
    table = tree / "CUB_200_2011" / file
    table.write_text(table.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        load_target("cub200", DataRoots.parse([str(tree)]))


def test_a_missing_table_is_named(tree: Path) -> None:
    (tree / "CUB_200_2011" / "train_test_split.txt").unlink()
    with pytest.raises(DataError, match=r"cannot read .*train_test_split.txt"):
        load_target("cub200", DataRoots.parse([str(tree)]))
