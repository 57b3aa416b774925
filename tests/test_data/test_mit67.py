"""MIT Indoor-67 on a small tree in the official layout."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, load_target
from fsbench.data.splits import split_dataset
from fsbench.data.targets.mit67 import FACTS
from fsbench.data.verification import verify_dataset

TRAIN = ("winecellar/a.jpg", "airport_inside/airport_inside_0001.jpg")
TEST = ("airport_inside/airport_inside_0002.jpg", "bar/a.jpg")
UNUSED = "bar/unused.jpg"


@pytest.fixture
def tree(tmp_path: Path, draw: Callable[..., Path]) -> Path:
    folder = tmp_path / "indoorCVPR_09"
    for name in (*TRAIN, *TEST, UNUSED):
        draw(folder / "Images" / name)
    (folder / "TrainImages.txt").write_text("\r\n".join(TRAIN) + "\r\n")
    (folder / "TestImages.txt").write_text("\n".join(TEST))
    return folder


def test_only_listed_images_are_loaded(tree: Path) -> None:
    dataset = load_target("indoor67", DataRoots.parse([str(tree.parent)]))
    train, test = split_dataset(dataset)
    assert [dataset.canonical_ids[i] for i in train] == [f"train/{TRAIN[1]}", f"train/{TRAIN[0]}"]
    assert [dataset.canonical_ids[i] for i in test] == [f"test/{name}" for name in TEST]
    assert dataset.labels[train].tolist() == [0, 66]
    assert dataset.labels[test].tolist() == [0, FACTS.classes.index("bar")]
    assert dataset.flags == {"subset"}
    assert len(dataset) == 4


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("TrainImages.txt", "cave/a.jpg\n", r"TrainImages.txt names no class in 'cave/a.jpg'"),
        ("TestImages.txt", f"{TRAIN[0]}\n", "name winecellar/a.jpg more than once"),
        ("TestImages.txt", None, r"lacks TestImages.txt"),
    ],
)
def test_lists_with_errors_are_named(tree: Path, file: str, text: str | None, message: str) -> None:
    (tree / file).unlink()
    if text:
        (tree / file).write_text(text)
    with pytest.raises(DataError, match=message):
        load_target("mit67", DataRoots.parse([str(tree.parent)]))


def test_missing_images_are_counted(tree: Path) -> None:
    (tree / "Images" / TEST[1]).unlink()
    dataset = load_target("mit67", DataRoots.parse([str(tree.parent)]))
    assert "2 of 5360 train images and 1 of 1340 test images" in dataset.notes[0]
    (tree / "Images").rename(tree / "jpg")
    with pytest.raises(DataError, match="lacks Images/"):
        load_target("mit67", DataRoots.parse([str(tree.parent)]))


def test_verify_checks_the_parts_and_not_every_class(tree: Path, tmp_path: Path) -> None:
    verdict = verify_dataset("mit67", DataRoots.parse([str(tree.parent)]), tmp_path / "cache")
    assert verdict.counts[0] == (2, None)
    assert not verdict.complete
    problem = verdict.problem()
    assert problem is not None
    assert "2 of 5360 train images and 2 of 1340 test images" in problem.message
