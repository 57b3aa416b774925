"""Few-shot episodes: their classes and images, as frozen objects, and their export (torch-free).

Protocol of CD-FSL (https://github.com/IBM/cdfsl-benchmark, datasets/*_few_shot.py): n_way classes
are drawn uniformly without replacement, regardless of size; in each, k_shot support and n_query
query images are drawn uniformly without replacement. Unlike in the published code, an episode
depends only on its EpisodeSpec, the name and class counts of the data set, and its number, and can
be computed without the others (protocols/README.md, "The sampler").

On the disjoint track no query belongs to a group that is in the support of the episode, in any
class. Classes and support are those of the classic track. Queries are too, except that a forbidden
image is replaced by the next one in the order of the draw.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fsbench.core import tasks
from fsbench.core.errors import DataError, UsageError
from fsbench.core.io import replacing
from fsbench.core.seeding import words
from fsbench.core.specs import SAMPLING, EpisodeSpec
from fsbench.data.base import Groups, Indices, TargetDataset
from fsbench.data.catalog import TARGETS, DataRoots, find_datasets
from fsbench.data.loading import load_target


@dataclass(frozen=True, eq=False)
class Episode:
    """One task of a few-shot benchmark.

    class_ids (n_way,): official ids in label order 0..n_way-1; class_sizes: their images; support
    (n_way, k_shot) and query (n_way, n_query): ranks in the class's list of images sorted by
    canonical id; groups: of the images that no query may share with the support.
    """

    index: int
    class_ids: Indices
    class_sizes: Sequence[int]
    support: Indices
    query: Indices
    groups: Groups | None = None

    @cached_property
    def query_candidates(self) -> tuple[NDArray[np.bool_], ...]:
        """Per class, a mask (n_c,) of the possible queries: outside the support, or its groups."""
        if self.groups is None:
            lists = zip(self.class_sizes, self.support, strict=True)
            return tuple(np.bincount(ranks, minlength=size) == 0 for size, ranks in lists)
        codes = [self.groups.by_class[c] for c in self.class_ids.tolist()]
        met = np.concatenate([code[ranks] for code, ranks in zip(codes, self.support, strict=True)])
        return tuple(np.isin(code, met, invert=True) for code in codes)

    def images(self, by_class: Mapping[int, Indices]) -> tuple[Indices, Indices]:
        """Return the image indices of support (n_way, k_shot) and query (n_way, n_query).

        by_class: official class id -> image indices in rank order (`TargetDataset.by_class`).
        """
        lists = [by_class[c] for c in self.class_ids.tolist()]
        support, query = (
            np.array([images[ranks] for images, ranks in zip(lists, side, strict=True)])
            for side in (self.support, self.query)
        )
        return support, query


class EpisodeSampler:
    """Random access to the infinite sequence of episodes of a data set.

    class_counts: images by official class id, for the classes present; groups: of the same images,
    for the disjoint track; class_names: by class id, for messages. Raises DataError if no episode
    can be drawn.
    """

    def __init__(
        self,
        spec: EpisodeSpec,
        dataset_name: str,
        class_counts: Mapping[int, int],
        groups: Groups | None = None,
        class_names: Sequence[str] = (),
    ) -> None:
        self.spec, self.dataset_name, self.class_names = spec, dataset_name, class_names
        self.class_counts = {int(c): int(class_counts[c]) for c in sorted(class_counts)}
        self.groups = groups if spec.track == "disjoint" else None
        self._check()
        self._ids = np.array(list(self.class_counts), dtype=np.int64)
        self._name = ("episode", spec.stream, dataset_name)

    @classmethod
    def of(cls, spec: EpisodeSpec, dataset: TargetDataset) -> Self:
        groups = dataset.require_groups() if spec.track == "disjoint" else None
        return cls(spec, dataset.name, dataset.class_counts, groups, dataset.class_names)

    def episode(self, i: int) -> Episode:
        """Return episode number i >= 0."""
        spec = self.spec
        keys = words(len(self._ids), *self._name, i, "classes")
        class_ids = self._ids[argsort_smallest(spec.n_way, keys)]
        sizes = [self.class_counts[c] for c in class_ids.tolist()]
        ends = list(accumulate(sizes))
        keys = words(ends[-1], *self._name, i, "images")
        parts = [keys[low:high] for low, high in pairwise([0, *ends])]
        drawn = np.array([argsort_smallest(spec.k_shot + spec.n_query, part) for part in parts])
        support, query = drawn[:, : spec.k_shot], drawn[:, spec.k_shot :]
        episode = Episode(i, class_ids, sizes, support, query, self.groups)
        if self.groups is None:
            return episode
        queries = [
            np.flatnonzero(free)[argsort_smallest(spec.n_query, part[free])]
            for free, part in zip(episode.query_candidates, parts, strict=True)
        ]
        return replace(episode, query=np.stack(queries))

    def manifest_hash(self, indices: Iterable[int]) -> str:
        """Return the hash of the `Manifest` of these episodes; their order does not matter."""
        groups = None if self.groups is None else self.groups.hash
        return draw_manifest(self.spec, self.dataset_name, self.class_counts, groups, indices).hash

    def _check(self) -> None:
        """Raise DataError if no episode can be drawn, on the disjoint track in the worst case."""
        spec, counts, name, note = self.spec, self.class_counts, self.dataset_name, ""
        need = spec.k_shot + spec.n_query
        if len(counts) < spec.n_way:
            raise DataError(
                f"{name} has {len(counts)} classes; {spec.n_way}-way episodes need {spec.n_way}",
                fix=f"use --way {max(2, len(counts))} or fewer, or add classes",
            )
        if spec.track == "disjoint":
            by_class = self.groups.by_class if self.groups else {}
            if {c: len(codes) for c, codes in by_class.items()} != counts or self.groups is None:
                raise DataError(
                    f"{name}: the disjoint track needs the groups of exactly its images",
                    fix="use the classic track",
                )
            left = {c: self.groups.left(c, spec.k_shot, spec.n_way) for c in counts}
            counts = {c: min(n, spec.k_shot + left[c]) for c, n in counts.items()}
            note = ", the support and what its groups leave"
        class_id, count = min(counts.items(), key=lambda item: item[1])
        if count < need:
            is_named = class_id < len(self.class_names)
            label = f"'{self.class_names[class_id]}'" if is_named else class_id
            fewer = f"use --n-query {count - spec.k_shot} or fewer"
            raise DataError(
                f"{name}: {count} images in class {label}{note}; {spec.k_shot}-shot with "
                f"{spec.n_query} queries needs {need}",
                fix=fewer if count > spec.k_shot else "use fewer --shots, or leave the class out",
            )


class Manifest(NamedTuple):
    """Identity of some episodes.

    hash: a sha-256 over the EpisodeSpec, the name and class counts of the data set, and the
    (class id, ranks) of the episodes; numbers (E,): increasing; class_ids (E, n_way).
    """

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
    """Draw the manifest of episodes, cached for results that share it. Raise DataError.

    groups: `Groups.hash` on the disjoint track; the hashed ranks are those of the classic track,
    which together with the groups determine the queries. The order of `indices` does not matter.
    """
    counts = tuple(sorted((int(c), int(n)) for c, n in class_counts.items()))
    numbers = tuple(sorted({int(i) for i in indices}))
    return _manifest(spec, tasks.strip_digest(dataset_name), counts, groups, numbers)


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


FEW_KEYS = 100
"""Numbers of keys that take no longer to sort than to part."""


def argsort_smallest(m: int, keys: NDArray[np.uint64]) -> Indices:
    """Return the positions of the m smallest keys in key order: a uniform draw without replacement.

    Only the smallest of many keys are sorted.
    """
    if len(keys) <= FEW_KEYS:
        return keys.argsort(kind="stable")[:m]
    near: Indices = (keys <= np.partition(keys, m - 1)[m - 1]).nonzero()[0]
    return near[keys[near].argsort(kind="stable")][:m]


def episode_spec(task: tasks.TaskId, seed: int = 0, n_query: int = 15) -> EpisodeSpec:
    pool, track = SAMPLING[task.protocol or tasks.DEFAULT_PROTOCOL]
    sizes = {"n_way": task.n_way, "k_shot": task.n_shot or 1, "n_query": n_query}
    return EpisodeSpec(pool=pool, track=track, seed=seed, **sizes)


def parse_episodic_task(text: str) -> tasks.TaskId:
    """Return the one episodic task that an id names; raise UsageError if it names several."""
    named = tasks.resolve(text, find_datasets, tasks.Options(kinds=("episodic",)))
    if len(named) != 1:
        raise UsageError(f"'{text}' names {len(named)} tasks", fix=f"name one, e.g. {named[0]}")
    return named[0]


def load_episodes(
    task: tasks.TaskId, roots: DataRoots, seed: int = 0, n_query: int = 15
) -> tuple[TargetDataset, EpisodeSampler]:
    """Load the data set of an episodic task with its sampler. Raise like load_target."""
    spec = episode_spec(task, seed, n_query)
    dataset = load_target(task.dataset, roots, spec.pool)
    return dataset, EpisodeSampler.of(spec, dataset)


def make_sampler(task: tasks.TaskId, roots: DataRoots | None, seed: int = 0) -> EpisodeSampler:
    """Return the sampler of an episodic task: without roots by official class counts if known."""
    spec = episode_spec(task, seed)
    is_official = roots is None and (spec.pool, spec.track) == ("full", "classic")
    if is_official and not task.dataset.startswith(tasks.USER_DATA):
        facts = TARGETS.load(task.dataset).FACTS
        if facts.images_per_class:
            return EpisodeSampler(spec, facts.name, dict(enumerate(facts.images_per_class)))
    return load_episodes(task, roots or DataRoots.parse(), seed)[1]


def write_episodes(
    file: Path, sampler: EpisodeSampler, dataset: TargetDataset, n_episodes: int
) -> None:
    """Write episodes 0..n-1 as JSON Lines; the file appears only when complete.

    Each object has index, class_ids (n_way), and support and query: n_way lists of image paths.
    """
    paths = np.array(dataset.paths)
    with replacing(file) as temporary, temporary.open("w", encoding="utf8") as stream:
        for i in range(n_episodes):
            episode = sampler.episode(i)
            support, query = (paths[side].tolist() for side in episode.images(dataset.by_class))
            record = {"index": i, "class_ids": episode.class_ids.tolist()}
            stream.write(json.dumps(record | {"support": support, "query": query}) + "\n")
