"""Numbers copied from papers: entries of kind `published`, shown apart and never ranked.

They have no records, so nothing can be recomputed or paired. Each is one JSON file in
leaderboard/published, named like the entry. Of the source papers only SEAL reports transfer; of the
others the in-domain accuracy is listed if they trained on a source data set of fsbench. The
appendix of the NIO paper reports no accuracy, so it has no entry.
"""

import re
from collections.abc import Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from pydantic import Field

from fsbench.core.io import read_record
from fsbench.core.schema import Name, Text
from fsbench.core.specs import Frozen
from fsbench.core.tasks import ColumnId, Track
from leaderboard.columns import PROBES

PUBLISHED = Path(__file__).resolve().parent / "published"
SOURCE = "tinyimagenet"
"""The data set that the backbones of the source papers were pretrained on."""


class PublishedCell(Frozen):
    """One printed number, as a fraction; ci95 is the printed half-width, null where none is."""

    task: Text = Field(description="data set, shots and adaptation; pool and size are not stated")
    table: Text
    mean: float = Field(ge=0, le=1)
    ci95: float | None = Field(None, ge=0, le=1)
    spread: float | None = Field(
        None, ge=0, le=1, description="printed behind ±, over seeds, without saying what it is"
    )
    note: str = ""

    @property
    def dataset(self) -> str:
        return self.task.partition(":")[0]

    @property
    def in_domain(self) -> bool:
        """Return whether this is the accuracy on the data set of pretraining."""
        return self.task.partition(":")[2].startswith("in-domain")

    @cached_property
    def adaptation(self) -> str | None:
        """linear, affine or probe, where it is a task of the suite."""
        return re.split("[:/]", self.task)[-1]


class PublishedEntry(Frozen):
    """One row of a paper's tables."""

    schema_version: Literal[1] = 1
    kind: Literal["published"] = "published"
    name: Name
    method: Text
    source: Text
    link: Text = Field(description="code or paper; words where neither has an address")
    backbone: Text
    protocol: Text
    cells: tuple[PublishedCell, ...]


def select_published(
    track: Track | None, columns: Iterable[ColumnId], sources: Iterable[str]
) -> tuple[PublishedEntry, ...]:
    """Return the published entries to show beside a table, with the numbers on its data sets.

    Papers state no more than classic, inductive episodes on official data; other tracks have none.
    sources: pretraining data of the entries, on which in-domain accuracies are shown.
    """
    if track and (track.transductive or "disjoint" in track.label or track.data == "subset"):
        return ()
    tasks = [column.task for column in columns]
    is_mixed = track is None or track.adaptation in {None, PROBES}
    head = None if is_mixed or not tasks else tasks[0].head or tasks[0].shape
    datasets = {task.dataset for task in tasks}
    domains = {*sources} | ({SOURCE} if track and track.data else set())

    def is_shown(number: PublishedCell) -> bool:
        if number.in_domain:
            return number.dataset in domains
        return number.dataset in datasets and head in {None, number.adaptation}

    cut = (
        entry.model_copy(update={"cells": tuple(filter(is_shown, entry.cells))})
        for entry in load_published()
    )
    return tuple(entry for entry in cut if entry.cells)


@cache
def load_published() -> tuple[PublishedEntry, ...]:
    """Return all published entries by name. Raises ValidationFailed naming a wrong file."""
    paths = sorted(PUBLISHED.glob("*.json"), key=lambda path: path.stem)
    return tuple(read_record(path, PublishedEntry) for path in paths)
