"""A job that adds one backbone's results to a board, under the name that the sweep file gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from fsbench.core.errors import UsageError
from fsbench.core.schema import Declaration
from fsbench.results import building
from fsbench.results.names import safe
from fsbench.results.reading import cells
from fsbench.sweep import committed
from fsbench.sweep.evaluating import AnyBackbone, Evaluating, Trained
from fsbench.sweep.file import Entries, Kind
from fsbench.sweep.job import Job
from fsbench.sweep.place import Place
from leaderboard.submission.intake import submit


class Submitting(Job):
    """evaluations: of one backbone, all of the sweep."""

    KIND: ClassVar[Kind] = "submit"
    evaluations: tuple[Evaluating, ...] = Field(min_length=1)
    entries: Entries

    @property
    def title(self) -> str:
        return f"entry {self.name}"

    @property
    def settings(self) -> Mapping[str, Any]:
        cells = [job.key for job in self.evaluations]
        return {"cells": cells, "declaration": self.declaration.model_dump(mode="json")}

    @property
    def backbone(self) -> AnyBackbone:
        return self.evaluations[0].backbone

    @property
    def name(self) -> str:
        return entry_name(self.entries, self.backbone)

    @property
    def declaration(self) -> Declaration:
        backbone, given = self.backbone, self.entries
        data = given.pretraining_data
        if isinstance(backbone, Trained):
            data = (backbone.training.recipe.source,)
        return Declaration(
            name=self.name,
            authors=given.authors,
            link=given.link,
            license=given.license,
            pretraining_data=data,
            targets_seen=given.targets_seen,
            statement=given.statement,
        )

    def done(self, place: Place) -> bool:
        """Whether the board holds all cells that it has a column for."""
        if place.board is None:
            return False
        wanted = committed.columns(place.board)
        return all(
            committed.entry_of(job, task, place)
            for job in self.evaluations
            for task in job.parsed
            if wanted is None or committed.column(job, task) in wanted
        )

    def run(self, place: Place) -> None:
        if place.board is None:
            raise UsageError("`submit` without a board", fix="give --board DIR")
        committed.forget()
        own = committed.ours(self.name, self.backbone, place)
        if own:
            fetch(place.board / self.name, place.results)
        models = (self.backbone.label,)
        submit(place.results, place.board, self.declaration, models=models, replace=own)


def entry_name(entries: Entries, backbone: AnyBackbone) -> str:
    """The pattern filled in. Raises UsageError for a field that a pattern has not."""
    fields = {"label": backbone.label, **backbone.named}
    try:
        return safe(entries.name.format_map(fields))
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(
            f"submit.name '{entries.name}': {error}", fix=f"use {' '.join(fields)} in {{}}"
        ) from error


def fetch(entry: Path, results: Path) -> None:
    """Put the results of an entry that are not there below a results folder: what was committed in
    another sitting stays in the entry."""
    for cell in cells(entry):
        path = results / cell.path.relative_to(entry)
        if not path.exists():
            building.write(path, cell.result, cell.records)
