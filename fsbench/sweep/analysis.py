"""Job that runs the analyses of one block of the sweep file on one backbone."""

from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

from fsbench.api.analyze import Analyzer, choose_analyses
from fsbench.api.options import AnalysisOptions, Machine, SweepOptions
from fsbench.core.io import read_record
from fsbench.core.progress import Reporter
from fsbench.core.schema import Analysis
from fsbench.results.names import ANALYSES
from fsbench.sweep.backbones import SweepBackbone
from fsbench.sweep.file import AnalysesBlock
from fsbench.sweep.job import Job
from protocols.analyses import ANALYSES as REGISTRY


class AnalysisJob(Job):
    """Run analyses on one backbone's training images; analyses: name -> its settings."""

    KIND: ClassVar = "analyze"
    share: ClassVar = "analyses"
    backbone: SweepBackbone
    analyses: dict[str, Any]

    @property
    def title(self) -> str:
        return f"{', '.join(self.analyses)} of {self.backbone.title}"

    @cached_property
    def key(self) -> str:
        return f"{self.backbone.title}: {self.analyses}"

    def done(self, options: SweepOptions) -> bool:
        """Return whether every analysis is recorded, though its run may be deleted."""
        files = options.results.glob(f"{self.backbone.title}/*/{ANALYSES}/*.json")
        records = [read_record(path, Analysis) for path in files]
        mine = [r.question for r in records if self.backbone.has_facts(r.backbone, options)]
        recorded = [(question.what, question.settings) for question in mine]
        settings = {what: s.model_dump(mode="json") for what, s in self.analyses.items()}
        return all(item in recorded for item in settings.items())

    def run(self, options: SweepOptions) -> None:
        models = self.backbone.models(options)
        machine = {name: getattr(options, name) for name in Machine.declared()}
        chosen = AnalysisOptions(what=(), **vars(models), **machine, yes=True)
        Analyzer(chosen, options.results).analyze(self.analyses)


def analysis_jobs(
    block: AnalysesBlock, backbones: Iterable[SweepBackbone], report: Reporter
) -> dict[str, AnalysisJob]:
    """Return backbone -> its job; skip inapplicable analyses and log why. Raise UnknownName."""
    chosen, jobs = choose_analyses(block), {}
    for backbone in filter(block.selects, backbones):
        lacking = {what: backbone.missing_part(REGISTRY.load(what)) for what in chosen}
        for what, lack in lacking.items():
            if lack:
                report.log(f"{what} is left out: {backbone.title} has no {lack}")
        possible = {what: settings for what, settings in chosen.items() if not lacking[what]}
        if possible:
            jobs[backbone.title] = AnalysisJob(backbone=backbone, analyses=possible)
    return jobs
