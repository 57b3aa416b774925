"""MNIST: handwritten digits, the smallest source of the soft-weight-rescaling experiments."""

import gzip
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fsbench.data.cards import read_card
from fsbench.data.sources._listings import Part, read_fixed_records, records_source

SIDE, IMAGE_HEADER, LABEL_HEADER = 28, 16, 8
FACTS = read_card("mnist")


def arrange(folder: Path) -> None:
    for packed in sorted(folder.glob("*-ubyte.gz")):
        with gzip.open(packed) as source, packed.with_suffix("").open("wb") as target:
            shutil.copyfileobj(source, target)
        packed.unlink()


def read_mnist(paths: Sequence[Path]) -> Part:
    images, labels = paths
    pixels = read_fixed_records(images, SIDE * SIDE, IMAGE_HEADER).reshape(-1, SIDE, SIDE)
    return pixels, read_fixed_records(labels, 1, LABEL_HEADER)[:, 0].astype(np.int64)


TRAIN, TEST = (
    (f"{part}-images-idx3-ubyte", f"{part}-labels-idx1-ubyte") for part in ("train", "t10k")
)
load = records_source(FACTS, "MNIST/raw", TRAIN, TEST, read_mnist)
