"""Targets with an official train and test part (protocol.md 1b).

Both parts are one data set. The part leads the canonical id (`train/001.jpg`, `test/002.jpg`), so
every hash over ids states the split as well as the images.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.assemble import Row, assemble
from fsbench.data.base import TargetDataset
from fsbench.data.files import descend, stays_inside

PARTS = ("train", "test")
UNREADABLE = (
    OSError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    zlib.error,
)
"""What scipy and torchvision raise for lists that are cut, damaged or none."""


class Listed(NamedTuple):
    """One image that an official list names: its label and its path below the folder of images."""

    label: int
    name: str


def official_target(
    facts: DatasetFacts,
    folder: Path,
    images: Path,
    parts: Sequence[Sequence[Listed]],
    pool: Pool = "full",
) -> TargetDataset:
    """The data set of the official lists of train and test; `images` lies below `folder`.

    Named images that are not there are left out, and a note counts them; `subset` unless both parts
    have the official number of images and every class is there. Raises DataError for an image named
    twice or outside of `images`, for no image at all, and for another pool than full.
    """
    named = [(part, each) for part, listed in zip(PARTS, parts, strict=True) for each in listed]
    _require_sound([each.name for _, each in named], facts, folder)
    below = images.relative_to(folder).as_posix()
    rows = [
        Row(each.label, f"{part}/{each.name}", (Path(below) / each.name).as_posix())
        for part, each in named
        if (images / each.name).is_file()
    ]
    found = Counter(row.canonical_id.partition("/")[0] for row in rows)
    counts = tuple(found[part] for part in PARTS)
    dataset = assemble(facts, folder, rows, pool=pool, notes=_notes(facts, counts, len(named)))
    return dataset if counts == facts.split else dataset.flagged("subset")


def _require_sound(names: Sequence[str], facts: DatasetFacts, folder: Path) -> None:
    lists = f"the official lists of {facts.name} in {folder}"
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(
            f"{lists} name {', '.join(twice[:5])} more than once", fix="fetch the lists again"
        )
    if foreign := [name for name in names if not stays_inside(name)]:
        raise DataError(
            f"{lists} name a path outside of the images: {foreign[0][:200]}",
            fix="fetch the lists again",
        )


def _notes(facts: DatasetFacts, counts: tuple[int, ...], named: int) -> tuple[str, ...]:
    if counts == facts.split or facts.split is None:
        return ()
    parts = zip(PARTS, counts, facts.split, strict=True)
    text = " and ".join(f"{n} of {official} {part} images" for part, n, official in parts)
    return (f"{text} are there; the lists name {named}",)


def inner(folder: Path, name: str, needs: str, facts: DatasetFacts) -> Path:
    """The folder `name`: this one, or the one in it, holding `needs`. Raises DataError.

    Archives unpack to a folder of their own, whose name loaders such as torchvision's insist on.
    """
    base = descend(folder, name) or folder
    if base.name != name or descend(base, needs) is None:
        raise missing(folder, f"{name}/{needs}", facts)
    return base


def missing(folder: Path, what: str, facts: DatasetFacts) -> DataError:
    return DataError(
        f"{folder} lacks {what}",
        fix=f"expected there: {facts.layout}; get it: {facts.download}",
    )


def read_lines(path: Path) -> list[str]:
    """Lines without outer spaces, empty ones left out. Raises DataError naming the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}", fix="fetch it again") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
