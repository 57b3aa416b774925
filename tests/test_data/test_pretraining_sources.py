"""Sources on small copies: MNIST and CIFAR by torchvision, Caltech-101 and Oxford-IIIT Pet."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.images import write_pixels
from torchvision import datasets

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, SourceDataset, load_source
from fsbench.data.catalog import all_facts
from fsbench.data.loading import list_source

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (12, 28, 28), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
LABELS = np.array([3, 1, 9, 0, 3, 3, 2, 7, 5, 4, 8, 6], dtype=np.uint8)
BREEDS = {"Abyssinian": 1, "american_bulldog": 2, "yorkshire_terrier": 37}
SIZES = {"Faces": 40, "accordion": 33, "yin_yang": 31}

Load = Callable[..., SourceDataset]
Change = Callable[..., None]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a source below `data`."""
    roots = DataRoots((tmp_path / "data",))
    return lambda name, size=8: load_source(name, roots, tmp_path / "c", size)


@pytest.fixture
def list_flags(tmp_path: Path) -> Callable[[str], frozenset[str]]:
    """List a source below `data`; return its flags."""
    roots = DataRoots((tmp_path / "data",))
    return lambda name: list_source(name, roots, tmp_path / "c").flags


def write_mnist(root: Path, subfolder: str = "mnist/MNIST/raw") -> Path:
    folder = root / subfolder
    folder.mkdir(parents=True)
    for part, rows in (("train", slice(12)), ("t10k", slice(8, 12))):
        for kind, magic, values in (("images-idx3", 0x803, GREY), ("labels-idx1", 0x801, LABELS)):
            head = np.array([magic, *values[rows].shape], dtype=">i4").tobytes()
            (folder / f"{part}-{kind}-ubyte").write_bytes(head + values[rows].tobytes())
    return folder


@pytest.mark.parametrize("subfolder", ["MNIST/raw", "mnist/MNIST/raw"])
def test_mnist_grey_is_repeated(
    tmp_path: Path, load: Load, subfolder: str, change_card: Change
) -> None:
    write_mnist(tmp_path / "data", subfolder)
    source = load("mnist", 28)
    assert np.array_equal(source.train.images, np.repeat(GREY[:, None], 3, axis=1))
    assert source.train.labels.tolist() == LABELS.tolist()
    assert source.val.labels.tolist() == LABELS[8:].tolist()
    assert (source.n_classes, source.flags) == (10, {"subset"})
    change_card("mnist", images_per_class=tuple(np.bincount(LABELS).tolist()))
    assert load("mnist", 28).flags == set()


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_cifar_is_read_by_its_class_of_torchvision(
    tmp_path: Path, load: Load, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "data" / name / getattr(datasets, name.upper()).base_folder).mkdir(parents=True)
    parts = {
        is_train: SimpleNamespace(data=COLOUR[rows], targets=LABELS[rows].tolist())
        for is_train, rows in ((True, slice(12)), (False, slice(8, 12)))
    }
    with pytest.raises(DataError, match="lacks sound files of CIFAR-10"):
        load(name, 32)
    monkeypatch.setattr(datasets, name.upper(), lambda root, train: parts[train])
    source = load(name, 32)
    assert np.array_equal(source.train.images, COLOUR.transpose(0, 3, 1, 2))
    assert source.train.labels.tolist() == LABELS.tolist()
    assert source.val.labels.tolist() == LABELS[8:].tolist()


def test_classes_and_counts_are_the_publishers() -> None:
    facts = all_facts()
    images = {name: facts[name].n_images for name in ("caltech101", "mnist", "pets")}
    assert images == {"caltech101": 8677, "mnist": 60_000, "pets": 3680}
    for name, n in (("caltech101", 101), ("cifar100", 100), ("pets", 37)):
        assert len(set(facts[name].classes)) == n
        assert list(facts[name].classes) == sorted(facts[name].classes)
    assert facts["pets"].images_per_class[7] == 96


def write_level(path: Path, level: int) -> None:
    write_pixels(path, np.full((8, 12, 3), level % 256, np.uint8), kind="PNG")


def write_pets(root: Path, breeds: Mapping[str, int] = BREEDS, per_class: int = 20) -> Path:
    """images/ and annotations/ as unpacked; the level of an image is 10 CLASS-ID + rank."""
    base = root / "oxford-iiit-pet"
    (base / "annotations").mkdir(parents=True)
    for part, first, n_images in (("trainval", 100, per_class), ("test", 1, 2)):
        lines = []
        for breed, number in breeds.items():
            for n in range(first, first + n_images):
                write_level(base / "images" / f"{breed}_{n}.jpg", 10 * number + n % 100)
                lines.append(f"{breed}_{n} {number} {1 if breed[0].isupper() else 2} 1\n")
        (base / "annotations" / f"{part}.txt").write_text("".join(lines))
    return base


def write_caltech(root: Path, sizes: Mapping[str, int] = SIZES) -> Path:
    """101_ObjectCategories as unpacked; the level of an image is its number."""
    tree = root / "caltech101" / "101_ObjectCategories"
    for name, size in {**sizes, "BACKGROUND_Google": 2}.items():
        for n in range(1, size + 1):
            write_level(tree / name / f"image_{n:04d}.jpg", n)
    return tree


def levels(dataset: SourceDataset, label: int) -> list[list[int]]:
    """The sorted levels of the images of a class in training, validation and test."""
    assert dataset.test
    parts = (dataset.train, dataset.val, dataset.test)
    return [sorted(part.images[part.labels == label, 0, 0, 0].tolist()) for part in parts]


