"""What a source holds before it is decoded: class names and, for each image, how to open it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from PIL import Image

from fsbench.core.schema import DatasetFacts, Flag


class Sample(NamedTuple):
    """One image: its label and what opens it as RGB."""

    label: int
    open: Callable[[], Image.Image]


@dataclass(frozen=True, eq=False)
class SourceListing:
    """A source on disk. labels index facts.classes; facts.images_per_class counts train images.

    stamp: changes when any file does, and is the key of the decoded cache; None for images that
    are generated, which no cache holds.
    """

    facts: DatasetFacts
    train: Sequence[Sample]
    val: Sequence[Sample]
    stamp: str | None
    flags: frozenset[Flag] = field(default_factory=frozenset)
