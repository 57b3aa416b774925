"""A target data set in memory: labels, paths and canonical ids; pixels only when asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts, Flag
from fsbench.core.specs import Pool
from fsbench.data.groups import Groups


def hash_lines(lines: Iterable[str]) -> str:
    """sha-256 of the lines, each ended by a newline."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class TargetDataset:
    """Images of a target domain.

    Images stand sorted by (class id, canonical id), so the rank of an image in its class follows
    from the ids alone. paths: relative to root, '/' as separator; canonical_ids: `Class/file`, or
    the id without suffix where files are flat (protocol.md 1a); labels: official class ids (N,);
    class_names: names of all official classes, by class id; notes: what a reader should know of
    these files, such as how many images a label file names that are not there; groups: which images
    show the same thing (FACTS.groups), None where that is not known.
    """

    name: str
    facts: DatasetFacts
    root: Path
    paths: tuple[str, ...]
    canonical_ids: tuple[str, ...]
    labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    pool: Pool = "full"
    flags: frozenset[Flag] = field(default_factory=frozenset)
    notes: tuple[str, ...] = ()
    groups: Groups | None = None

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def class_counts(self) -> dict[int, int]:
        """Official class id -> images, for the classes present, in id order."""
        ids, counts = np.unique(self.labels, return_counts=True)
        return {int(i): int(n) for i, n in zip(ids, counts, strict=True)}

    @cached_property
    def by_class(self) -> dict[int, NDArray[np.int64]]:
        """Official class id -> image indices in rank order."""
        return {c: np.flatnonzero(self.labels == c) for c in self.class_counts}

    @cached_property
    def images_hash(self) -> str:
        """sha-256 over the sorted canonical ids: states which images these are."""
        return hash_lines(sorted(self.canonical_ids))

    def with_flags(self, *flags: Flag) -> Self:
        """The same data set with more flags."""
        return replace(self, flags=self.flags | set(flags))

    def take(self, index: NDArray[np.int64]) -> Self:
        """The images at these places alone, in this order; nothing is known of their groups."""
        return replace(
            self,
            paths=tuple(self.paths[i] for i in index),
            canonical_ids=tuple(self.canonical_ids[i] for i in index),
            labels=self.labels[index],
            groups=None,
        )

    def with_groups(self, group_of: Callable[[str], str]) -> Self:
        """The same data set, with the group of each canonical id."""
        return replace(self, groups=Groups.of(self.labels, list(map(group_of, self.canonical_ids))))

    def require_groups(self) -> Groups:
        """Raises DataError where it is not known which images show the same thing."""
        if self.groups is None and not self.facts.groups:
            raise DataError(
                f"{self.name}: nothing says which of its images show the same thing",
                fix="leave it out of the disjoint track and of the audit",
            )
        if self.groups is None:
            raise DataError(
                f"{self.name}: {self.root} does not say which images show the same thing",
                fix=f"expected: {self.facts.groups}",
            )
        return self.groups

    def file(self, index: int) -> Path | None:
        """Where image `index` lies on disk; None if it is generated."""
        return self.root / self.paths[index]

    def image(self, index: int) -> Image.Image:
        """Image `index` as RGB. Raises DataError naming a missing or corrupt file."""
        from fsbench.data.images import open_rgb

        return open_rgb(self.root / self.paths[index], self.facts.pre_resize)
