"""MNIST and CIFAR as torchvision reads them, from files that are written here."""

import gzip
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from torchvision.datasets import CIFAR10, CIFAR100

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, SourceDataset, load_source
from fsbench.data.sources import cifar100, mnist
from fsbench.data.sources._listings import torchvision_source

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (12, 28, 28), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
LABELS = np.array([3, 1, 9, 0, 3, 3, 2, 7, 5, 4, 8, 6], dtype=np.uint8)


def load(name: str, root: Path, size: int) -> SourceDataset:
    return load_source(name, DataRoots.parse([str(root)]), root.parent / "c", size)


def write_mnist(folder: Path, suffix: str = "") -> Path:
    folder.mkdir(parents=True)
    for part, rows in (("train", slice(12)), ("t10k", slice(8, 12))):
        images, labels = GREY[rows], LABELS[rows]
        sizes = np.array([0x803, len(images), 28, 28], dtype=">i4").tobytes()
        heads = (sizes, np.array([0x801, len(labels)], dtype=">i4").tobytes())
        names = (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte")
        for name, head, data in zip(names, heads, (images, labels), strict=True):
            content = head + data.tobytes()
            packed = gzip.compress(content) if suffix else content
            (folder / f"{name}{suffix}").write_bytes(packed)
    return folder


@pytest.fixture
def write_cifar(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write pickles as the publisher does, whose hashes torchvision then knows."""

    def save(path: Path, content: dict[str, object]) -> list[str]:
        path.write_bytes(pickle.dumps(content))
        return [path.name, hashlib.md5(path.read_bytes()).hexdigest()]

    def write(folder: Path, kind: type[CIFAR10], key: str, train: list[slice]) -> Path:
        folder.mkdir(parents=True)
        lists: dict[str, list[list[str]]] = {"train_list": [], "test_list": []}
        parts = [("train_list", rows) for rows in train] + [("test_list", slice(8, 12))]
        for n, (part, rows) in enumerate(parts):
            labels = LABELS[rows].tolist()
            content = {"data": COLOUR[rows].reshape(len(labels), -1), key: labels}
            lists[part].append(save(folder / f"part_{n}", content))
        name, md5 = save(folder / "meta", {kind.meta["key"]: ["a name"]})
        monkeypatch.setattr(kind, "meta", {**kind.meta, "filename": name, "md5": md5})
        for part, files in lists.items():
            monkeypatch.setattr(kind, part, files)
        return folder

    return write


@pytest.mark.parametrize("place", ["MNIST/raw", "mnist/MNIST/raw"])
def test_mnist_grey_is_repeated(tmp_path: Path, place: str) -> None:
    write_mnist(tmp_path / "root" / place)
    source = load("mnist", tmp_path / "root", 28)
    assert np.array_equal(source.train.images, np.repeat(GREY[:, None], 3, axis=1))
    assert source.train.labels.tolist() == LABELS.tolist()
    assert source.val.labels.tolist() == LABELS[8:].tolist()
    assert (source.n_classes, source.flags) == (10, {"subset"})


def test_downloaded_mnist_is_unpacked(tmp_path: Path) -> None:
    folder = write_mnist(tmp_path / "root" / "mnist", ".gz")
    mnist.arrange(folder)
    assert not list(folder.glob("*.gz"))
    assert len(load("mnist", tmp_path / "root", 28).train) == 12


def test_cifar10_reads_all_batches(tmp_path: Path, write_cifar: Callable[..., Path]) -> None:
    batches = [slice(i, i + 2) for i in range(5)]
    write_cifar(tmp_path / "root/cifar10/cifar-10-batches-py", CIFAR10, "labels", batches)
    source = load("cifar10", tmp_path / "root", 32)
    rows = [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert np.array_equal(source.train.images, COLOUR[rows])
    assert source.train.labels.tolist() == LABELS[rows].tolist()
    assert np.array_equal(source.val.images, COLOUR[8:])


def test_cifar100_takes_the_fine_label(tmp_path: Path, write_cifar: Callable[..., Path]) -> None:
    write_cifar(tmp_path / "root/cifar-100-python", CIFAR100, "fine_labels", [slice(0, 8)])
    source = load("cifar100", tmp_path / "root", 32)
    assert source.train.labels.tolist() == LABELS[:8].tolist()
    assert source.facts.classes[LABELS[0]] == "bear"
    assert np.array_equal(source.train.images, COLOUR[:8])


def test_the_published_counts_are_not_a_subset(tmp_path: Path) -> None:
    counts = tuple(np.bincount(LABELS).tolist())
    facts = mnist.FACTS.model_copy(update={"images_per_class": counts})
    write_mnist(tmp_path / "MNIST" / "raw")
    assert torchvision_source(facts, "MNIST", "MNIST")(tmp_path, tmp_path).flags == set()


def test_damaged_files_are_refused(tmp_path: Path, write_cifar: Callable[..., Path]) -> None:
    folder = write_cifar(tmp_path / "root/cifar-100-python", CIFAR100, "fine_labels", [slice(8)])
    (folder / "part_0").write_bytes(b"x" + (folder / "part_0").read_bytes())
    with pytest.raises(DataError, match="lacks sound files of CIFAR-100"):
        load("cifar100", tmp_path / "root", 32)
    raw = write_mnist(tmp_path / "root/mnist/MNIST/raw")
    labels = raw / "train-labels-idx1-ubyte"
    for content in (labels.read_bytes()[:-1], labels.read_bytes()[:-1] + b"\xff", b""):
        labels.write_bytes(content)
        with pytest.raises(DataError, match="lacks sound files of MNIST"):
            load("mnist", tmp_path / "root", 28)


def test_classes_are_the_publishers() -> None:
    assert len(set(cifar100.FACTS.classes)) == 100
    assert list(cifar100.FACTS.classes) == sorted(cifar100.FACTS.classes)
    assert sum(mnist.FACTS.images_per_class) == 60_000
