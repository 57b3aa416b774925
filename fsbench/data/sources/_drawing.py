"""Sources without an official validation part: images drawn per class by the hash of their ids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fsbench.data.images import open_rgb
from fsbench.data.listing import Sample, SourceListing
from fsbench.data.own import files_stamp
from fsbench.schema import DatasetFacts, Flag
from fsbench.seeding import Name, seed_for

HELD_OUT = 0.1
"""Part of the training images that validate (reinitialization study, section 3.1)."""


def drawn(labels: Sequence[int], ids: Sequence[str], n: int | float, *names: Name) -> list[int]:
    """Positions of n images (or of this part, rounded, at least one) of every class, sorted.

    The images with the smallest hash of their id under the stream `names` are taken, so the choice
    depends on nothing but the ids. A class with n images or fewer gives all of them.
    """
    members: dict[int, list[int]] = {}
    for position, label in enumerate(labels):
        members.setdefault(label, []).append(position)
    chosen: list[int] = []
    for positions in members.values():
        size = n if isinstance(n, int) else max(1, round(n * len(positions)))
        chosen += sorted(positions, key=lambda i: seed_for(*names, ids[i]))[:size]
    return sorted(chosen)


def with_validation(
    facts: DatasetFacts, paths: Sequence[Path], labels: Sequence[int], complete: bool
) -> SourceListing:
    """A tenth of every class for validation; flagged `derived`, and `subset` unless complete.

    The id of an image is its folder and file name.
    """
    ids = [f"{path.parent.name}/{path.name}" for path in paths]
    held = set(drawn(labels, ids, HELD_OUT, facts.name, "val"))
    pairs = enumerate(zip(labels, paths, strict=True))
    samples = [(i in held, Sample(label, partial(open_rgb, path))) for i, (label, path) in pairs]
    flags: set[Flag] = {"derived"} if complete else {"derived", "subset"}
    return SourceListing(
        facts,
        [sample for validates, sample in samples if not validates],
        [sample for validates, sample in samples if validates],
        files_stamp(list(paths)),
        frozenset(flags),
    )
