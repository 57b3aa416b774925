"""Tracks: numbers of two of them never stand in one table, on a screen or on a board."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from fsbench.core.frozen import Frozen
from fsbench.core.specs import POOLS, TRACKS

Data = Literal["official", "subset"]

COLUMN = re.compile(
    r"[^:]+:(?:\d+w\d+s/(?P<head>[\w-]+)@(?P<protocol>[\w-]+)|(?P<probe>\w+))"
    r" (?P<size>\d{1,4})px(?P<variant>.*)"
)
TRANSDUCTIVE = "transductive"


class Track(Frozen):
    """What all numbers of one table have in common.

    A board with a version keeps adaptations, and official data from all other, apart as well, and a
    board without one adaptations that not every network has; None where one table may hold several.
    """

    protocol: str | None = Field(description="pool and group rule; null for probes alone")
    input_size: int = Field(description="px")
    transductive: bool = Field(False, description="outcomes know the other queries of an episode")
    adaptation: str | None = Field(None, description="head and variant, e.g. linear or probe")
    data: Data | None = Field(None, description="subset: results with any flag")

    @property
    def pool(self) -> str | None:
        """full or labeled_80; None for probes, which see all images."""
        return POOLS.get(self.protocol or "")

    @property
    def groups(self) -> str | None:
        """classic or disjoint; None for probes, which draw no episodes."""
        return TRACKS.get(self.protocol or "")

    @property
    def label(self) -> str:
        """e.g. ibm 64px, 64px, or linear ibm 224px official."""
        parts = (self.adaptation, self.protocol, f"{self.input_size}px")
        ending = (TRANSDUCTIVE if self.transductive else None, self.data)
        return " ".join(part for part in (*parts, *ending) if part)

    def takes(self, other: Track) -> bool:
        """Whether numbers of the other stand here: the same track, or probes, which no protocol
        changes."""
        return other == self or (
            other.protocol is None and other.model_copy(update={"protocol": self.protocol}) == self
        )


def track_of(column: str, data: Data | None = None) -> Track:
    """The track of a column (Result.column); with `data`, the one of a board with a version.

    Raises ValueError for what names no column.
    """
    found = parsed(column)
    return Track(
        protocol=found["protocol"],
        input_size=int(found["size"]),
        transductive=TRANSDUCTIVE in found["variant"].split(),
        adaptation=adaptation_of(column) if data else None,
        data=data,
    )


def adaptation_of(column: str) -> str:
    """Head and variant, e.g. affine bn-train, or probe. Raises ValueError as `track_of`."""
    found = parsed(column)
    words = (word for word in found["variant"].split() if word != TRANSDUCTIVE)
    return " ".join([found["head"] or found["probe"], *words])


def parsed(column: str) -> re.Match[str]:
    found = COLUMN.fullmatch(column)
    if found is None:
        raise ValueError(f"'{column}' names no column: no task with its input size in px")
    return found


def by_track(columns: Iterable[str]) -> dict[Track, list[str]]:
    """Track -> its columns, each once, in the order given.

    A probe stands with every track of its input size that takes it, alone where there is none.
    """
    own = {name: track_of(name) for name in columns}
    episodic = dict.fromkeys(track for track in own.values() if track.protocol)
    alone = [t for t in own.values() if not any(each.takes(t) for each in episodic)]
    tracks = dict.fromkeys([*episodic, *alone])
    return {each: [name for name, t in own.items() if each.takes(t)] for each in tracks}
