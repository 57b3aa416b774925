"""Images that show the same lesion, patient or leaf: what the disjoint track keeps apart."""

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
    """Class id -> number of the group of each image (n_c,), in rank order.

    Equal numbers are one group, in other classes too: a patient may have images of two findings.
    """

    by_class: dict[int, Indices]

    @classmethod
    def of(cls, labels: Indices, names: Sequence[str]) -> Groups:
        """From a group name per image, in data set order. Numbers count groups as they appear, so
        the names themselves leave no trace."""
        number: dict[str, int] = {}
        codes = np.array([number.setdefault(name, len(number)) for name in names], dtype=np.int64)
        return cls({int(c): codes[labels == c] for c in np.unique(labels)})

    @cached_property
    def hash(self) -> str:
        """sha-256 over class ids and group numbers."""
        digest = hashlib.sha256()
        for c, codes in sorted(self.by_class.items()):
            digest.update(f"{c}:{len(codes)}\n".encode() + codes.astype("<i8").tobytes())
        return digest.hexdigest()

    @cached_property
    def shared(self) -> frozenset[int]:
        """Groups with images in several classes."""
        each = [np.unique(codes) for codes in self.by_class.values()]
        numbers, classes = np.unique(np.concatenate(each), return_counts=True)
        return frozenset(numbers[classes > 1].tolist())

    def left(self, class_id: int, k_shot: int, n_way: int) -> int:
        """Images of a class that surely remain for queries, whatever the support.

        Worst case: the own support meets the k_shot largest groups, and every support image of the
        other classes meets a group with images in both.
        """
        numbers, sizes = np.unique(self.by_class[class_id], return_counts=True)
        foreign = np.isin(numbers, list(self.shared))
        largest = np.sort(sizes[foreign])[::-1]
        met, own = np.split(largest, [(n_way - 1) * k_shot])
        own = np.sort(np.concatenate([own, sizes[~foreign]]))[::-1]
        return int(sizes.sum() - met.sum() - own[:k_shot].sum())
