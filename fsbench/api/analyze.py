"""Analyses of several backbones: all is checked first, every finding is stored as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fsbench.api.analysis_plan import Wanted, allowed
from fsbench.api.estimate import WORTH_TIMING, Estimate, refuse_long, seconds_per_image
from fsbench.api.evaluate import Models
from fsbench.api.machine import Clock, Machine
from fsbench.api.subjects import Loader
from fsbench.backbones.weights import weights_hash
from fsbench.core.findings import Analysis, Images, Question
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import Frozen
from fsbench.data import DataRoots
from fsbench.results import analyses as store
from protocols.analyses import ANALYSES, NotApplicable
from protocols.analyses.inputs import AnalysisInput

FIX = "give --yes to start, or --device, a smaller --limit, fewer of --what"


@dataclass(frozen=True, eq=False)
class Bench:
    """One model whose findings go to `output`.

    lenient: an analysis that finds nothing to look at is left out with a word.
    """

    subject: AnalysisInput
    output: Path
    overwrite: bool
    lenient: bool
    device: str
    report: Reporter

    def question(self, name: str, settings: Frozen) -> Question:
        needs, source = ANALYSES.load(name).NEEDS, self.subject.source
        facts, images = self.subject.backbone.facts, None
        if "images" in needs and source is not None:
            size = facts.input_size
            images = Images(name=source.name, fingerprint=source.fingerprint, input_size=size)
        whole = "head" in needs
        return Question(
            what=name,
            weights=weights_hash(self.subject.network.model.state_dict())
            if whole
            else facts.weights_hash,
            images=images,
            settings=settings.model_dump(mode="json"),
        )

    def earlier(self, name: str, settings: Frozen) -> Analysis | None:
        """The record already there, unless it is to be replaced."""
        if self.overwrite:
            return None
        question = self.question(name, settings)
        return store.earlier(self.output, self.subject.backbone.facts, question)

    def answer(self, name: str, settings: Frozen) -> Analysis | None:
        """The record, made if need be; None if the network has nothing to look at."""
        if found := self.earlier(name, settings):
            return found
        clock = Clock(self.device)
        try:
            finding = ANALYSES.load(name).run(self.subject, settings, self.report)
        except NotApplicable as error:
            if not self.lenient:
                raise
            self.report.log(f"{name} is left out: {error.message}")
            return None
        made = Analysis(
            question=self.question(name, settings),
            backbone=self.subject.backbone.facts,
            finding=finding,
            provenance=clock.provenance(),
        )
        store.write(self.output, made)
        return made

    def refuse_long(self, wanted: Wanted, yes: bool) -> None:
        """Raises UsageError when what is left would take over an hour, unless `yes`."""
        left = {
            name: ANALYSES.load(name).estimate_passes(self.subject, settings)
            for name, settings in wanted.items()
            if self.earlier(name, settings) is None
        }
        if sum(left.values()) < WORTH_TIMING:
            return
        backbone = self.subject.backbone
        one = seconds_per_image(backbone, backbone.facts.input_size, self.device)
        parts = [Estimate(name, one * n) for name, n in left.items() if n]
        refuse_long(parts, backbone.facts.ref, yes, self.report, FIX)


def analyze(
    models: Models,
    wanted: Wanted,
    *,
    source: str | None = None,
    roots: Sequence[str] = (),
    output: Path = Path("results"),
    machine: Machine | None = None,
    lenient: bool = False,
    overwrite: bool = False,
    yes: bool = False,
    report: Reporter = SILENT,
) -> list[Analysis]:
    """Every analysis of every model; records already in `output` are read, not made again.

    source: images for all models, by default what each run was trained on; they have the size that
    the backbone was trained at. lenient: leave out what a model has nothing for, and say so.
    Raises UsageError, DataError, CheckpointError; without `yes` also for work of over an hour.
    """
    machine = machine or Machine()
    device = machine.start().device
    wanted = allowed(models, wanted, source, lenient, report)
    needs = {need for name in wanted for need in ANALYSES.load(name).NEEDS}
    loader = Loader(models, source, DataRoots.parse(roots), machine.cache, device, report)
    found = []
    for i in range(len(models.refs)):
        subject = loader.subject(i, "head" in needs, "images" in needs)
        bench = Bench(subject, output, overwrite, lenient, device, report)
        bench.refuse_long(wanted, yes)
        answers = [bench.answer(name, settings) for name, settings in wanted.items()]
        found += [answer for answer in answers if answer is not None]
    return found
