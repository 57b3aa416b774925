"""Checks of a data set: official counts and readable images."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.tasks import USER_DATA
from fsbench.data.cards import DatasetFacts
from fsbench.data.catalog import SOURCES, DataRoots, resolve_alias
from fsbench.data.content import hash_contents
from fsbench.data.loading import list_source, load_target


@dataclass(frozen=True)
class DatasetCheck:
    """Result of checking a data set on disk.

    counts: present and official images per class, in class id order, None where no publisher states
    them; custom: images of the user; corrupt: one message per image that cannot be decoded.
    """

    facts: DatasetFacts
    images: int
    counts: tuple[tuple[int, int | None], ...]
    complete: bool
    custom: bool
    notes: tuple[str, ...]
    corrupt: tuple[str, ...]

    def problem(self) -> DataError | None:
        """Return the error that the command line raises; None for a complete, readable data set."""
        name, get = self.facts.name, self.facts.download
        if self.corrupt:
            lines = "".join(f"\n  {message}" for message in self.corrupt)
            text = f"{name}: {len(self.corrupt)} of {self.images} images cannot be read:{lines}"
            return DataError(text, fix=f"fetch these again ({get})")
        if self.complete:
            return None
        other = [
            f"{label} {present} of {official}"
            for label, (present, official) in zip(self.facts.classes, self.counts, strict=True)
            if official not in (None, present)
        ]
        return DataError(
            f"{name} does not have the official images: {'; '.join([*other[:8], *self.notes])}",
            fix=f"results on it are marked `subset`; for official ones complete it: {get}",
        )


def verify_dataset(
    name: str, roots: DataRoots, cache: Path, report: Reporter = SILENT, *, decode: bool = True
) -> DatasetCheck:
    """Check one target or source. Raise like load_target and load_source if it is missing.

    decode: also open every image.
    """
    is_source = not name.startswith(USER_DATA) and resolve_alias(name) in SOURCES.names()
    openers: list[Callable[[], object]]
    if is_source:
        listing = list_source(name, roots, cache)
        facts, flags = listing.facts, listing.flags
        present = listing.counts or Counter(image.label for image in listing.parts["train"])
        openers = [image.open for part in listing.parts.values() for image in part]
        notes = (f"{len(listing.parts['val'])} validation images", *listing.notes)
    else:
        dataset = load_target(name, roots, cache=cache)
        facts, flags, notes = dataset.facts, dataset.flags, dataset.notes
        present = Counter(dataset.labels.tolist())
        openers = [partial(dataset.image, index) for index in range(len(dataset))]
    corrupt = tuple(find_corrupt(openers, facts.name, report)) if decode else ()
    if decode and not corrupt and not is_source:
        notes = (*notes, *hash_contents(dataset, cache, report).warnings)
    custom = "custom" in flags
    official = (not custom and facts.images_per_class) or (None,) * len(facts.classes)
    return DatasetCheck(
        facts=facts,
        images=len(openers),
        counts=tuple((present[c], count) for c, count in enumerate(official)),
        complete="subset" not in flags,
        custom=custom,
        notes=notes,
        corrupt=corrupt,
    )


def find_corrupt(
    openers: Sequence[Callable[[], object]], name: str, report: Reporter
) -> Iterator[str]:
    """Open every image; yield what is wrong with those that cannot be decoded."""

    def complain(opener: Callable[[], object]) -> str:
        try:
            opener()
        except DataError as error:
            return error.message
        return ""

    with (
        report.task(f"open {name}", len(openers), "images") as advance,
        ThreadPoolExecutor(4) as threads,
    ):
        for message in threads.map(complain, openers):
            advance(1)
            if message:
                yield message
