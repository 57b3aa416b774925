"""Does a data set on disk hold up: official counts, and every image opens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fsbench.core.errors import DataError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import DatasetFacts
from fsbench.data.catalog import SOURCES, resolve
from fsbench.data.loading import FOLDER, HUB, list_source, load_target
from fsbench.data.roots import DataRoots


@dataclass(frozen=True)
class Verdict:
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


def verify(name: str, roots: DataRoots, cache: Path, report: Reporter = SILENT) -> Verdict:
    """Check one target or source. Raises as load_target and load_source where nothing is found."""
    if name.startswith(HUB) or (not name.startswith(FOLDER) and resolve(name) in SOURCES.names()):
        return _source(name, roots, cache, report)
    dataset = load_target(name, roots)
    openers = [partial(dataset.image, index) for index in range(len(dataset))]
    return Verdict(
        facts=dataset.facts,
        images=len(dataset),
        counts=_counts(dataset.labels.tolist(), dataset.facts),
        complete="subset" not in dataset.flags,
        notes=dataset.notes,
        corrupt=tuple(_corrupt(openers, dataset.name, report)),
    )


def _source(name: str, roots: DataRoots, cache: Path, report: Reporter) -> Verdict:
    listing = list_source(name, roots, cache)
    samples = [*listing.train, *listing.val]
    return Verdict(
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
