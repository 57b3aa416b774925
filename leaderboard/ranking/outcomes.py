"""Outcomes of a result in compact form: one small number per episode or test image.

A board of a thousand entries has tens of thousands of results; their outcomes stay in memory, their
records on disk.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fsbench.core.records import EpisodeRecords, ProbeRecords, Records
from fsbench.core.schema import Result
from fsbench.core.specs import BALANCED, EpisodeSpec, EpisodicSpec, ProbeSpec
from fsbench.results.entry import Entry, Loaded, read_outcomes
from fsbench.results.outcomes import OutcomeTable
from fsbench.results.summary import choose_rate, scored_images

FINE = 2**33
"""Outcomes of balanced accuracy are counted in such parts of a test image of average weight."""
EXACT = 2**24
"""Whole numbers up to this are exact in single precision."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Accuracies (n,) of single episodes or test images.

    index (n,): distinct increasing numbers of the episodes or images; draws: identity of what these
    numbers refer to, equal for columns over the same episodes or images; right (n,): the accuracies
    times `out_of`, e.g. the number of correct queries of an episode; seeds: of a mean over several
    seeds, the outcomes of each; is_pooled: whether the spread of these seeds is pooled with others.
    """

    index: NDArray[np.int64]
    right: NDArray[Any]
    draws: str
    out_of: int = 1
    seeds: "tuple[Outcomes, ...]" = ()
    is_pooled: bool = True

    @classmethod
    def average(cls, seeds: "Sequence[Outcomes]", is_pooled: bool = True) -> "Outcomes":
        """Return the mean over seeds on the episodes that all have; a single one as it is."""
        aligned = tuple(align_outcomes(seeds))
        first = aligned[0]
        if len(aligned) == 1:
            return first
        right = np.sum([outcomes.right for outcomes in aligned], axis=0)
        out_of = first.out_of * len(aligned)
        return cls(first.index, right, first.draws, out_of, aligned, is_pooled)

    @property
    def numbering(self) -> int | bytes:
        """Key that equal numbers share: their count for 0..n-1, else their bytes."""
        index = share_numbers(self.index)
        return index.size if index is number_rows(index.size) else index.tobytes()

    @property
    def n_seeds(self) -> int:
        return max(1, len(self.seeds))

    @property
    def by_seed(self) -> tuple[NDArray[np.float64], ...]:
        """The accuracies (n,) of each seed."""
        return tuple(outcomes.values for outcomes in self.seeds or (self,))

    @property
    def values(self) -> NDArray[np.float64]:
        return self.right / np.float64(self.out_of)

    def select(self, index: NDArray[np.int64]) -> "Outcomes":
        """Return the outcomes with these numbers. index (n,): increasing, a part of the numbers."""
        if index is self.index or np.array_equal(index, self.index):
            return self
        right, seeds = self.right[np.searchsorted(self.index, index)], self.seeds
        return replace(self, index=index, right=right, seeds=tuple(o.select(index) for o in seeds))

    @property
    def unweighted(self) -> "Outcomes":
        """Right or wrong alone, where images have the weights of balanced accuracy."""
        if self.out_of != FINE:
            return self
        return replace(self, right=(self.right > 0).astype(np.uint8), out_of=1)


def align_outcomes(outcomes: Sequence[Outcomes]) -> list[Outcomes]:
    """Return the outcomes over the episodes or images that all have, which may be none."""
    indices = {o.numbering: o.index for o in outcomes}  # mostly one
    shared = reduce(np.intersect1d, indices.values())
    return [o.select(shared) for o in outcomes]


@dataclass(frozen=True, eq=False)
class SummedCounts:
    """Outcomes of N entries over the same n episodes, summed over columns.

    counts (N, n): whole numbers, whose sums of products over the episodes are exact in this type;
    out_of (N,): the accuracies are counts / out_of.
    """

    counts: NDArray[Any]
    out_of: NDArray[np.int64]

    @classmethod
    def add(cls, columns: Sequence[NDArray[Any]], out_of: NDArray[np.int64]) -> "SummedCounts":
        """Return the sum of columns (N, n) of counts. out_of: (C, N)."""
        common = np.lcm.reduce(out_of, axis=0)
        parts = zip(columns, common // out_of, strict=True)
        total = np.asarray(sum(right * factor[:, None] for right, factor in parts))
        largest = total.shape[1] * float(total.max(initial=0)) ** 2
        is_small = all(right.dtype.kind in "iu" for right in columns) and largest < EXACT
        return cls(total.astype(np.float32 if is_small else np.float64), common)

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """The sum (N,) of each row."""
        return np.asarray(self.counts.sum(axis=1, dtype=np.float64))

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """The sum (N,) of the squares of each row."""
        return np.asarray(np.einsum("ij,ij->i", self.counts, self.counts), np.float64)


class VerifiedResult(Loaded):
    """A checked result whose records are read again when they are needed.

    position: in its entry; source: the file of outcomes; digest: of that file; held_out: the
    outcomes by the held-out rule of a probe, None if `outcomes` are the only ones.
    """

    position: int
    source: Path
    digest: str
    outcomes: Outcomes
    held_out: Outcomes | None

    def __init__(self, loaded: Loaded, position: int, source: Path, digest: str) -> None:
        held_out = extract_outcomes(loaded, True) if has_second_rule(loaded.result) else None
        vars(self).update(
            folder=loaded.folder,
            result=loaded.result,
            position=position,
            source=source,
            digest=digest,
            outcomes=extract_outcomes(loaded),
            held_out=held_out,
        )

    @property
    def records(self) -> Records:
        """Read the records. Raises ValidationFailed if the outcomes of the entry changed."""
        table = read_outcome_table(self.source, self.digest)
        [records] = table.records([(self.result.spec, self.result.score.n)], self.position)
        return records


@lru_cache(maxsize=1)
def read_outcome_table(source: Path, digest: str) -> OutcomeTable:
    """Return the outcomes of an entry, whose results are read one after the other."""
    return read_outcomes(source, digest)


def compact(entry: Entry) -> Entry:
    """Return a checked entry without records and lines, as a board has thousands of entries."""
    source, digest = entry.folder / entry.file.outcomes_file, entry.file.outcomes
    loaded = (VerifiedResult(one, i, source, digest) for i, one in enumerate(entry.loaded))
    return replace(entry, file=entry.file.model_copy(update={"results": ()}), loaded=tuple(loaded))


def extract_outcomes(loaded: Loaded, held_out: bool = False) -> Outcomes:
    """Return the outcomes of a result, numbered by episode or by position of the test image.

    held_out: of a linear probe whose spec holds images out, the outcomes at the rate that was
    chosen on them, whatever the spec's own rule; the best rate on the test images is optimistic.
    """
    if isinstance(loaded, VerifiedResult):
        return loaded.held_out if held_out and loaded.held_out else loaded.outcomes
    records, result = loaded.records, loaded.result
    episodes = result.spec.episode if isinstance(result.spec, EpisodicSpec) else None
    draws = identify_draws(result.dataset.images_hash, episodes)
    if isinstance(records, EpisodeRecords):
        out_of = math.prod(records.correct.shape[1:])
        right = records.hits.astype(np.min_scalar_type(out_of))
        return Outcomes(share_numbers(records.index), right, draws, out_of)
    if held_out and isinstance(records, ProbeRecords) and records.held_out is not None:
        right = choose_rate(records, "held_out").right.astype(np.uint8)
    else:
        right = scored_images(records, result.spec).astype(np.uint8)
    index = number_rows(right.size)
    if BALANCED not in result.spec.variant:
        return Outcomes(index, right, draws)
    sizes = np.array([n for n in result.dataset.test_counts if n])
    weights = np.repeat(FINE * right.size / (sizes.size * sizes), sizes)  # their mean is FINE
    return Outcomes(index, (right * weights).round().astype(np.uint64), draws, FINE)


def has_second_rule(result: Result) -> bool:
    """Return whether a result is of a probe that is scored on test and also holds images out."""
    spec = result.spec
    return isinstance(spec, ProbeSpec) and spec.select == "test" and spec.held_out is not None


@cache
def identify_draws(images: str, episodes: EpisodeSpec | None) -> str:
    """Return the identity of the images and of the episodes drawn from them."""
    return f"{images} {episodes.digest() if episodes else 'test images'}"


def share_numbers(index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return equal numbers; 0..n-1, which most results have, is one array for all of them."""
    plain = number_rows(index.size)
    return plain if index is plain or (index == plain).all() else index


@cache
def number_rows(n: int) -> NDArray[np.int64]:
    """Return the numbers 0..n-1, read-only."""
    numbers = np.arange(n)
    numbers.flags.writeable = False
    return numbers
