"""Groups of images of the same lesion, patient or leaf, which the disjoint track keeps apart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """Group numbers of the images of each class (n_c,), by class id and in rank order.

    A group may span classes: a patient may have images of two findings.
    """

    by_class: dict[int, Indices]

    @classmethod
    def of(cls, labels: Indices, names: Sequence[str]) -> Groups:
        """Build from a group name per image, in data set order.

        Groups are numbered by first appearance, so the names do not enter the hash.
        """
        number: dict[str, int] = {}
        codes = np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
        return cls({int(c): codes[labels == c] for c in np.unique(labels)})

    @cached_property
    def hash(self) -> str:
        """The sha-256 over class ids and group numbers."""
        digest = hashlib.sha256()
        for c, codes in sorted(self.by_class.items()):
            digest.update(f"{c}:{len(codes)}\n".encode() + codes.astype("<i8").tobytes())
        return digest.hexdigest()

    @cached_property
    def shared(self) -> frozenset[int]:
        """Groups with images in several classes."""
        numbers_by_class = [np.unique(codes) for codes in self.by_class.values()]
        numbers, classes = np.unique(np.concatenate(numbers_by_class), return_counts=True)
        return frozenset(numbers[classes > 1].tolist())

    def left(self, class_id: int, k_shot: int, n_way: int) -> int:
        """Return how many images of a class remain for queries in the worst case.

        Worst case: the support of the class falls into its k_shot largest groups, and every support
        image of the other classes falls into a group that has images in this class too.
        """
        numbers, sizes = np.unique(self.by_class[class_id], return_counts=True)
        foreign = np.isin(numbers, list(self.shared))
        largest = np.sort(sizes[foreign])[::-1]
        met, others = np.split(largest, [(n_way - 1) * k_shot])
        others = np.sort(np.concatenate([others, sizes[~foreign]]))[::-1]
        return int(sizes.sum() - met.sum() - others[:k_shot].sum())
