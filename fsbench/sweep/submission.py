"""Job that adds the results of one backbone to a board as an entry."""

from collections.abc import Sequence
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
from fsbench.results.verification import read_verified
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
        """Return whether the entry has all results that the board has a column for."""
        if options.board is None:
            return False
        board, entry = Board.open(options.board, new=True).file, options.board / self.name
        return all(
            job.is_complete(task, entry, options)
            for job in self.evaluations
            for task, spec in job.tasks.specs.items()
            if board.version is None or ColumnId.of(task, spec) in board.named
        )

    def run(self, options: SweepOptions) -> None:
        if options.board is None:
            raise UsageError("`submit` without a board", fix="give --board DIR")
        seeds = [*{job.backbone.title: job.backbone for job in self.evaluations}.values()]
        exists = keep_results(options.board / self.name, seeds, options)
        fields = {**self.entries.model_dump(exclude={"only"}), "name": self.name}
        if isinstance(seeds[0], TrainingJob):
            fields["pretraining_data"] = (seeds[0].recipe.source,)
        declaration, models = Declaration.model_validate(fields), [seed.title for seed in seeds]
        submit(options.results, options.board, declaration, models=models, replace=exists)


def keep_results(entry: Path, seeds: Sequence[SweepBackbone], options: SweepOptions) -> bool:
    """Copy the results that an entry has and the results folder lacks.

    Return whether there is an entry. Raises ValidationFailed for results of no backbone of the
    sweep: of a seed that it leaves out, or of other weights than those of its run.
    """
    loaded = read_verified(entry).loaded if (entry / ENTRY_FILE).is_file() else ()
    for one in loaded:
        facts = one.result.backbone
        title = next((seed.title for seed in seeds if seed.has_facts(facts, options)), None)
        if title is None:
            raise ValidationFailed(
                f"the entry {entry} has results of weights ({facts.identity[:12]}) that the sweep"
                " has not",
                fix="give them to the sweep, as a run in its folder or in `backbones`, or delete"
                " the entry to have all of its results made anew",
            )
        folder = options.results / title / facts.identity[:12]
        stored = assembly.read_by_key(folder).get(assembly.key_of(one.result))
        if stored is None or stored.result.score.n < one.result.score.n:
            assembly.add_results(folder, [(one.result, one.records)], replace=True)
    return bool(loaded)
