"""Train and test images of a target: the official parts, or a split made here, marked `derived`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import DataError
from fsbench.core.seeding import seed_for
from fsbench.data.base import TargetDataset
from fsbench.data.official import PARTS

Indices = NDArray[np.int64]


def split_of(dataset: TargetDataset) -> tuple[Indices, Indices]:
    """Indices of the train and test images, both sorted: official if there are such, else derived.

    Raises DataError as `derived_split`, and for an official part without an image.
    """
    if dataset.facts.split is None:
        return derived_split(dataset)
    parts = np.array([name.partition("/")[0] for name in dataset.canonical_ids])
    train, test = (np.flatnonzero(parts == part) for part in PARTS)
    if not (train.size and test.size):
        raise DataError(
            f"{dataset.name} has {train.size} train and {test.size} test images, both are needed",
            fix=f"complete it: {dataset.facts.download}",
        )
    return train, test


def derived_split(dataset: TargetDataset) -> tuple[Indices, Indices]:
    """80 % train, 20 % test of every class, both sorted: image indices (N_train,), (N_test,).

    In each class the images with the smallest hash of their canonical id are the test images
    (rounded, at least one), so the split depends on nothing but the ids. Raises DataError for a
    class of a single image.
    """
    train: list[Indices] = []
    test: list[Indices] = []
    for class_id, members in dataset.by_class.items():
        if len(members) < 2:
            raise DataError(
                f"{dataset.name}: class {dataset.class_names[class_id]} has one image; a train and "
                "test split needs two",
                fix="add images to it, or leave the class out",
            )
        order = members[np.argsort(_keys(dataset, members, "split"), kind="stable")]
        n_test = max(1, round(len(members) / 5))
        test.append(order[:n_test])
        train.append(order[n_test:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def held_out(dataset: TargetDataset, train: Indices, part: float) -> tuple[Indices, Indices]:
    """Places in `train` that are kept and held out, both sorted: `part` of every class of train.

    Chosen as in `derived_split`; a class of one training image gives none. Raises DataError where
    no class has two.
    """
    labels = dataset.labels[train]
    held: list[Indices] = [np.empty(0, np.int64)]
    for class_id in np.unique(labels):
        places = np.flatnonzero(labels == class_id)
        if len(places) > 1:
            n_held = min(len(places) - 1, max(1, round(part * len(places))))
            order = np.argsort(_keys(dataset, train[places], "held-out"), kind="stable")
            held.append(places[order[:n_held]])
    chosen = np.sort(np.concatenate(held))
    if not chosen.size:
        raise DataError(
            f"{dataset.name}: no class has two training images, so none can be held out",
            fix="choose the learning rate on the test images, or add images",
        )
    return np.setdiff1d(np.arange(len(train)), chosen), chosen


def _keys(dataset: TargetDataset, members: Indices, name: str) -> NDArray[np.uint64]:
    return np.array([seed_for(name, dataset.canonical_ids[i]) for i in members], dtype=np.uint64)
