"""Analyses of several backbones: all is checked first, every finding is stored as it comes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from fsbench import backbones
from fsbench.api.estimate import WORTH_TIMING, seconds_per_image
from fsbench.api.machine import Machine, RunContext
from fsbench.api.request import Models
from fsbench.backbones.loading import Classifier, parse_reference
from fsbench.backbones.sources import run
from fsbench.backbones.weights import weights_hash
from fsbench.core.errors import DataError, UnknownName, UsageError
from fsbench.core.estimates import WorkEstimate, require_consent
from fsbench.core.findings import Analysis, Images, Measure, Question, View
from fsbench.core.io import explain_errors, split_assignments
from fsbench.core.panels import Curve, Panel
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import Frozen
from fsbench.data import DataRoots, SourceDataset, load_source
from fsbench.results import analyses as store
from fsbench.results.names import model_name
from protocols.analyses import ANALYSES, AnalysisFile, NotApplicable
from protocols.analyses.inputs import AnalysisInput


@dataclass(frozen=True, eq=False)
class SubjectLoader:
    """Loads models as subjects; equal images are loaded once.

    source: a reference that replaces the runs' own.
    """

    models: Models
    source: str | None
    roots: DataRoots
    cache: Path
    device: str
    report: Reporter
    known: dict[tuple[str, int], SourceDataset] = field(default_factory=dict)

    def subject(self, index: int, head: bool, images: bool) -> AnalysisInput:
        """A model with its head and images, where they are wanted. Raises as they do."""
        ref = self.models.refs[index]
        backbone = self.models.load(index, self.device, self.report)
        network = backbones.load_classifier(ref, device=self.device) if head else None
        source = self.images(ref, backbone.facts.input_size) if images else None
        if network is not None and source is not None:
            self.compare(ref, network, source)
        return AnalysisInput(backbone, network, source, self.device)

    def images(self, ref: str, size: int) -> SourceDataset:
        """The source at the size (px) that the backbone was trained at."""
        name = self.source or training_source(ref)
        if (name, size) not in self.known:
            self.known[name, size] = load_source(name, self.roots, self.cache, size, self.report)
        return self.known[name, size]

    def compare(self, ref: str, network: Classifier, source: SourceDataset) -> None:
        """Raises DataError for other classes; other images are worth a word."""
        record = network.record
        if record.n_classes != source.n_classes:
            raise DataError(
                f"{ref} was trained on {record.n_classes} classes, {source.name} has"
                f" {source.n_classes}",
                fix=f"leave --source out, or give the source of its training: {record.source}",
            )
        if record.source_fingerprint not in (None, source.fingerprint):
            self.report.log(f"{ref} was trained on other images than this {source.name}")


def training_source(ref: str) -> str:
    """The source of a run, as its recipe names it. Raises UsageError for an old run."""
    record = run.read_run(Path(parse_reference(ref)[1]))
    found = record.recipe_fields.get("source", record.source)
    if not isinstance(found, str):
        raise UsageError(f"{ref} does not say what it was trained on", fix="give --source")
    return found


ALL = "all"

AnalysisChoice = dict[str, Frozen]
"""Name of an analysis -> its settings."""


def parse_analysis_settings(assignments: Sequence[str]) -> dict[str, str]:
    """`analysis.field=value` as field -> text. Raises UsageError for anything else."""
    texts = {}
    for setting, value in split_assignments(assignments, "hessian.top=10"):
        if "." not in setting:
            raise UsageError(f"{setting}={value} sets nothing", fix="write hessian.top=10")
        texts[setting.replace("-", "_")] = value
    return texts


def choose_analyses(
    names: Sequence[str], texts: Mapping[str, str], limit: int | None = None
) -> AnalysisChoice:
    """Analyses with their settings; texts: `analysis.field` -> value; limit: images at most.

    Raises UnknownName for an analysis or a field, UsageError for a value that does not fit.
    """
    given = dict.fromkeys(name.replace("-", "_") for name in names)
    chosen = ANALYSES.names() if ALL in given else tuple(given)
    found = {name: analysis_settings(name, settings_of(name, texts), limit) for name in chosen}
    for text in texts:
        if text.partition(".")[0] not in chosen:
            raise UnknownName("setting", text, (f"{name}.FIELD" for name in chosen))
    return found


def settings_of(name: str, texts: Mapping[str, str]) -> dict[str, str]:
    """The fields set for one analysis."""
    prefix = f"{name}."
    return {g.removeprefix(prefix): text for g, text in texts.items() if g.startswith(prefix)}


def analysis_settings(name: str, texts: Mapping[str, str], limit: int | None) -> Frozen:
    """Of one analysis, from the text of its fields."""
    kind = ANALYSES.load(name).SETTINGS
    for setting in texts:
        if setting not in kind.model_fields:
            raise UnknownName(f"setting of {name}", setting, kind.model_fields)
    try:
        made = kind.model_validate({name: parse_value(text) for name, text in texts.items()})
    except ValidationError as error:
        raise UsageError(
            f"{name}: {explain_errors(error)}", fix=f"give --set {name}.FIELD=VALUE that fits"
        ) from error
    if limit is None or "images" not in kind.model_fields:
        return made
    images: int | None = getattr(made, "images", None)
    return made.model_copy(update={"images": min(limit, images or limit)})


def parse_value(text: str) -> object:
    """JSON where it is such, else the text itself."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def possible_analyses(
    models: Models, wanted: AnalysisChoice, source: str | None, lenient: bool, report: Reporter
) -> AnalysisChoice:
    """The analyses whose needs every model meets. Raises UsageError unless lenient."""
    kept: AnalysisChoice = {}
    for name, chosen in wanted.items():
        file = ANALYSES.load(name)
        short = {
            ref: lack for ref in models.refs if (lack := missing_part(ref, models, source, file))
        }
        for ref, lack in short.items():
            if not lenient:
                raise UsageError(
                    f"{name} cannot be made of {ref}: it has no {lack}", fix=HINTS[lack]
                )
            report.log(f"{name} is left out: {ref} has no {lack}")
        if not short:
            kept[name] = chosen
    return kept