def test_trainval_of_pets_in_the_official_classes(tmp_path: Path, load: Load) -> None:
    tables = write_pets(tmp_path / "data") / "annotations"
    dataset = load("pets")
    assert dataset.facts.classes[36] == "Yorkshire Terrier"
    assert (dataset.name, dataset.n_classes, dataset.flags) == ("pets", 37, {"derived", "subset"})
    for number in BREEDS.values():
        train, val, test = levels(dataset, number - 1)
        expected = sorted((10 * number + n) % 256 for n in range(20))
        assert (sorted(train + val), len(val)) == (expected, 2)
        assert val != expected[:2], "not the first ones"
        assert test == sorted((10 * number + n) % 256 for n in (1, 2))
    lines = (tables / "trainval.txt").read_text().splitlines(keepends=True)
    (tables / "trainval.txt").write_text("".join(reversed(lines)))
    again = load("pets")
    assert levels(again, 1) == levels(dataset, 1), "in any order of the list"
    lines = (tables / "test.txt").read_text().splitlines(keepends=True)
    (tables / "test.txt").write_text("".join(lines[1:]))
    assert load("pets").fingerprint != again.fingerprint


def test_thirty_images_a_class_three_of_them_validate_all_others_are_for_the_test(
    tmp_path: Path, load: Load
) -> None:
    tree = write_caltech(tmp_path / "data")
    dataset = load("caltech101")
    assert (dataset.n_classes, dataset.flags) == (101, {"derived", "subset"})
    for name, size in SIZES.items():
        train, val, test = parts = levels(dataset, dataset.facts.classes.index(name))
        assert [len(part) for part in parts] == [27, 3, size - 30]
        assert sorted([*train, *val, *test]) == list(range(1, size + 1))
    faces = levels(dataset, 0)
    assert sorted(faces[0] + faces[1]) != list(range(1, 31)), "not the first ones"
    write_level(tree / "ant" / "image_0001.jpg", 1)
    assert levels(load("caltech101"), 0) == faces, "the choice depends on names alone"


def test_official_counts_are_no_subset(
    tmp_path: Path, list_flags: Callable[[str], frozenset[str]], change_card: Change
) -> None:
    names = {n.lower().replace(" ", "_"): k for k, n in enumerate(all_facts()["pets"].classes, 1)}
    write_pets(tmp_path / "data", names, per_class=1)
    change_card("pets", images_per_class=(1,) * 37)
    assert list_flags("pets") == {"derived"}
    change_card("caltech101", images_per_class=(2,) * 101)
    tree = write_caltech(tmp_path / "data", dict.fromkeys(all_facts()["caltech101"].classes, 2))
    assert list_flags("caltech101") == {"derived"}
    (tree / "ant" / "image_0002.jpg").unlink()
    assert list_flags("caltech101") == {"derived", "subset"}


Edit = Callable[[bytes], bytes]
TRAINVAL, TEST = "annotations/trainval.txt", "annotations/test.txt"
SOUND = "lacks sound files of MNIST"


def replaced(old: bytes, new: bytes) -> Edit:
    return lambda content: content.replace(old, new)


@pytest.mark.parametrize(
    ("name", "write", "file", "edit", "message"),
    [
        ("mnist", write_mnist, "train-labels-idx1-ubyte", lambda b: b[:-1], SOUND),
        ("mnist", write_mnist, "train-labels-idx1-ubyte", lambda b: b[:-1] + b"\xff", SOUND),
        ("mnist", write_mnist, "train-labels-idx1-ubyte", lambda b: b"", SOUND),
        ("pets", write_pets, TRAINVAL, replaced(b"bulldog_100 2", b"bulldog_100 3"),
         "gives 'american_bulldog_100.jpg' the class"),
        ("pets", write_pets, TEST, replaced(b"Abyssinian_1 1", b"Abyssinian_1 2"),
         "test list gives 'Abyssinian_1.jpg' the class"),
        ("pets", write_pets, TRAINVAL, replaced(b"Abyssinian_100 1 1 1", b"Abyssinian_100 1"),
         "'Abyssinian_100 1' is no official line"),
        ("pets", write_pets, TRAINVAL, replaced(b"Abyssinian_100", b"../../Abyssinian_9"),
         "gives '../../Abyssinian_9.jpg' the class"),
        ("pets", write_pets, TRAINVAL, replaced(b"Abyssinian_100", b"Abyssinian_999"),
         "Abyssinian_999.jpg"),
        ("caltech101", write_caltech, "yin_yang/image_0007.jpg", lambda b: b"broken",
         r"yin_yang/image_0007.jpg"),
        ("caltech101", write_caltech, "cat/image_0001.jpg", lambda b: b"x",
         "no class of caltech101: cat"),
    ],
)  # fmt: skip
def test_wrong_files_are_named(
    tmp_path: Path, load: Load, name: str, write: Any, file: str, edit: Edit, message: str
) -> None:
    folder = tmp_path / "data" / name
    folder.mkdir(parents=True)
    with pytest.raises(DataError, match=r"lacks (sound files|images|class folders)\b"):
        load(name)
    assert not list(folder.iterdir()), "nothing is created"
    path = write(tmp_path / "data") / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(edit(path.read_bytes() if path.is_file() else b""))
    with pytest.raises(DataError, match=message):
        load(name)
