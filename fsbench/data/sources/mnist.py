"""MNIST: handwritten digits, the smallest source of the soft-weight-rescaling experiments.

The official test images are for validation: the experiments on it state no other part.
"""

import gzip
import shutil
from pathlib import Path

import numpy as np

from fsbench.core.schema import DatasetFacts
from fsbench.data.catalog import Archive
from fsbench.data.source import SourceListing
from fsbench.data.sources._listings import Part, find_file, list_parts, read_fixed_records

SIDE, IMAGE_HEADER, LABEL_HEADER = 28, 16, 8
FACTS = DatasetFacts(
    name="mnist",
    title="MNIST",
    domain="source",
    classes=tuple("0123456789"),
    images_per_class=(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    label_rule="class id = digit; the 10,000 official test images are for validation",
    dropped="nothing",
    layout="{train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte",
    folders=("mnist",),
    download="fsbench data download mnist --data ROOT",
    license="CC BY-SA 3.0",
    citation="LeCun et al., Gradient-based learning applied to document recognition, 1998",
    homepage="http://yann.lecun.com/exdb/mnist/",
)
ARCHIVES = tuple(
    Archive(
        f"https://ossci-datasets.s3.amazonaws.com/mnist/{file}.gz",
        f"md5:{md5}",
        hash_source="torchvision, datasets/mnist.py",
        mirrors=(f"http://yann.lecun.com/exdb/mnist/{file}.gz",),
    )
    for file, md5 in (
        ("train-images-idx3-ubyte", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte", "ec29112dd5afa0611ce80d1b7f02629c"),
    )
)


def arrange(folder: Path) -> None:
    """Unpack the downloaded files."""
    for packed in sorted(folder.glob("*-ubyte.gz")):
        with gzip.open(packed) as source, packed.with_suffix("").open("wb") as target:
            shutil.copyfileobj(source, target)
        packed.unlink()


def load(folder: Path, cache: Path) -> SourceListing:
    """Load MNIST below `folder`. Raises DataError for missing or damaged files."""
    files: list[Path] = []
    return list_parts(FACTS, _part(folder, "train", files), _part(folder, "t10k", files), files)


def _part(folder: Path, name: str, files: list[Path]) -> Part:
    images = find_file(folder, f"{name}-images-idx3-ubyte", FACTS, "MNIST/raw")
    labels = find_file(folder, f"{name}-labels-idx1-ubyte", FACTS, "MNIST/raw")
    files += [images, labels]
    pixels = read_fixed_records(images, SIDE * SIDE, IMAGE_HEADER).reshape(-1, SIDE, SIDE)
    return pixels, read_fixed_records(labels, 1, LABEL_HEADER)[:, 0].astype(np.int64)
