"""Job that runs the analyses of one block of the sweep file on one backbone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from fsbench.api.analyze import (
    HINTS,
    AnalysisChoice,
    analyze,
    choose_analyses,
    parse_analysis_settings,
)
from fsbench.core.errors import UsageError
from fsbench.core.findings import Analysis
from fsbench.core.io import read_record
from fsbench.core.progress import Reporter
from fsbench.results.names import ANALYSES
from fsbench.sweep.evaluation import SweepBackbone
from fsbench.sweep.file import AnalysesBlock, JobKind
from fsbench.sweep.job import Job
from fsbench.sweep.place import Workplace
from protocols.analyses import ANALYSES as REGISTRY


class AnalysisJob(Job):
    """wanted: analysis -> all its settings. Images are those that the backbone was trained on."""

    KIND: ClassVar[JobKind] = "analyze"
    backbone: SweepBackbone
    wanted: Mapping[str, Mapping[str, Any]]

    @property
    def title(self) -> str:
        return f"{', '.join(self.wanted)} of {self.backbone.label}"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"backbone": self.backbone.identity, "wanted": self.wanted}

    @property
    def plan(self) -> AnalysisChoice:
        return {name: REGISTRY.load(name).SETTINGS(**given) for name, given in self.wanted.items()}

    def done(self, place: Workplace) -> bool:
        """Whether the records are there; the run itself may be gone."""
        there = {
            found.question.what
            for found in self.records(place)
            if self.backbone.is_(found.backbone)
            and found.question.settings == self.wanted[found.question.what]
        }
        return there == self.wanted.keys()

    def records(self, place: Workplace) -> Iterator[Analysis]:
        """All of these analyses under the backbone's name. Raises ValidationFailed."""
        for what in self.wanted:
            files = f"{self.backbone.label}/*/{ANALYSES}/{what}-*.json"
            for path in sorted(place.analyses.glob(files)):
                yield read_record(path, Analysis)

    def run(self, place: Workplace) -> None:
        analyze(
            self.backbone.models(place),
            self.plan,
            roots=place.roots,
            output=place.analyses,
            machine=place.machine,
            yes=True,
        )


def analysis_jobs(
    asked: AnalysesBlock, backbones: Iterable[SweepBackbone], place: Workplace, report: Reporter
) -> dict[str, AnalysisJob]:
    """Label of a backbone -> the job of those analyses that it has something for; the others are
    left out with a word. Raises UsageError where that leaves nothing, UnknownName.
    """
    settings = complete_settings(asked)
    jobs, refused = {}, []
    for backbone in backbones:
        lacking = {what: backbone.lacks(REGISTRY.load(what), place) for what in settings}
        refused += [(what, backbone.label, lack) for what, lack in lacking.items() if lack]
        possible = {what: given for what, given in settings.items() if not lacking[what]}
        if possible:
            jobs[backbone.label] = AnalysisJob(backbone=backbone, wanted=possible)
    if refused and not jobs:
        what, label, lack = refused[0]
        raise UsageError(f"{what} cannot be made of {label}: it has no {lack}", fix=HINTS[lack])
    for what, label, lack in refused:
        report.log(f"{what} is left out: {label} has no {lack}")
    return jobs


def complete_settings(asked: AnalysesBlock) -> dict[str, dict[str, Any]]:
    """Analysis -> settings, complete. Raises UsageError, UnknownName."""
    chosen = choose_analyses(asked.what, parse_analysis_settings(asked.set), asked.limit)
    return {name: settings.model_dump(mode="json") for name, settings in chosen.items()}
