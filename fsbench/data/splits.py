"""Train and test images of a target: the official parts, or a split made here, marked `derived`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fsbench.data.base import TargetDataset
from fsbench.data.official import PARTS
from fsbench.errors import DataError
from fsbench.seeding import seed_for

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
        keys = [seed_for("split", dataset.canonical_ids[i]) for i in members]
        order = members[np.argsort(np.array(keys), kind="stable")]
        n_test = max(1, round(len(members) / 5))
        test.append(order[:n_test])
        train.append(order[n_test:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))