NEEDS_HEAD, NEEDS_IMAGES = "source classifier of ours", "images to look at"
HINTS = {
    NEEDS_HEAD: "pass a run as run:DIR, without --random-init; meta-learners and other backbones"
    " have weights and features only, and --what all takes what they have",
    NEEDS_IMAGES: "name a source with --source",
}


def missing_part(ref: str, models: Models, source: str | None, file: AnalysisFile) -> str:
    """What a model has not that an analysis needs; empty when it has all."""
    kind, name = parse_reference(ref)
    trained = kind == "run" and models.random_init is None
    if "head" in file.NEEDS and not (trained and run.read_run(Path(name)).classifies_source):
        return NEEDS_HEAD
    return NEEDS_IMAGES if "images" in file.NEEDS and not (kind == "run" or source) else ""


SMALLER = "choose another --device, a smaller --limit or fewer of --what"


@dataclass(frozen=True, eq=False)
class ModelAnalysis:
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
        context = RunContext(self.device)
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
            provenance=context.provenance(),
        )
        store.write(self.output, made)
        return made

    def refuse_long(self, wanted: AnalysisChoice, yes: bool) -> None:
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
        estimates = [WorkEstimate(name, one * n) for name, n in left.items() if n]
        require_consent(backbone.facts.ref, estimates, yes, self.report.log, SMALLER)


def analyze(
    models: Models,
    wanted: AnalysisChoice,
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
    wanted = possible_analyses(models, wanted, source, lenient, report)
    needs = {need for name in wanted for need in ANALYSES.load(name).NEEDS}
    loader = SubjectLoader(models, source, DataRoots.parse(roots), machine.cache, device, report)
    found = []
    for i in range(len(models.refs)):
        subject = loader.subject(i, "head" in needs, "images" in needs)
        bench = ModelAnalysis(subject, output, overwrite, lenient, device, report)
        bench.refuse_long(wanted, yes)
        answers = [bench.answer(name, settings) for name, settings in wanted.items()]
        found += [answer for answer in answers if answer is not None]
    return found


MOST_NAMED = 8
"""Positions that a picture still names one by one."""


def column_labels(analyses: Sequence[Analysis]) -> list[str]:
    """A model's name for each record, with the start of the weights hash where two share one."""
    names = [model_name(each.backbone) for each in analyses]
    weights: dict[str, set[str]] = {}
    for name, each in zip(names, analyses, strict=True):
        weights.setdefault(name, set()).add(each.backbone.weights_hash)
    return [
        name if len(weights[name]) == 1 else f"{name} {each.backbone.weights_hash[:6]}"
        for name, each in zip(names, analyses, strict=True)
    ]


def analysis_table(analyses: Sequence[Analysis]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a row a number, a column a model, '-' where a model has none."""
    named = column_labels(analyses)
    header = list(dict.fromkeys(named))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for label, each in zip(named, analyses, strict=True):
        for measure in each.finding.measures:
            rows.setdefault((each.question.what, measure.name), {})[label] = format_measure(measure)
    body = [[what, name, *(row.get(h, "-") for h in header)] for (what, name), row in rows.items()]
    return ["analysis", "number", *header], body


def format_measure(measure: Measure) -> str:
    """Shares in percent, counts whole, other numbers with four digits."""
    if measure.share:
        return f"{100 * measure.value:.2f} %"
    return f"{measure.value:,}" if isinstance(measure.value, int) else f"{measure.value:.4g}"


def analysis_panels(analyses: Sequence[Analysis]) -> list[Panel]:
    """Of one analysis: the views of all models, those of one title in one panel."""
    views: dict[str, list[tuple[str, View]]] = {}
    for label, each in zip(column_labels(analyses), analyses, strict=True):
        for view in each.finding.views:
            views.setdefault(view.title, []).append((label, view))
    return [analysis_panel(found) for found in views.values()]


def analysis_panel(found: Sequence[tuple[str, View]]) -> Panel:
    """Views of one title, under their models' names."""
    first, places = found[0][1], {view.places for _, view in found}
    return Panel(
        title=first.title,
        x=first.x,
        y=first.y,
        curves=tuple(
            Curve(label=label, x=v.at, y=v.values, low=v.low, high=v.high) for label, v in found
        ),
        log_x=first.log_x,
        y_scale=first.y_scale,
        from_zero=first.from_zero,
        ticks=first.places if len(places) == 1 and len(first.places) <= MOST_NAMED else (),
        bars=all(len(view.at) == 1 for _, view in found),
    )
