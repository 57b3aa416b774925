"""Train and test splits of a target: the official lists', or a derived split of ours."""

import numpy as np

from fsbench.core.errors import DataError
from fsbench.data.base import Indices, TargetDataset
from fsbench.data.source import select_by_hash

PARTS = ("train", "test")


def split_dataset(dataset: TargetDataset) -> tuple[Indices, Indices]:
    """Return the sorted indices of the train and test images: the official split, else derived.

    A derived split takes 20 % of every class for the test, those with the smallest hash of their
    canonical id (rounded, at least one), so it depends only on the ids. Raises DataError for a part
    without an image, and for a class with one image, which cannot be split.
    """
    if dataset.facts.split is None:
        for class_id, n in dataset.class_counts.items():
            if n < 2:
                name = f"{dataset.name}: class {dataset.class_names[class_id]}"
                raise DataError(
                    f"{name} has one image; a train and test split needs two",
                    fix="add images to it, or leave the class out",
                )
        return _select(dataset, np.arange(len(dataset)), 0.2, "split")
    parts = np.array([name.partition("/")[0] for name in dataset.canonical_ids])
    train, test = (np.flatnonzero(parts == part) for part in PARTS)
    if not (train.size and test.size):
        raise DataError(
            f"{dataset.name} has {train.size} train and {test.size} test images; both are needed",
            fix=f"complete it: {dataset.facts.download}",
        )
    return train, test


def hold_out(dataset: TargetDataset, train: Indices, part: float) -> tuple[Indices, Indices]:
    """Hold out a fraction `part` of every class: sorted positions in `train` (rest, held out).

    A class with one training image keeps it. Raises DataError if no class has two.
    """
    rest, chosen = _select(dataset, train, part, "held-out")
    if not chosen.size:
        raise DataError(
            f"{dataset.name}: no class has two training images, so none can be held out",
            fix="choose the learning rate on the test images, or add images",
        )
    return rest, chosen


def _select(
    dataset: TargetDataset, members: Indices, part: float, stream: str
) -> tuple[Indices, Indices]:
    """Return sorted positions in `members`: the rest, and `part` of every class of two or more."""
    labels = dataset.labels[members]
    several = np.flatnonzero(np.bincount(labels)[labels] > 1)
    ids = [dataset.canonical_ids[i] for i in members[several]]
    chosen = several[select_by_hash(labels[several].tolist(), ids, part, stream)]
    return np.setdiff1d(np.arange(len(members)), chosen), chosen
