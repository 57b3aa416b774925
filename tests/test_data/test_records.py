"""MNIST and CIFAR from files of fixed-size records, written here byte by byte."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, SourceDataset, load_source
from fsbench.data.sources import cifar100, mnist
from fsbench.data.sources._listings import records_source

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (12, 28, 28), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (12, 3, 32, 32), dtype=np.uint8)
LABELS = np.array([3, 1, 9, 0, 3, 3, 2, 7, 5, 4, 8, 6], dtype=np.uint8)


def load(name: str, root: Path, size: int) -> SourceDataset:
    return load_source(name, DataRoots.parse([str(root)]), root.parent / "c", size)


def write_mnist(folder: Path, suffix: str = "") -> Path:
    folder.mkdir(parents=True)
    for part, rows in (("train", slice(0, 8)), ("t10k", slice(8, 12))):
        images, labels = GREY[rows], LABELS[rows]
        sizes = np.array([0x803, len(images), 28, 28], dtype=">i4").tobytes()
        heads = (sizes, np.array([0x801, len(labels)], dtype=">i4").tobytes())
        names = (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte")
        for name, head, data in zip(names, heads, (images, labels), strict=True):
            content = head + data.tobytes()
            packed = gzip.compress(content) if suffix else content
            (folder / f"{name}{suffix}").write_bytes(packed)
    return folder


def write_cifar(folder: Path, names: list[tuple[str, slice]], coarse: bytes = b"") -> Path:
    folder.mkdir(parents=True)
    for name, rows in names:
        records = zip(LABELS[rows], COLOUR[rows], strict=True)
        content = b"".join(coarse + bytes([label]) + pixels.tobytes() for label, pixels in records)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize("place", ["mnist", "mnist/MNIST/raw"])
def test_mnist_grey_is_repeated(tmp_path: Path, place: str) -> None:
    write_mnist(tmp_path / "root" / place)
    source = load("mnist", tmp_path / "root", 28)
    assert np.array_equal(source.train.images, np.repeat(GREY[:8, None], 3, axis=1))
    assert source.train.labels.tolist() == LABELS[:8].tolist()
    assert source.val.labels.tolist() == LABELS[8:].tolist()
    assert (source.n_classes, source.flags) == (10, {"subset"})


def test_downloaded_mnist_is_unpacked(tmp_path: Path) -> None:
    folder = write_mnist(tmp_path / "root" / "mnist", ".gz")
    mnist.arrange(folder)
    assert not list(folder.glob("*.gz"))
    assert len(load("mnist", tmp_path / "root", 28).train) == 8


def test_cifar10_reads_all_five_batches(tmp_path: Path) -> None:
    names = [(f"data_batch_{i + 1}.bin", slice(i, i + 2)) for i in range(5)]
    folder = tmp_path / "root/cifar10/cifar-10-batches-bin"
    write_cifar(folder, [*names, ("test_batch.bin", slice(8, 12))])
    source = load("cifar10", tmp_path / "root", 32)
    rows = [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert np.array_equal(source.train.images, COLOUR[rows])
    assert source.train.labels.tolist() == LABELS[rows].tolist()
    assert np.array_equal(source.val.images, COLOUR[8:])


def test_cifar100_takes_the_fine_label(tmp_path: Path) -> None:
    files = [("train.bin", slice(0, 8)), ("test.bin", slice(8, 12))]
    write_cifar(tmp_path / "root/cifar-100-binary", files, coarse=b"\x13")
    source = load("cifar100", tmp_path / "root", 32)
    assert source.train.labels.tolist() == LABELS[:8].tolist()
    assert source.facts.classes[LABELS[0]] == "bear"
    assert np.array_equal(source.train.images, COLOUR[:8])


def test_the_published_counts_are_not_a_subset(tmp_path: Path) -> None:
    counts = tuple(np.bincount(LABELS[:8], minlength=10).tolist())
    facts = mnist.FACTS.model_copy(update={"images_per_class": counts})
    load = records_source(facts, "mnist", mnist.TRAIN, mnist.TEST, mnist.read_mnist)
    write_mnist(tmp_path / "mnist")
    assert load(tmp_path, tmp_path).flags == set()


def test_damaged_files_are_named(tmp_path: Path) -> None:
    files = [("train.bin", slice(0, 8)), ("test.bin", slice(8, 12))]
    folder = write_cifar(tmp_path / "root/cifar-100-binary", files, b"\0")
    whole = (folder / "train.bin").read_bytes()
    (folder / "train.bin").write_bytes(whole[:-1])
    with pytest.raises(DataError, match=r"train.bin is cut off"):
        load("cifar100", tmp_path / "root", 32)
    (folder / "train.bin").write_bytes(b"\0\xff" + whole[2:])
    with pytest.raises(DataError, match="labels up to 255"):
        load("cifar100", tmp_path / "root", 32)
    (folder / "train.bin").unlink()
    with pytest.raises(DataError, match=r"lacks train.bin"):
        load("cifar100", tmp_path / "root", 32)


def test_classes_are_the_publishers() -> None:
    assert len(set(cifar100.FACTS.classes)) == 100
    assert list(cifar100.FACTS.classes) == sorted(cifar100.FACTS.classes)
    assert sum(mnist.FACTS.images_per_class) == 60_000
