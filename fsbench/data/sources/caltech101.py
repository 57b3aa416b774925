"""Caltech-101: 101 kinds of objects, a small source of the reinitialization study.

Faces and Faces_easy are two classes, as in torchvision. There is no official split. As in the study
(https://arxiv.org/abs/2109.00267), 30 images of every class are used and 10 % of them held out for
validation; here those with the smallest hash of their name, because the study does not say which.
Marked `derived`. The study counts 3,060 training images, which is 30 for each of 102 folders,
BACKGROUND_Google included. All other images of the 101 classes are scored once, after training.
"""

from collections import Counter
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.data.cards import read_card
from fsbench.data.files import ClassTree
from fsbench.data.source import SourceListing, select_by_hash
from fsbench.data.sources._listings import split_validation
from fsbench.data.splits import find_inner_folder

PER_CLASS = 30
BACKGROUND = "BACKGROUND_Google"
TREE = "101_ObjectCategories"
BASE = "caltech101"
"""The folder that holds all, as torchvision names it."""

FACTS = read_card("caltech101")


def load(folder: Path, cache: Path) -> SourceListing:
    """Load 30 images of every class, and test on the others. Raises DataError for wrong classes."""
    tree = _read_tree(folder)
    images = [(label, tree.root / path) for label, path in tree.labelled(FACTS.classes)]
    labels = [label for label, _ in images]
    ids = [f"{path.parent.name}/{path.name}" for _, path in images]
    selected = select_by_hash(labels, ids, PER_CLASS, FACTS.name, "train")
    others = sorted({*range(len(images))} - {*selected})
    used, test = ([images[i] for i in part] for part in (selected, others))
    complete = Counter(labels) == dict(enumerate(FACTS.counts.values()))
    return split_validation(FACTS, used, complete, test)


def _read_tree(folder: Path) -> ClassTree:
    tree = ClassTree.read(find_inner_folder(folder.absolute(), BASE, TREE, FACTS) / TREE)
    wrong = sorted(tree.images.keys() - {*FACTS.classes, BACKGROUND})
    if wrong or BACKGROUND not in tree.images or len(tree.images) < 3:
        raise DataError(
            f"{tree.root} is not Caltech-101: "
            f"{(*wrong, f'{BACKGROUND} or all classes missing')[0]}",
            fix="unpack the whole archive, or use --source folder:DIR for other images",
        )
    return tree
