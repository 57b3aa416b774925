"""A target data set: labels, paths and canonical ids in memory; pixels are read on access."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from fsbench.core.errors import DataError
from fsbench.core.schema import Flag
from fsbench.core.specs import Pool
from fsbench.data.cards import DatasetFacts
from fsbench.data.images import open_rgb

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """Group numbers of the images of each class (n_c,), by class id and in rank order.

    A group may span classes: a patient may have images of two findings.
    """

    by_class: dict[int, Indices]

    @classmethod
    def of(cls, labels: Indices, names: Sequence[str]) -> Self:
        """Build from a group name per image, in data set order.

        Groups are numbered by first appearance, so the names do not enter the hash.
        """
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        codes = np.array([numbers[name] for name in names], dtype=np.int64)
        return cls({int(c): codes[labels == c] for c in np.unique(labels)})

    @cached_property
    def hash(self) -> str:
        """The sha-256 over class ids and group numbers."""
        digest = hashlib.sha256()
        for c, codes in sorted(self.by_class.items()):
            digest.update(f"{c}:{len(codes)}\n".encode() + codes.astype("<i8").tobytes())
        return digest.hexdigest()

    def left(self, class_id: int, k_shot: int, n_way: int) -> int:
        """Return how many images of a class remain for queries in the worst case.

        Worst case: the support of the class falls into its k_shot largest groups, and every support
        image of the other classes falls into a group that has images in this class too.
        """
        numbers, sizes = np.unique(self.by_class[class_id], return_counts=True)
        others = [codes for c, codes in self.by_class.items() if c != class_id]
        foreign = np.isin(numbers, np.concatenate(others))
        met, rest = np.split(np.sort(sizes[foreign])[::-1], [(n_way - 1) * k_shot])
        rest = np.sort(np.concatenate([rest, sizes[~foreign]]))[::-1]
        return int(sizes.sum() - met.sum() - rest[:k_shot].sum())


def hash_lines(lines: Iterable[str]) -> str:
    """Return the sha-256 of the lines, each ended by a newline."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


@dataclass(frozen=True, eq=False)
class TargetDataset:
    """Images of a target domain, sorted by (class id, canonical id).

    So the rank of an image in its class follows from the ids alone. name: keys all random draws;
    paths: relative to root, '/' as separator; canonical_ids: `Class/file`, or the id without suffix
    where files are flat (fsbench/data/README.md); labels: official class ids (N,); class_names: of
    all official classes, by class id; notes: remarks on the files; groups: images that show the
    same lesion, patient or leaf, None if unknown; result_name: the name in results where it differs
    (`user_data_name`); bits: in use of each value of 16-bit images, None for all; draw: opens an
    image that has no file by its canonical id; read: the bytes of such an image that the
    fingerprint covers, by default its pixels.
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
    result_name: str | None = None
    bits: int | None = None
    draw: Callable[[str], Image.Image] | None = None
    read: Callable[[str], bytes] | None = None

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def class_counts(self) -> dict[int, int]:
        """Number of images by official class id, for the classes present, in id order."""
        ids, counts = np.unique(self.labels, return_counts=True)
        return {int(i): int(n) for i, n in zip(ids, counts, strict=True)}

    @cached_property
    def by_class(self) -> dict[int, NDArray[np.int64]]:
        """Image indices in rank order by official class id."""
        return {c: np.flatnonzero(self.labels == c) for c in self.class_counts}

    @cached_property
    def images_hash(self) -> str:
        """The sha-256 over the sorted canonical ids, which identifies the images by name."""
        return hash_lines(sorted(self.canonical_ids))

    def take(self, index: NDArray[np.int64]) -> Self:
        """Return a data set of the images at these indices, in this order and without groups."""
        return replace(
            self,
            paths=tuple(self.paths[i] for i in index),
            canonical_ids=tuple(self.canonical_ids[i] for i in index),
            labels=self.labels[index],
            groups=None,
        )

    def require_groups(self) -> Groups:
        """Return the groups. Raise DataError if they are unknown."""
        if self.groups is not None:
            return self.groups
        expected = f"expected: {self.facts.groups}; else " if self.facts.groups else ""
        raise DataError(
            f"{self.name} has no groups of images that show the same thing",
            fix=f"{expected}leave it out of the disjoint track",
        )

    def file(self, index: int) -> Path | None:
        """Return the path of image `index`; None if it has no file."""
        return None if self.draw else self.root / self.paths[index]

    def content(self, index: int) -> bytes:
        """Return what the fingerprint covers of an image without a file."""
        return self.read(self.canonical_ids[index]) if self.read else self.image(index).tobytes()

    def image(self, index: int) -> Image.Image:
        """Read image `index` as RGB. Raise DataError naming a missing or corrupt file."""
        if self.draw:
            return self.draw(self.canonical_ids[index])
        return open_rgb(self.root / self.paths[index], self.facts.pre_resize, self.bits)
