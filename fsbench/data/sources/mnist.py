"""MNIST: handwritten digits, the smallest source of the soft-weight-rescaling experiments.

The official test images are for validation: the experiments on it state no other part.
"""

import gzip
import shutil
from pathlib import Path

import numpy as np

from fsbench.data.cards import read_card
from fsbench.data.files import find_path
from fsbench.data.source import SourceListing
from fsbench.data.sources._listings import Part, list_parts, read_fixed_records
from fsbench.data.splits import require_path

SIDE, IMAGE_HEADER, LABEL_HEADER = 28, 16, 8
FACTS = read_card("mnist")


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
    folder = find_path(folder, "MNIST/raw") or folder
    images = require_path(folder, f"{name}-images-idx3-ubyte", FACTS)
    labels = require_path(folder, f"{name}-labels-idx1-ubyte", FACTS)
    files += [images, labels]
    pixels = read_fixed_records(images, SIDE * SIDE, IMAGE_HEADER).reshape(-1, SIDE, SIDE)
    return pixels, read_fixed_records(labels, 1, LABEL_HEADER)[:, 0].astype(np.int64)
