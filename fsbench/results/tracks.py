"""Tracks: results of two tracks are never compared in one table, on a screen or on a board."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from fsbench.core.specs import SAMPLING, Frozen, Grouping, Pool, Protocol
from fsbench.core.tasks import TRANSDUCTIVE, ColumnId

Data = Literal["official", "subset"]


class Track(Frozen):
    """Facts that all results of one table share.

    A board with a version also separates heads, and official data from all other data; a board
    without a version separates heads that only some backbones have. None if a table may mix them.
    """

    protocol: Protocol | None = Field(description="pool and group rule; null for probes alone")
    input_size: int = Field(description="px")
    transductive: bool = Field(False, description="outcomes know the other queries of an episode")
    adaptation: str | None = Field(None, description="head and variant, e.g. linear or probe")
    data: Data | None = Field(None, description="subset: results with any flag")
    images: str | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="start of a digest, of a table of other images or episodes than most results",
    )

    @classmethod
    def of(cls, column: ColumnId, data: Data | None = None) -> Track:
        """Return the track of a column; with `data`, the one of a board with a version."""
        return cls(
            protocol=column.task.protocol,
            input_size=column.input_size,
            transductive=column.transductive,
            adaptation=column.adaptation if data else None,
            data=data,
        )

    @property
    def pool(self) -> Pool | None:
        """full or labeled_80; None for probes, which use all images."""
        return SAMPLING[self.protocol].pool if self.protocol else None

    @property
    def groups(self) -> Grouping | None:
        """classic or disjoint; None for probes, which draw no episodes."""
        return SAMPLING[self.protocol].track if self.protocol else None

    @property
    def label(self) -> str:
        """e.g. ibm 64px, 64px, or linear ibm 224px official; the digest of other images at last."""
        parts = (self.adaptation, self.protocol, f"{self.input_size}px")
        images = f"other images or episodes #{self.images}" if self.images else None
        ending = (TRANSDUCTIVE if self.transductive else None, self.data, images)
        return " ".join(part for part in (*parts, *ending) if part)

    def takes(self, other: Track) -> bool:
        """Return whether results of the other track belong here, too.

        They do if the tracks are equal, or if the other one is of probes, for which the protocol
        has no meaning.
        """
        return other == self or (
            other.protocol is None and other.model_copy(update={"protocol": self.protocol}) == self
        )


def by_track(columns: Iterable[ColumnId]) -> dict[Track, list[ColumnId]]:
    """Return the columns of each track, each once, in the order given.

    A probe joins every track of its input size that takes it, and has its own if there is none.
    """
    tracks = {column: Track.of(column) for column in columns}
    episodic = dict.fromkeys(track for track in tracks.values() if track.protocol)
    alone = [t for t in tracks.values() if not any(track.takes(t) for track in episodic)]
    return {
        track: [column for column, t in tracks.items() if track.takes(t)]
        for track in dict.fromkeys([*episodic, *alone])
    }
