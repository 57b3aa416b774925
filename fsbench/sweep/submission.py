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
from fsbench.results.entry import ENTRY_FILE
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
    name: str
    evaluations: tuple[EvaluationJob, ...] = Field(min_length=1)
    entries: EntriesBlock

    @property
    def title(self) -> str:
        return f"entry {self.name}"

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
        seeds = [*{job.backbone.title: job.backbone for job in self.evaluations}.values()]
        earlier = [keep_results(options.board / self.name, backbone, options) for backbone in seeds]
        fields = {**self.entries.model_dump(exclude={"only"}), "name": self.name}
        if isinstance(seeds[0], TrainingJob):
            fields["pretraining_data"] = (seeds[0].recipe.source,)
        declaration, models = Declaration.model_validate(fields), [seed.title for seed in seeds]
        submit(options.results, options.board, declaration, models=models, replace=any(earlier))


def name_entry(backbone: SweepBackbone) -> str:
    """Return the name of the entry of a backbone, which is that of its recipe without the seed."""
    return safe_name(re.sub(r"-s\d+$", "", backbone.title))


def keep_results(entry: Path, backbone: SweepBackbone, options: SweepOptions) -> bool:
    """Copy the results of a backbone that an entry has and the results folder lacks.

    Return whether it has any. Raises ValidationFailed where they are of other weights than the run
    of this sweep, which a recipe gives on another kind of machine. A run that the sweep need not
    train is no run here.
    """
    loaded = read_loaded(entry) if (entry / ENTRY_FILE).is_file() else ()
    mine = [one for one in loaded if backbone.has_facts(one.result.backbone, options)]
    now = backbone.facts(options)
    if now and (others := {one.result.backbone.identity for one in mine} - {now.identity}):
        raise ValidationFailed(
            f"the entry {entry} holds results of other weights"
            f" ({', '.join(sorted(other[:12] for other in others))}) of the same recipe",
            fix="put those weights in the folder of the run and sweep again, or delete the entry"
            " to have all of its results made anew",
        )
    for one in mine:
        folder = options.results / backbone.title / one.result.backbone.identity[:12]
        if assembly.key_of(one.result) not in assembly.read_by_key(folder):
            assembly.add_results(folder, [(one.result, one.records)])
    return bool(mine)
