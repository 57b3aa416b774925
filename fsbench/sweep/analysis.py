"""Job that runs the analyses of one block of the sweep file on one backbone."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar

from fsbench.api.analyze import HINTS, AnalysisChoice, Analyzer, choose_analyses
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
    """Run analyses on one backbone's training images; analyses: name -> all settings."""

    KIND: ClassVar[JobKind] = "analyze"
    backbone: SweepBackbone
    analyses: Mapping[str, Mapping[str, Any]]

    @property
    def title(self) -> str:
        return f"{', '.join(self.analyses)} of {self.backbone.label}"

    @cached_property
    def key(self) -> str:
        return f"{self.backbone.label}: {self.analyses}"

    @property
    def plan(self) -> AnalysisChoice:
        return {
            name: REGISTRY.load(name).SETTINGS(**values) for name, values in self.analyses.items()
        }

    def done(self, options: SweepOptions) -> bool:
        """Return whether all records exist; the run itself may be deleted."""
        stored = {
            record.question.what
            for record in self.records(options)
            if self.backbone.has_facts(record.backbone)
            and record.question.settings == self.analyses[record.question.what]
        }
        return stored == self.analyses.keys()

    def records(self, options: SweepOptions) -> Iterator[Analysis]:
        """Yield the stored records of these analyses of the backbone. Raise ValidationFailed."""
        for what in self.analyses:
            files = f"{self.backbone.label}/*/{ANALYSES}/{what}-*.json"
            for path in sorted(options.analyses.glob(files)):
                yield read_record(path, Analysis)

    def run(self, options: SweepOptions) -> None:
        models = self.backbone.models(options)
        Analyzer(models, options, options.analyses, yes=True).analyze(self.plan)


def analysis_jobs(
    block: AnalysesBlock,
    backbones: Iterable[SweepBackbone],
    options: SweepOptions,
    report: Reporter,
) -> dict[str, AnalysisJob]:
    """Return backbone label -> its job; skip inapplicable analyses and log why.

    Raise UsageError if nothing remains, UnknownName.
    """
    chosen = choose_analyses(block)
    settings = {name: values.model_dump(mode="json") for name, values in chosen.items()}
    jobs, refused = {}, []
    for backbone in backbones:
        lacking = {what: backbone.missing_part(REGISTRY.load(what), options) for what in settings}
        refused += [(what, backbone.label, lack) for what, lack in lacking.items() if lack]
        possible = {what: values for what, values in settings.items() if not lacking[what]}
        if possible:
            jobs[backbone.label] = AnalysisJob(backbone=backbone, analyses=possible)
    if refused and not jobs:
        what, label, lack = refused[0]
        raise UsageError(f"{what} cannot be made of {label}: it has no {lack}", fix=HINTS[lack])
    for what, label, lack in refused:
        report.log(f"{what} is left out: {label} has no {lack}")
    return jobs
