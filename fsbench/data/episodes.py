"""Few-shot episodes as frozen objects: which classes, and which images of each (torch-free).

Protocol (protocol.md 3; IBM datasets/*_few_shot.py): n_way classes drawn uniformly without
replacement, whatever their sizes; in each, k_shot support and n_query query images drawn uniformly
without replacement. Unlike the published code, an episode depends on nothing but its EpisodeSpec,
the data set's name and class counts and its own number, and any episode is computed without the
others (design.md 5).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsbench.errors import DataError
from fsbench.seeding import words
from fsbench.specs import EpisodeSpec

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Episode:
    """One task of a few-shot benchmark.

    class_ids (n_way,): official ids in label order 0..n_way-1; support (n_way, k_shot) and query
    (n_way, n_query): ranks in the class's list of images sorted by canonical id.
    """

    index: int
    class_ids: Indices
    support: Indices
    query: Indices

    def images(self, by_class: Mapping[int, Indices]) -> tuple[Indices, Indices]:
        """Image indices of support (n_way, k_shot) and query (n_way, n_query).

        by_class: official class id -> image indices in rank order (`TargetDataset.by_class`).
        """
        lists = [by_class[int(c)] for c in self.class_ids]
        support = np.stack(
            [images[ranks] for images, ranks in zip(lists, self.support, strict=True)]
        )
        query = np.stack([images[ranks] for images, ranks in zip(lists, self.query, strict=True)])
        return support, query


class EpisodeSampler:
    """Random access to the endless series of episodes of a data set.

    class_counts: official class id -> images, of the classes present. Raises DataError when an
    episode could not be drawn: too few classes, or a class with fewer than k_shot + n_query images.
    """

    def __init__(
        self, spec: EpisodeSpec, dataset_name: str, class_counts: Mapping[int, int]
    ) -> None:
        self.spec, self.dataset_name = spec, dataset_name
        self.class_counts = {int(c): int(class_counts[c]) for c in sorted(class_counts)}
        self._check()
        self._ids = np.array(list(self.class_counts), dtype=np.int64)
        self._name = ("episode", spec.digest(), dataset_name)

    def episode(self, i: int) -> Episode:
        """Episode number i >= 0."""
        spec = self.spec
        keys = words(len(self._ids), *self._name, i, "classes")
        class_ids = self._ids[first(spec.n_way, keys)]
        counts = [self.class_counts[int(c)] for c in class_ids]
        keys = words(sum(counts), *self._name, i, "images")
        parts = np.split(keys, np.cumsum(counts)[:-1])
        ranks = np.stack([first(spec.k_shot + spec.n_query, part) for part in parts])
        return Episode(i, class_ids, ranks[:, : spec.k_shot], ranks[:, spec.k_shot :])

    def manifest_hash(self, indices: Iterable[int]) -> str:
        """sha-256 that two results share if and only if they used the same episodes.

        Covers the EpisodeSpec, the data set's name and class counts, and the (class id, ranks) that
        the given episodes draw. The order of `indices` does not matter.
        """
        digest = hashlib.sha256()
        counts = " ".join(f"{c}:{n}" for c, n in self.class_counts.items())
        digest.update(f"{self.spec.digest()}\n{self.dataset_name}\n{counts}\n".encode())
        for i in sorted({int(i) for i in indices}):
            episode = self.episode(i)
            drawn = np.column_stack([episode.class_ids, episode.support, episode.query])
            digest.update(f"{i}\n".encode() + drawn.astype("<i8").tobytes())
        return digest.hexdigest()

    def _check(self) -> None:
        spec, need = self.spec, self.spec.k_shot + self.spec.n_query
        if len(self.class_counts) < spec.n_way:
            raise DataError(
                f"{self.dataset_name} has {len(self.class_counts)} classes, "
                f"a {spec.n_way}-way episode needs {spec.n_way}",
                fix="lower --way, or add classes",
            )
        small = [f"class {c} has {n}" for c, n in self.class_counts.items() if n < need]
        if small:
            raise DataError(
                f"{self.dataset_name} has classes too small for {spec.k_shot} support and "
                f"{spec.n_query} query images, which need {need}: {', '.join(small)}",
                fix="lower --shots, or add images to these classes",
            )


def first(m: int, keys: NDArray[np.uint64]) -> Indices:
    """Positions of the m smallest keys in key order: the head of a uniform permutation.

    Equal to `np.argsort(keys, kind="stable")[:m]`, without sorting the rest.
    """
    near = np.flatnonzero(keys <= np.partition(keys, m - 1)[m - 1])
    return near[np.argsort(keys[near], kind="stable")][:m]
