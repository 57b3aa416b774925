"""Caltech-101 on a small tree in the official layout."""

from pathlib import Path

import pytest
from PIL import Image

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, SourceDataset, load_source
from fsbench.data.sources import caltech101
from fsbench.data.sources.caltech101 import BACKGROUND, FACTS, TREE

COUNTS = FACTS.counts

SIZES = {"Faces": 40, "accordion": 33, "yin_yang": 31}


def write(root: Path, sizes: dict[str, int] = SIZES) -> Path:
    """101_ObjectCategories as unpacked; the level of an image is its number."""
    tree = root / "caltech101" / TREE
    for name, size in {**sizes, BACKGROUND: 2}.items():
        (tree / name).mkdir(parents=True)
        for n in range(1, size + 1):
            Image.new("L", (10, 8), n).save(tree / name / f"image_{n:04d}.jpg", "png")
    return tree


def load(root: Path, tmp_path: Path) -> SourceDataset:
    return load_source("caltech101", DataRoots.parse([str(root)]), tmp_path / "c", 8)


def test_thirty_images_a_class_three_of_them_validate(tmp_path: Path) -> None:
    write(tmp_path)
    dataset = load(tmp_path, tmp_path)
    labels = [0, 4, 100]
    assert [FACTS.classes[label] for label in labels] == list(SIZES)
    assert sorted(dataset.train.labels.tolist()) == [y for y in labels for _ in range(27)]
    assert sorted(dataset.val.labels.tolist()) == [y for y in labels for _ in range(3)]
    assert (dataset.name, dataset.n_classes, dataset.flags) == (
        "caltech101",
        101,
        {"derived", "subset"},
    )


def test_all_other_images_of_the_classes_are_for_the_test(tmp_path: Path) -> None:
    write(tmp_path)
    dataset = load(tmp_path, tmp_path)
    assert dataset.test
    assert sorted(dataset.test.labels.tolist()) == [0] * 10 + [4] * 3 + [100]
    faces = [
        part.images[part.labels == 0, 0, 0, 0].tolist() for part in (*parts(dataset), dataset.test)
    ]
    assert sorted(level for part in faces for level in part) == list(range(1, 41))


def test_no_image_is_used_twice_and_the_choice_depends_on_names_alone(tmp_path: Path) -> None:
    write(tmp_path / "a")
    write(tmp_path / "b", {**SIZES, "ant": 5})

    def faces(name: str) -> list[list[int]]:
        dataset = load(tmp_path / name, tmp_path)
        return [sorted(part.images[part.labels == 0, 0, 0, 0].tolist()) for part in parts(dataset)]

    train, val = faces("a")
    assert len({*train, *val}) == 30
    assert {*train, *val} != set(range(1, 31)), "not the first ones"
    assert faces("b") == [train, val]


def parts(dataset: SourceDataset) -> tuple:  # type: ignore[type-arg]
    return dataset.train, dataset.val


def test_the_official_counts_are_not_a_subset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, dict.fromkeys(COUNTS, 2))
    twice = FACTS.model_copy(update={"counts": dict.fromkeys(COUNTS, 2)})
    monkeypatch.setattr(caltech101, "FACTS", twice)
    assert caltech101.load(tmp_path, tmp_path).flags == {"derived"}
    (tmp_path / "caltech101" / TREE / "ant" / "image_0002.jpg").unlink()
    assert caltech101.load(tmp_path, tmp_path).flags == {"derived", "subset"}


def test_the_facts_are_the_published_ones() -> None:
    assert (len(COUNTS), sum(COUNTS.values())) == (101, 8677)
    assert list(COUNTS) == sorted(COUNTS)
    assert BACKGROUND not in FACTS.classes
    assert {"Faces", "Faces_easy"} <= set(FACTS.classes)
    assert sum(COUNTS.values()) - sum(FACTS.images_per_class) == 5647


def test_missing_and_wrong_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty" / "caltech101").mkdir(parents=True)
    with pytest.raises(DataError, match=f"lacks caltech101/{TREE}"):
        load(tmp_path / "empty", tmp_path)
    tree = write(tmp_path / "root")
    (tree / "cat").mkdir()
    with pytest.raises(DataError, match="is not Caltech-101: cat"):
        load(tmp_path / "root", tmp_path)
    (tree / "cat").rmdir()
    (tree / "Faces" / "image_0001.jpg").rename(tree / "Faces" / "image_0099.jpg")
    for n in range(2, 41):
        (tree / "Faces" / f"image_{n:04d}.jpg").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"image_00\d\d.jpg"):
        load(tmp_path / "root", tmp_path)


def test_an_archive_without_the_background_folder_is_refused(tmp_path: Path) -> None:
    tree = write(tmp_path)
    for path in (tree / BACKGROUND).iterdir():
        path.unlink()
    (tree / BACKGROUND).rmdir()
    with pytest.raises(DataError, match=f"{BACKGROUND} or all classes missing"):
        load(tmp_path, tmp_path)


def test_torchvision_creates_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        caltech101.load(tmp_path, tmp_path)
    assert not (tmp_path / "caltech101").exists()
