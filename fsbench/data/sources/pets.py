"""Oxford-IIIT Pet: 37 breeds of cats and dogs, a small source of the reinitialization study.

The study (https://arxiv.org/abs/2109.00267, section 3.1) trains on the official trainval images and
holds out 10 % of them for validation; here those of every class with the smallest hash of their
name, because the study does not say which. Marked `derived`. The official test images are scored
once, after training.
"""

from collections import Counter
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.data.cards import read_card
from fsbench.data.source import SourceListing
from fsbench.data.sources._listings import split_validation
from fsbench.data.splits import find_inner_folder, read_label, read_lines

BASE = "oxford-iiit-pet"
"""The folder name that torchvision expects."""

FACTS = read_card("pets")


def load(folder: Path, cache: Path) -> SourceListing:
    """Load both parts below `folder`. Raises DataError for missing files and unknown classes."""
    base = find_inner_folder(folder.absolute(), BASE, "images", FACTS)
    trainval, test = (_read_part(base, part) for part in ("trainval", "test"))
    counts = Counter(label for label, _ in trainval)
    return split_validation(
        FACTS, trainval, counts == dict(enumerate(FACTS.images_per_class)), test
    )


def _read_part(base: Path, part: str) -> list[tuple[int, Path]]:
    """Return class ids and images in the order of trainval.txt or test.txt."""
    table = base / "annotations" / f"{part}.txt"
    rows = [line.split() for line in read_lines(table)]
    if any(len(row) != 4 for row in rows) or len({row[1] for row in rows}) < 2:
        raise DataError(
            f"{table} is not Oxford-IIIT Pet's: it has too few fields or classes",
            fix="use the official file, or --source folder:DIR for other images",
        )
    images = []
    for name, number, *_ in rows:
        breed = name.rpartition("_")[0].replace("_", " ").title()
        label = read_label(FACTS, table, f"{name}.jpg", breed, number)
        images.append((label, base / "images" / f"{name}.jpg"))
    return images
