"""Job that runs the analyses of one block of the sweep file on one backbone."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

from fsbench.api.analyze import HINTS, Analyzer, choose_analyses
from fsbench.api.options import SweepOptions
from fsbench.core.errors import UsageError
from fsbench.core.io import read_record
from fsbench.core.progress import Reporter
from fsbench.core.schema import Analysis
from fsbench.results.names import ANALYSES
from fsbench.sweep.backbones import SweepBackbone
from fsbench.sweep.file import AnalysesBlock, JobKind
from fsbench.sweep.job import Job
from protocols.analyses import ANALYSES as REGISTRY


class AnalysisJob(Job):
    """Run analyses on one backbone's training images; analyses: name -> its settings."""

    KIND: ClassVar[JobKind] = "analyze"
    backbone: SweepBackbone
    analyses: dict[str, Any]

    @property
    def title(self) -> str:
        return f"{', '.join(self.analyses)} of {self.backbone.label}"

    @cached_property
    def key(self) -> str:
        return f"{self.backbone.label}: {self.analyses}"

    def done(self, options: SweepOptions) -> bool:
        return all(self.is_recorded(what, options) for what in self.analyses)

    def is_recorded(self, what: str, options: SweepOptions) -> bool:
        """Return whether there is a record, though its run may be deleted."""
        settings = self.analyses[what].model_dump(mode="json")
        files = options.analyses.glob(f"{self.backbone.label}/*/{ANALYSES}/{what}-*.json")
        return any(
            record.question.settings == settings and self.backbone.has_facts(record.backbone)
            for record in (read_record(path, Analysis) for path in files)
        )

    def run(self, options: SweepOptions) -> None:
        models = self.backbone.models(options)
        Analyzer(models, options, options.analyses, yes=True).analyze(self.analyses)


def analysis_jobs(
    block: AnalysesBlock,
    backbones: Iterable[SweepBackbone],
    options: SweepOptions,
    report: Reporter,
) -> dict[str, AnalysisJob]:
    """Return backbone label -> its job; skip inapplicable analyses and log why.

    Raise UsageError if nothing remains, UnknownName.
    """
    chosen, jobs, refused = choose_analyses(block), {}, []
    for backbone in backbones:
        lacking = {what: backbone.missing_part(REGISTRY.load(what), options) for what in chosen}
        refused += [(what, backbone.label, lack) for what, lack in lacking.items() if lack]
        possible = {what: settings for what, settings in chosen.items() if not lacking[what]}
        if possible:
            jobs[backbone.label] = AnalysisJob(backbone=backbone, analyses=possible)
    if refused and not jobs:
        what, label, lack = refused[0]
        raise UsageError(f"{what} cannot be made of {label}: it has no {lack}", fix=HINTS[lack])
    for what, label, lack in refused:
        report.log(f"{what} is left out: {label} has no {lack}")
    return jobs
