"""Oxford-IIIT Pet on a small tree in the official layout."""

from pathlib import Path

import pytest
from PIL import Image

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, SourceDataset, load_source
from fsbench.data.catalog import SOURCES
from fsbench.data.sources.pets import FACTS

PER_CLASS = 20
BREEDS = {"Abyssinian": 1, "american_bulldog": 2, "yorkshire_terrier": 37}


def write(root: Path, breeds: dict[str, int] = BREEDS, per_class: int = PER_CLASS) -> Path:
    """images/ and annotations/ as unpacked; the level of an image is 10 CLASS-ID + rank."""
    base = root / "oxford-iiit-pet"
    (base / "images").mkdir(parents=True)
    (base / "annotations" / "trimaps").mkdir(parents=True)
    lines = []
    for breed, number in breeds.items():
        for n in range(per_class):
            image = Image.new("RGB", (12, 8), ((number * 10 + n) % 256,) * 3)
            image.save(base / "images" / f"{breed}_{n + 100}.jpg", "png")
            lines.append(f"{breed}_{n + 100} {number} {1 if breed[0].isupper() else 2} 1\n")
    (base / "annotations" / "trainval.txt").write_text("".join(lines))
    tested = {f"{breed}_{n}": number for breed, number in breeds.items() for n in (1, 2)}
    for name, number in tested.items():
        image = Image.new("RGB", (12, 8), (255 - number,) * 3)
        image.save(base / "images" / f"{name}.jpg", "png")
    table = "".join(f"{name} {number} 1 1\n" for name, number in tested.items())
    (base / "annotations" / "test.txt").write_text(table)
    return base


def load(root: Path, tmp_path: Path) -> SourceDataset:
    return load_source("pets", DataRoots.parse([str(root)]), tmp_path / "c", 8)


def levels(dataset: SourceDataset) -> list[tuple[int, int]]:
    """(label, level) of all images, both parts."""
    parts = (dataset.train, dataset.val)
    return sorted(
        (int(label), int(image[0, 0, 0]))
        for part in parts
        for image, label in zip(part.images, part.labels, strict=True)
    )


def test_trainval_in_the_official_classes(tmp_path: Path) -> None:
    write(tmp_path / "root")
    dataset = load(tmp_path / "root", tmp_path)
    expected = [(k - 1, (10 * k + n) % 256) for k in BREEDS.values() for n in range(PER_CLASS)]
    assert levels(dataset) == sorted(expected)
    assert dataset.facts.classes[36] == "Yorkshire Terrier"
    assert (dataset.name, dataset.n_classes, dataset.flags) == ("pets", 37, {"derived", "subset"})


def test_the_official_test_images_are_a_part_of_their_own(tmp_path: Path) -> None:
    base = write(tmp_path / "root")
    dataset = load(tmp_path / "root", tmp_path)
    assert dataset.test
    assert dataset.test.labels.tolist() == [0, 0, 1, 1, 36, 36]
    assert dataset.test.images[:, 0, 0, 0].tolist() == [254, 254, 253, 253, 218, 218]
    (base / "images" / "Abyssinian_1.jpg").unlink()
    (base / "images" / "Abyssinian_2.jpg").rename(base / "images" / "Abyssinian_1.jpg")
    table = base / "annotations" / "test.txt"
    table.write_text(table.read_text().replace("Abyssinian_2 1 1 1\n", ""))
    other = load(tmp_path / "root", tmp_path)
    assert other.test
    assert len(other.test) == 5
    assert other.fingerprint != dataset.fingerprint
    table.write_text(table.read_text().replace("Abyssinian_1 1", "Abyssinian_1 2"))
    with pytest.raises(DataError, match=r"test\.txt: the label of Abyssinian_1.jpg is not that"):
        load(tmp_path / "root", tmp_path)


def test_a_tenth_of_every_class_validates_in_any_order(tmp_path: Path) -> None:
    write(tmp_path / "a")
    base = write(tmp_path / "b")
    table = base / "annotations" / "trainval.txt"
    table.write_text("".join(reversed(table.read_text().splitlines(keepends=True))))
    a, b = (load(tmp_path / name, tmp_path) for name in "ab")
    assert sorted(a.val.labels.tolist()) == [0, 0, 1, 1, 36, 36]
    assert len(a.train) == 54
    validation = [{int(image[0, 0, 0]) for image in dataset.val.images} for dataset in (a, b)]
    assert validation[0] == validation[1]
    assert validation[0] != {10, 11, 20, 21, 114, 115}, "not the first ones"


def test_the_official_counts_are_not_a_subset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {name.lower().replace(" ", "_"): k for k, name in enumerate(FACTS.classes, 1)}
    write(tmp_path / "root", names, per_class=1)
    facts = FACTS.model_copy(update={"images_per_class": (1,) * 37})
    monkeypatch.setattr("fsbench.data.sources.pets.FACTS", facts)
    listing = SOURCES.load("pets").load(tmp_path / "root", tmp_path)
    assert listing.flags == {"derived"}


def test_the_facts_are_the_published_ones() -> None:
    assert (len(FACTS.classes), sum(FACTS.images_per_class)) == (37, 3680)
    assert FACTS.images_per_class[7] == 96
    assert list(FACTS.classes) == sorted(FACTS.classes)


def test_missing_and_wrong_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty" / "pets").mkdir(parents=True)
    with pytest.raises(DataError, match="lacks oxford-iiit-pet/images"):
        load(tmp_path / "empty", tmp_path)
    base = write(tmp_path / "root")
    table = base / "annotations" / "trainval.txt"
    whole = table.read_text()
    table.write_text(whole.replace("american_bulldog_100 2", "american_bulldog_100 3"))
    with pytest.raises(DataError, match=r"the label of american_bulldog_100.jpg is not"):
        load(tmp_path / "root", tmp_path)
    table.write_text("Abyssinian_100 1\n")
    with pytest.raises(DataError, match=r"trainval.txt is not Oxford-IIIT Pet's"):
        load(tmp_path / "root", tmp_path)
    table.write_text(whole)
    (base / "images" / "Abyssinian_103.jpg").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"Abyssinian_103.jpg"):
        load(tmp_path / "root", tmp_path)
    (base / "images" / "Abyssinian_103.jpg").unlink()
    with pytest.raises(DataError, match=r"Abyssinian_103.jpg"):
        load(tmp_path / "root", tmp_path)
