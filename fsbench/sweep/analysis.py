"""Job that runs the analyses of one block of the sweep file on one backbone."""

from functools import cached_property
from typing import Any, ClassVar

from fsbench.api.analyze import AnalysisChoice, Analyzer
from fsbench.api.options import AnalysisOptions, SweepOptions
from fsbench.core.io import read_record
from fsbench.core.progress import Reporter
from fsbench.core.schema import Analysis
from fsbench.results.names import ANALYSES
from fsbench.sweep.backbones import SweepBackbone, load_options
from fsbench.sweep.job import Job
from protocols.analyses import ANALYSES as REGISTRY


class AnalysisJob(Job):
    """Run analyses on one backbone's training images; analyses: name -> its settings."""

    KIND: ClassVar = "analyze"
    share: str = "analyses"
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
        chosen = AnalysisOptions(what=(), **load_options(self.backbone, options))
        Analyzer(chosen, options.results).analyze(self.analyses)


def choose_applicable(
    choice: AnalysisChoice, backbone: SweepBackbone, report: Reporter
) -> list[AnalysisJob]:
    """Return the job of the analyses that apply to a backbone, if any; log why others do not."""
    applicable = dict(choice)
    for what in choice:
        if lack := backbone.missing_part(REGISTRY.load(what)):
            report.log(f"{what} is left out: {backbone.title} has no {lack}")
            del applicable[what]
    return [AnalysisJob(backbone=backbone, analyses=applicable)] if applicable else []
