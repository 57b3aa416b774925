"""Does a data set on disk hold up: official counts, and every image opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from fsbench.core.errors import DataError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import EpisodeSpec, Frozen, Protocol
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import SOURCES, resolve_alias
from fsbench.data.episodes import Episode, EpisodeSampler
from fsbench.data.groups import Groups
from fsbench.data.loading import FOLDER, HUB, list_source, load_target
from fsbench.data.roots import DataRoots


@dataclass(frozen=True)
class DatasetCheck:
    """What was found.

    counts: images a class, present and official, in class id order (of a source the train images;
    None where official ones are not stated class by class);
    corrupt: one message for each image that cannot be decoded.
    """

    facts: DatasetFacts
    images: int
    counts: tuple[tuple[int, int | None], ...]
    complete: bool
    notes: tuple[str, ...]
    corrupt: tuple[str, ...]

    def problem(self) -> DataError | None:
        """What is wrong, as the error that the command line raises; None if nothing is."""
        if self.corrupt:
            lines = "\n  ".join(self.corrupt)
            return DataError(
                f"{self.facts.name}: {len(self.corrupt)} of {self.images} images cannot be read:"
                f"\n  {lines}",
                fix=f"fetch these again ({self.facts.download})",
            )
        if not self.complete:
            return DataError(
                f"{self.facts.name} does not have the official images: {self._differing()}",
                fix="results on it are marked `subset`; for official ones complete it: "
                f"{self.facts.download}",
            )
        return None

    def _differing(self) -> str:
        other = [
            f"{name} {found} of {official}"
            for name, (found, official) in zip(self.facts.classes, self.counts, strict=True)
            if official is not None and found != official
        ]
        more = f" and {len(other) - 8} more classes" if len(other) > 8 else ""
        return "; ".join([*other[:8], *self.notes]) + more


def verify_dataset(
    name: str, roots: DataRoots, cache: Path, report: Reporter = SILENT
) -> DatasetCheck:
    """Check one target or source. Raises as load_target and load_source where nothing is found."""
    if name.startswith(HUB) or (
        not name.startswith(FOLDER) and resolve_alias(name) in SOURCES.names()
    ):
        return _source(name, roots, cache, report)
    dataset = load_target(name, roots)
    openers = [partial(dataset.image, index) for index in range(len(dataset))]
    return DatasetCheck(
        facts=dataset.facts,
        images=len(dataset),
        counts=_counts(dataset.labels.tolist(), dataset.facts),
        complete="subset" not in dataset.flags,
        notes=dataset.notes,
        corrupt=tuple(_corrupt(openers, dataset.name, report)),
    )


def _source(name: str, roots: DataRoots, cache: Path, report: Reporter) -> DatasetCheck:
    listing = list_source(name, roots, cache)
    samples = [*listing.train, *listing.val]
    return DatasetCheck(
        facts=listing.facts,
        images=len(samples),
        counts=_counts([sample.label for sample in listing.train], listing.facts),
        complete="subset" not in listing.flags,
        notes=(f"{len(listing.val)} validation images",),
        corrupt=tuple(_corrupt([s.open for s in samples], listing.facts.name, report)),
    )


def _counts(labels: Sequence[int], facts: DatasetFacts) -> tuple[tuple[int, int | None], ...]:
    found = Counter(labels)
    official = facts.images_per_class or (None,) * len(facts.classes)
    return tuple((found[c], count) for c, count in enumerate(official))


def _corrupt(openers: Sequence[Callable[[], Any]], name: str, report: Reporter) -> Iterator[str]:
    with (
        report.task(f"open {name}", len(openers), "images") as advance,
        ThreadPoolExecutor(4) as threads,
    ):
        for message in threads.map(_complaint, openers):
            advance(1)
            if message:
                yield message


def _complaint(opener: Callable[[], Any]) -> str:
    try:
        opener()
    except DataError as error:
        return error.message
    return ""


class Leak(Frozen):
    """Of 5-way episodes with 15 queries a class; fractions, null where a class is too small."""

    shots: int
    episodes: int
    queries: float | None = Field(None, description="with a group of the support of their class")
    any_class: float | None = Field(None, description="with a group of the support of any class")
    affected: float | None = Field(None, description="episodes with at least one such query")
    reason: str | None = None


class Audit(Frozen):
    """Groups of a data set and what they do to its episodes. repeats: images but the first of each
    group in each class."""

    dataset: str
    pool: str
    images: int
    groups: int
    repeats: int
    meaning: str
    leaks: tuple[Leak, ...]


def audit_groups(
    dataset: TargetDataset, shots: Sequence[int], n_episodes: int, seed: int = 0
) -> Audit:
    """Raises DataError for a data set without groups, and where no shot can be drawn."""
    groups = dataset.require_groups()
    protocol: Protocol = "ibm" if dataset.pool == "full" else "startup"
    specs = [EpisodeSpec(protocol=protocol, k_shot=k, seed=seed) for k in shots]
    leaks = [measure_leak(dataset, groups, spec, n_episodes) for spec in specs]
    if all(found.reason for found in leaks):
        raise DataError(str(leaks[0].reason), fix="lower --shots, or add images to these classes")
    distinct = [np.unique(codes) for codes in groups.by_class.values()]
    return Audit(
        dataset=dataset.name,
        pool=dataset.pool,
        images=len(dataset),
        groups=len(np.unique(np.concatenate(distinct))),
        repeats=len(dataset) - sum(map(len, distinct)),
        meaning=dataset.facts.groups,
        leaks=tuple(leaks),
    )


def measure_leak(
    dataset: TargetDataset, groups: Groups, spec: EpisodeSpec, n_episodes: int
) -> Leak:
    try:
        sampler = EpisodeSampler.of(spec, dataset)
    except DataError as error:
        return Leak(shots=spec.k_shot, episodes=n_episodes, reason=error.message)
    found = np.array([shared_fractions(sampler.episode(i), groups) for i in range(n_episodes)])
    own, everywhere = found.T
    return Leak(
        shots=spec.k_shot,
        episodes=n_episodes,
        queries=float(own.mean()),
        any_class=float(everywhere.mean()),
        affected=float((own > 0).mean()),
    )


def shared_fractions(episode: Episode, groups: Groups) -> tuple[float, float]:
    """Of an episode's queries: those with a group of their class's support, and of any support."""
    codes = [groups.by_class[int(c)] for c in episode.class_ids]
    support = [code[ranks] for code, ranks in zip(codes, episode.support, strict=True)]
    query = [code[ranks] for code, ranks in zip(codes, episode.query, strict=True)]
    own = [np.isin(asked, seen) for asked, seen in zip(query, support, strict=True)]
    return float(np.mean(own)), float(np.isin(query, np.concatenate(support)).mean())
