"""Few-shot episodes as frozen objects: which classes, and which images of each (torch-free).

Protocol (protocol.md 3; IBM datasets/*_few_shot.py): n_way classes drawn uniformly without
replacement, whatever their sizes; in each, k_shot support and n_query query images drawn uniformly
without replacement. Unlike the published code, an episode depends on nothing but its EpisodeSpec,
the data set's name and class counts and its own number, and any episode is computed without the
others (design.md 5).

On the disjoint track no query is of a group that is in the support of the episode, in whatever
class. Classes and support are those of the classic track, and so are the queries but for those that
the groups forbid: each gives way to the next image in the order of the draw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import DataError
from fsbench.core.seeding import words
from fsbench.core.specs import EpisodeSpec
from fsbench.data.groups import Groups, Indices

if TYPE_CHECKING:
    from fsbench.data.base import TargetDataset


@dataclass(frozen=True, eq=False)
class Episode:
    """One task of a few-shot benchmark.

    class_ids (n_way,): official ids in label order 0..n_way-1; support (n_way, k_shot) and query
    (n_way, n_query): ranks in the class's list of images sorted by canonical id;
    query_candidates: per class, a mask (n_c,) of the images that may be queries given the support.
    Queries are drawn uniformly among them.
    """

    index: int
    class_ids: Indices
    support: Indices
    query: Indices
    query_candidates: tuple[NDArray[np.bool_], ...]

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

    class_counts: official class id -> images, of the classes present; groups: of the same images,
    for the disjoint track. Raises DataError when an episode could not be drawn: too few classes, a
    class with too few images, or the disjoint track without groups.
    """

    def __init__(
        self,
        spec: EpisodeSpec,
        dataset_name: str,
        class_counts: Mapping[int, int],
        groups: Groups | None = None,
    ) -> None:
        self.spec, self.dataset_name = spec, dataset_name
        self.class_counts = {int(c): int(class_counts[c]) for c in sorted(class_counts)}
        self.groups = groups if spec.track == "disjoint" else None
        self._check()
        self._ids = np.array(list(self.class_counts), dtype=np.int64)
        self._name = ("episode", spec.stream, dataset_name)

    @classmethod
    def of(cls, spec: EpisodeSpec, dataset: TargetDataset) -> Self:
        """The sampler of a data set in memory."""
        if spec.track == "disjoint":
            dataset.require_groups()
        return cls(spec, dataset.name, dataset.class_counts, dataset.groups)

    def episode(self, i: int) -> Episode:
        """Episode number i >= 0."""
        spec = self.spec
        keys = words(len(self._ids), *self._name, i, "classes")
        class_ids = self._ids[smallest_keys(spec.n_way, keys)]
        counts = [self.class_counts[int(c)] for c in class_ids]
        keys = words(sum(counts), *self._name, i, "images")
        parts = np.split(keys, np.cumsum(counts)[:-1])
        support = np.stack([smallest_keys(spec.k_shot, part) for part in parts])
        askable = self._query_candidates(class_ids, support)
        query = [
            np.flatnonzero(free)[smallest_keys(spec.n_query, part[free])]
            for free, part in zip(askable, parts, strict=True)
        ]
        return Episode(i, class_ids, support, np.stack(query), askable)

    def _query_candidates(
        self, class_ids: Indices, support: Indices
    ) -> tuple[NDArray[np.bool_], ...]:
        """Which images of each class may be queries: none of the support or of its groups."""
        if self.groups is None:
            masks = [np.ones(self.class_counts[int(c)], np.bool_) for c in class_ids]
            for mask, ranks in zip(masks, support, strict=True):
                mask[ranks] = False
            return tuple(masks)
        codes = [self.groups.by_class[int(c)] for c in class_ids]
        met = np.concatenate([code[ranks] for code, ranks in zip(codes, support, strict=True)])
        return tuple(np.isin(code, met, invert=True) for code in codes)

    def manifest_hash(self, indices: Iterable[int]) -> str:
        """`manifest_hash` of these episodes; their order does not matter."""
        groups = None if self.groups is None else self.groups.hash
        return hash_manifest(self.spec, self.dataset_name, self.class_counts, groups, indices)

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
        if spec.track == "disjoint":
            self._check_groups()

    def _check_groups(self) -> None:
        if self.groups is None:
            raise DataError(
                f"{self.dataset_name}: which images belong together is not known",
                fix="leave the disjoint track out",
            )
        if {c: len(codes) for c, codes in self.groups.by_class.items()} != self.class_counts:
            raise DataError(f"{self.dataset_name}: groups and class counts are of different images")
        spec = self.spec
        left = {c: self.groups.left(c, spec.k_shot, spec.n_way) for c in self.class_counts}
        small = [f"class {c} keeps {n}" for c, n in left.items() if n < spec.n_query]
        if small:
            raise DataError(
                f"{self.dataset_name} has classes that may keep too few images of other groups for "
                f"{spec.n_query} queries at {spec.k_shot} shots: {', '.join(small)}",
                fix="lower --shots or --way, or add images to these classes",
            )


