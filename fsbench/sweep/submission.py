"""Job that adds the results of one backbone to a board as an entry."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from fsbench.api.options import SweepOptions
from fsbench.api.submit import submit
from fsbench.core.errors import UsageError
from fsbench.core.schema import Declaration
from fsbench.results import assembly
from fsbench.results.names import safe_name
from fsbench.results.verification import read_cells
from fsbench.sweep import evaluation
from fsbench.sweep.backbones import SweepBackbone, TrainingJob
from fsbench.sweep.evaluation import EvaluationJob, is_entry_of
from fsbench.sweep.file import EntriesBlock, JobKind
from fsbench.sweep.job import Job


class SubmissionJob(Job):
    """Add an entry; evaluations: all of its backbones in the sweep, which are its seeds."""

    KIND: ClassVar[JobKind] = "submit"
    evaluations: tuple[EvaluationJob, ...] = Field(min_length=1)
    entries: EntriesBlock

    @property
    def title(self) -> str:
        return f"entry {self.name}"

    @property
    def settings(self) -> Mapping[str, Any]:
        cells = [job.key for job in self.evaluations]
        return {"cells": cells, "declaration": self.declaration.model_dump(mode="json")}

    @property
    def backbones(self) -> list[SweepBackbone]:
        """The seeds, each once."""
        return list({job.backbone.label: job.backbone for job in self.evaluations}.values())

    @property
    def name(self) -> str:
        return format_entry_name(self.entries, self.backbones[0])

    @property
    def declaration(self) -> Declaration:
        fields = {**dict(self.entries), "name": self.name}
        first = self.backbones[0]
        if isinstance(first, TrainingJob):
            fields["pretraining_data"] = (first.recipe.source,)
        return Declaration.model_validate(fields)

    def done(self, place: SweepOptions) -> bool:
        """Return whether the board holds all results that it has a column for."""
        if place.board is None:
            return False
        columns = evaluation.read_board_columns(place.board)
        return all(
            job.find_entry(task, place)
            for job in self.evaluations
            for task in job.images
            if columns is None or job.column(task) in columns
        )

    def run(self, place: SweepOptions) -> None:
        if place.board is None:
            raise UsageError("`submit` without a board", fix="give --board DIR")
        evaluation.clear_cache()
        seeds = self.backbones
        replaces = any(is_entry_of(self.name, backbone, place) for backbone in seeds)
        if replaces:
            for backbone in seeds:
                copy_missing_results(place.board / self.name, place.results, backbone)
        models = [backbone.label for backbone in seeds]
        submit(place.results, place.board, self.declaration, models=models, replace=replaces)


def format_entry_name(entries: EntriesBlock, backbone: SweepBackbone) -> str:
    """Fill in the name pattern. Raise UsageError for an unknown field."""
    recipe = re.sub(r"-s\d+$", "", backbone.label)
    fields = {"recipe": recipe, "label": backbone.label, **backbone.name_fields}
    try:
        return safe_name(entries.name.format_map(fields))
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(
            f"submit.name '{entries.name}': {error}", fix=f"use {' '.join(fields)} in {{}}"
        ) from error


def copy_missing_results(entry: Path, results: Path, backbone: SweepBackbone) -> None:
    """Copy results of the entry that the results folder lacks, so that the entry keeps them."""
    for cell in read_cells(entry):
        facts = cell.result.backbone
        folder = results / backbone.label / facts.identity[:12]
        if backbone.has_facts(facts) and assembly.key_of(cell.result) not in assembly.read_cells_of(
            folder
        ):
            assembly.add_results(folder, [(cell.result, cell.records)])
