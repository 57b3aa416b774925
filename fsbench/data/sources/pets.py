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
from fsbench.data.splits import UNREADABLE, find_inner_folder

BASE = "oxford-iiit-pet"
"""The folder name that torchvision expects."""

CARD = read_card("pets")
FACTS, ARCHIVES = CARD.facts, CARD.archives


def load(folder: Path, cache: Path) -> SourceListing:
    """Load both parts below `folder`. Raises DataError for missing files and unknown classes."""
    base = find_inner_folder(folder.absolute(), BASE, "images", FACTS)
    paths, labels = _official_part(base, "trainval")
    complete = Counter(labels) == dict(enumerate(FACTS.images_per_class))
    tested, answers = _official_part(base, "test")
    test = list(zip(answers, tested, strict=True))
    return split_validation(FACTS, paths, labels, complete, test)


def _official_part(base: Path, part: str) -> tuple[list[Path], list[int]]:
    """Return image files and labels in the order of trainval.txt or test.txt."""
    from torchvision.datasets import OxfordIIITPet

    table = base / "annotations" / f"{part}.txt"
    try:
        dataset = OxfordIIITPet(base.parent, split=part, download=False)
    except UNREADABLE as error:
        raise DataError(f"cannot read {table}: {error}", fix=f"expected: {FACTS.layout}") from error
    paths, labels = list(dataset._images), list(dataset._labels)
    official = {name: label for label, name in enumerate(FACTS.classes)}
    images = base / "images"
    wrong = [
        path.stem
        for path, label in zip(paths, labels, strict=True)
        if official.get(_breed(path)) != label or path != images / path.name
    ]
    if wrong or len(set(labels)) < 2:
        raise DataError(
            f"{table} is not Oxford-IIIT Pet's: {(*wrong, 'too few classes')[0]}",
            fix="use the official file, or --source folder:DIR for other images",
        )
    return paths, labels


def _breed(path: Path) -> str:
    """Return the class name that a file name starts with, spelled as in torchvision."""
    return path.stem.rpartition("_")[0].replace("_", " ").title()
