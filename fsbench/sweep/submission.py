"""Job that adds the results of one backbone to a board as an entry."""

import re
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from fsbench.api.options import SweepOptions
from fsbench.api.submit import submit
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.schema import Declaration
from fsbench.core.tasks import ColumnId
from fsbench.results import assembly
from fsbench.results.names import safe_name
from fsbench.results.verification import read_loaded
from fsbench.sweep.backbones import SweepBackbone, TrainingJob
from fsbench.sweep.evaluation import EvaluationJob
from fsbench.sweep.file import EntriesBlock
from fsbench.sweep.job import Job
from leaderboard.store import Board


class SubmissionJob(Job):
    """Add an entry; evaluations: all of its backbones in the sweep, which are its seeds."""

    KIND: ClassVar = "submit"
    evaluations: tuple[EvaluationJob, ...] = Field(min_length=1)
    entries: EntriesBlock

    @property
    def title(self) -> str:
        return f"entry {self.name}"

    @property
    def backbones(self) -> list[SweepBackbone]:
        """The seeds, each once."""
        return list({job.backbone.title: job.backbone for job in self.evaluations}.values())

    @property
    def name(self) -> str:
        return name_entry(self.backbones[0])

    def done(self, options: SweepOptions) -> bool:
        """Return whether the board holds all results that it has a column for."""
        if options.board is None:
            return False
        board = Board.open(options.board, new=True).file
        return all(
            job.is_on_board(task, options)
            for job in self.evaluations
            for task, spec in job.tasks.specs.items()
            if board.version is None or ColumnId.of(task, spec) in board.named
        )

    def run(self, options: SweepOptions) -> None:
        if options.board is None:
            raise UsageError("`submit` without a board", fix="give --board DIR")
        seeds = self.backbones
        replaces = any(is_entry_of(self.name, backbone, options) for backbone in seeds)
        for backbone in seeds if replaces else ():
            copy_missing_results(options.board / self.name, backbone, options)
        fields = {**self.entries.model_dump(exclude={"only"}), "name": self.name}
        if isinstance(seeds[0], TrainingJob):
            fields["pretraining_data"] = (seeds[0].recipe.source,)
        declaration, models = Declaration.model_validate(fields), [seed.title for seed in seeds]
        submit(options.results, options.board, declaration, models=models, replace=replaces)


def name_entry(backbone: SweepBackbone) -> str:
    """Return the name of the entry of a backbone, which is that of its recipe without the seed."""
    return safe_name(re.sub(r"-s\d+$", "", backbone.title))


def is_entry_of(entry: str, backbone: SweepBackbone, options: SweepOptions) -> bool:
    """Return whether the board has this entry, and it is of this backbone.

    Raises ValidationFailed where its results are of other weights than the run of this sweep, which
    a recipe gives on another kind of machine. A run that the sweep need not train is no run here.
    """
    if options.board is None:
        return False
    board = Board.open(options.board, new=True)
    of_entry = board.entry(entry).file.models if entry in board.names() else ()
    mine = {facts.identity for facts in of_entry if backbone.has_facts(facts, options)}
    now = backbone.facts(options)
    if now and (others := mine - {now.identity}):
        raise ValidationFailed(
            f"the entry {entry} on {options.board} holds results of other weights"
            f" ({', '.join(sorted(other[:12] for other in others))}) of the same recipe",
            fix="put those weights in the folder of the run and sweep again, or delete the entry"
            " to have all of its results made anew",
        )
    return bool(mine)


def copy_missing_results(entry: Path, backbone: SweepBackbone, options: SweepOptions) -> None:
    """Copy results of the entry that the results folder lacks, so that the entry keeps them."""
    for one in read_loaded(entry):
        facts = one.result.backbone
        folder = options.results / backbone.title / facts.identity[:12]
        is_there = assembly.key_of(one.result) in assembly.read_by_key(folder)
        if backbone.has_facts(facts, options) and not is_there:
            assembly.add_results(folder, [(one.result, one.records)])
