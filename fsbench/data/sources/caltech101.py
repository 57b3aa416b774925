"""Caltech-101: 101 kinds of objects, a small source of the reinitialization study.

Read through torchvision, which keeps Faces and Faces_easy as two classes. There is no official
split. As in the study (https://arxiv.org/abs/2109.00267), 30 images of every
class are used and 10 % of them held out for validation; here those with the smallest hash of their
name, because the study does not say which. Marked `derived`. The study counts 3,060 training
images, which is 30 for each of 102 folders, BACKGROUND_Google included. All other images of the 101
classes are scored once, after training.
"""

from collections import Counter
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.data.cards import read_card
from fsbench.data.files import list_folders
from fsbench.data.source import SourceListing, select_by_hash
from fsbench.data.sources._listings import split_validation
from fsbench.data.splits import find_inner_folder

PER_CLASS = 30
BACKGROUND = "BACKGROUND_Google"
TREE = "101_ObjectCategories"
BASE = "caltech101"
"""The folder name that torchvision expects."""

CARD = read_card("caltech101")
FACTS, ARCHIVES = CARD.facts, CARD.archives
COUNTS = CARD.counts
"""Number of images by class, 8,677 in all."""


def load(folder: Path, cache: Path) -> SourceListing:
    """Load 30 images of every class, and test on the others. Raises DataError for wrong classes."""
    paths, labels = _images(_base(folder))
    ids = [f"{path.parent.name}/{path.name}" for path in paths]
    selected = select_by_hash(labels, ids, PER_CLASS, FACTS.name, "train")
    complete = Counter(labels) == dict(enumerate(COUNTS.values()))
    used = set(selected)
    test = [(labels[i], path) for i, path in enumerate(paths) if i not in used]
    return split_validation(
        FACTS, [paths[i] for i in selected], [labels[i] for i in selected], complete, test
    )


def _base(folder: Path) -> Path:
    """Return the folder named caltech101: `folder` or the one in it, as torchvision needs it."""
    base = find_inner_folder(folder.absolute(), BASE, TREE, FACTS)
    tree = base / TREE
    names = {path.name for path in list_folders(tree)}
    wrong = sorted(names - {*COUNTS, BACKGROUND})
    if wrong or BACKGROUND not in names or len(names) < 3:
        raise DataError(
            f"{tree} is not Caltech-101: {(*wrong, f'{BACKGROUND} or all classes missing')[0]}",
            fix="unpack the whole archive, or use --source folder:DIR for other images",
        )
    return base


def _images(base: Path) -> tuple[list[Path], list[int]]:
    """Return the image files of all classes and their labels."""
    from torchvision.datasets import Caltech101

    dataset = Caltech101(base.parent, download=False)
    numbers = zip(dataset.y, dataset.index, strict=True)
    names = [(dataset.categories[y], n) for y, n in numbers]
    paths = [base / TREE / name / f"image_{n:04d}.jpg" for name, n in names]
    order = {name: rank for rank, name in enumerate(COUNTS)}
    return paths, [order[name] for name, _ in names]