def hash_manifest(
    spec: EpisodeSpec,
    dataset_name: str,
    class_counts: Mapping[int, int],
    groups: str | None,
    indices: Iterable[int],
) -> str:
    """sha-256 that two results share if and only if they used the same episodes.

    Covers the EpisodeSpec, the data set's name and class counts, and the (class id, ranks) that the
    given episodes draw. groups: `Groups.hash` on the disjoint track, where the ranks are those of
    the classic track: what the groups change follows from them. So whoever has no image can still
    compute it. The order of `indices` does not matter.
    """
    return draw_manifest(spec, dataset_name, class_counts, groups, indices).hash


class Manifest(NamedTuple):
    """What episodes are, in words of their numbers: hash as in `manifest_hash`; numbers (E,),
    increasing; class_ids (E, n_way)."""

    hash: str
    numbers: Indices
    class_ids: Indices


def draw_manifest(
    spec: EpisodeSpec,
    dataset_name: str,
    class_counts: Mapping[int, int],
    groups: str | None,
    indices: Iterable[int],
) -> Manifest:
    """As `manifest_hash`; drawn once for all cells that share it. Raises DataError."""
    counts = tuple(sorted((int(c), int(n)) for c, n in class_counts.items()))
    return _manifest(spec, dataset_name, counts, groups, tuple(sorted({int(i) for i in indices})))


@lru_cache(maxsize=64)
def _manifest(
    spec: EpisodeSpec,
    dataset_name: str,
    class_counts: tuple[tuple[int, int], ...],
    groups: str | None,
    numbers: tuple[int, ...],
) -> Manifest:
    sampler = EpisodeSampler(spec.classic, dataset_name, dict(class_counts))
    counts = " ".join(f"{c}:{n}" for c, n in class_counts)
    digest = hashlib.sha256(f"{spec.digest()}\n{dataset_name}\n{counts}\n".encode())
    digest.update(f"groups {groups}\n".encode() if spec.track == "disjoint" else b"")
    class_ids = np.empty((len(numbers), spec.n_way), np.int64)
    for row, i in enumerate(numbers):
        episode = sampler.episode(i)
        drawn = np.column_stack([episode.class_ids, episode.support, episode.query])
        digest.update(f"{i}\n".encode() + drawn.astype("<i8").tobytes())
        class_ids[row] = episode.class_ids
    class_ids.flags.writeable = False
    return Manifest(digest.hexdigest(), np.array(numbers, np.int64), class_ids)


def smallest_keys(m: int, keys: NDArray[np.uint64]) -> Indices:
    """Positions of the m smallest keys in key order: the head of a uniform permutation.

    Equal to `np.argsort(keys, kind="stable")[:m]`, without sorting the rest.
    """
    near = np.flatnonzero(keys <= np.partition(keys, m - 1)[m - 1])
    return near[np.argsort(keys[near], kind="stable")][:m]
