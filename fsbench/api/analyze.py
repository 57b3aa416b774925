"""Analyze backbones: measure them, store a record per analysis, compare models in table and figure.

Everything is checked before any work; records are stored one by one as they are computed.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from fsbench import backbones
from fsbench.api.evaluate import WORTH_TIMING, seconds_per_image
from fsbench.api.machine import RunContext
from fsbench.api.options import AnalysisSelection, Machine, ModelOptions
from fsbench.api.request import (
    check_models,
    group_settings,
    load_named_backbone,
    name_backbones,
    read_settings,
)
from fsbench.backbones.base import weights_hash
from fsbench.backbones.loading import Classifier, parse_reference
from fsbench.backbones.preprocessing import NEEDED
from fsbench.backbones.sources import run
from fsbench.core.errors import DataError, UnknownName, UsageError
from fsbench.core.progress import SILENT, Reporter, WorkEstimate, require_consent
from fsbench.core.schema import Analysis, Images, Measure, Question, View
from fsbench.core.specs import Frozen, SourceSubset
from fsbench.data import SourceDataset, load_source
from fsbench.data.augmentation import crop_centre
from fsbench.results import store
from fsbench.results.names import model_name
from fsbench.results.table import distinct_labels
from protocols.analyses import ANALYSES, AnalysisFile, NotApplicable
from protocols.analyses.inputs import AnalysisInput, AnalysisSettings

ALL = "all"
SMALLER = "choose another --device, fewer --images or fewer of --what"
NEEDS_HEAD, NEEDS_IMAGES = "classifier of a source", "source images"
HINTS = {
    NEEDS_HEAD: "pass a run as run:DIR, without --random-init; meta-learners and other backbones"
    " have weights and features only, and --what all runs what applies to them",
    NEEDS_IMAGES: "name a source with --source",
}

AnalysisChoice = dict[str, AnalysisSettings]
"""Name of an analysis -> its settings."""


def analyze(
    models: ModelOptions,
    choice: AnalysisChoice,
    *,
    source: str | None = None,
    output: Path = Path("results"),
    machine: Machine,
    lenient: bool = False,
    overwrite: bool = False,
    yes: bool = False,
    report: Reporter = SILENT,
) -> list[Analysis]:
    """Run every analysis on every model; records that are in `output` already are read.

    source: images for all models, by default those that each run was trained on, at the size that
    the backbone was trained at. lenient: skip inapplicable analyses and log why. Raises UsageError,
    DataError, CheckpointError; without `yes` also if the work would take over an hour.
    """
    check_models(models)
    device = RunContext.start(machine).device
    choice = applicable_analyses(models, choice, source, lenient, report)
    needs = {need for name in choice for need in ANALYSES.load(name).NEEDS}
    loader = InputLoader(models, source, machine, device, report)
    analyses: list[Analysis | None] = []
    for ref in name_backbones(models):
        inputs = loader.load(ref, head="head" in needs, images="images" in needs)
        model = ModelAnalysis(inputs, output, overwrite, lenient, report)
        model.check_cost(choice, yes)
        analyses += [model.run(name, settings) for name, settings in choice.items()]
    return [analysis for analysis in analyses if analysis is not None]


def choose_analyses(selection: AnalysisSelection) -> AnalysisChoice:
    """Return analyses with their settings.

    Raises UnknownName for an analysis or a field, UsageError for a value that does not fit.
    """
    named = dict.fromkeys(name.replace("-", "_") for name in selection.what)
    chosen = ANALYSES.names() if ALL in named else tuple(named)
    pairs = (text.partition("=") for text in selection.set)
    texts = group_settings((n.replace("-", "_") + eq + v for n, eq, v in pairs), "hessian.top=10")
    for name in texts.keys() - set(chosen):
        setting = f"{name}.{next(iter(texts[name]))}"
        raise UnknownName("setting", setting, (f"{name}.FIELD" for name in chosen))
    images = selection.images
    return {name: analysis_settings(name, texts.get(name, {}), images) for name in chosen}


def analysis_settings(name: str, texts: Mapping[str, str], limit: int | None) -> AnalysisSettings:
    """Return the settings of one analysis, from the text of its fields; limit: most images."""
    values: dict[str, object] = dict(texts)
    for field_name, text in texts.items():
        with suppress(json.JSONDecodeError):  # any other text stays as it is
            values[field_name] = json.loads(text)
    settings = read_settings(ANALYSES.load(name).SETTINGS, name, values)
    if limit is None or "images" not in type(settings).model_fields:
        return settings
    images: int | None = getattr(settings, "images", None)
    return settings.model_copy(update={"images": min(limit, images or limit)})


def applicable_analyses(
    models: ModelOptions,
    choice: AnalysisChoice,
    source: str | None,
    lenient: bool,
    report: Reporter,
) -> AnalysisChoice:
    """Return the analyses whose needs every model meets. Raise UsageError unless `lenient`."""
    applicable = dict(choice)
    for name, ref in product(choice, name_backbones(models)):
        part = missing_part(ref, models, source, ANALYSES.load(name))
        if part and not lenient:
            raise UsageError(f"{name} cannot be made of {ref}: it has no {part}", fix=HINTS[part])
        if part:
            report.log(f"{name} is left out: {ref} has no {part}")
            applicable.pop(name, None)
    return applicable


def missing_part(ref: str, models: ModelOptions, source: str | None, file: AnalysisFile) -> str:
    """Return what an analysis needs and a model lacks; empty if it lacks nothing."""
    kind, name = parse_reference(ref)
    trained = kind == "run" and models.random_init is None
    if "head" in file.NEEDS and not (trained and run.read_run(Path(name)).classifies_source):
        return NEEDS_HEAD
    return NEEDS_IMAGES if "images" in file.NEEDS and not (kind == "run" or source) else ""


@dataclass(frozen=True, eq=False)
class InputLoader:
    """Loader of the inputs of analyses; equal images are loaded once.

    source: a reference that replaces the source of the runs.
    """

    models: ModelOptions
    source: str | None
    machine: Machine
    device: str
    report: Reporter
    sources: "dict[tuple[str, int, TrainingImages], SourceDataset]" = field(default_factory=dict)

    def load(self, ref: str, *, head: bool, images: bool) -> AnalysisInput:
        """Return a model, with its classifier and source images if they are needed."""
        needs = NEEDED if images else ()
        backbone = load_named_backbone(self.models, ref, self.device, self.report, needs)
        network = backbones.load_classifier(ref, device=self.device) if head else None
        size = backbone.facts.input_size
        source = self.images(ref, size) if images and size else None
        if network is not None and source is not None:
            self.require_same_classes(ref, network, source)
        return AnalysisInput(backbone, network, source, self.device)

    def images(self, ref: str, size: int) -> SourceDataset:
        """Return the source images at the size (px) that the backbone was trained at."""
        trained = TrainingImages() if self.source else training_images(ref)
        name, read_at = self.source or trained.source, trained.source_size or size
        key = (name, size, trained)
        if key not in self.sources:
            roots, cache = self.machine.roots, self.machine.cache_folder
            source = load_source(name, roots, cache, read_at, self.report, trained.source_subset)
            train, val = (
                replace(split, images=crop_centre(split.images, size))
                for split in (source.train, source.val)
            )
            self.sources[key] = replace(source, train=train, val=val)
        return self.sources[key]

    def require_same_classes(self, ref: str, network: Classifier, source: SourceDataset) -> None:
        """Raise DataError if the source has other classes; log if it has other images."""
        record = network.record
        if record.n_classes != source.n_classes:
            raise DataError(
                f"{ref} was trained on {record.n_classes} classes, {source.name} has"
                f" {source.n_classes}",
                fix=f"leave --source out, or name the source of its training: {record.source}",
            )
        if record.source_fingerprint not in (None, source.fingerprint):
            self.report.log(f"{ref} was trained on other images than this {source.name}")


class TrainingImages(Frozen):
    """The source of a run, its part and the side (px) of its images, as in the recipe."""

    source: str = ""
    source_subset: SourceSubset | None = None
    source_size: int | None = None


def training_images(ref: str) -> TrainingImages:
    """Return what a run was trained on. Raises UsageError for an old run."""
    record = run.read_run(Path(parse_reference(ref)[1]))
    fields = {"source": record.source, **record.recipe_fields}
    if not isinstance(fields["source"], str):
        raise UsageError(f"{ref} does not record its source data set", fix="add --source")
    named = TrainingImages.model_fields.keys() & fields.keys()
    return TrainingImages.model_validate({name: fields[name] for name in named})


@dataclass(frozen=True, eq=False)
class ModelAnalysis:
    """The analyses of one model; records go to `output`.

    lenient: skip an analysis that does not apply to the network and log why.
    """

    inputs: AnalysisInput
    output: Path
    overwrite: bool
    lenient: bool
    report: Reporter

    def run(self, name: str, settings: AnalysisSettings) -> Analysis | None:
        """Return the record of an analysis, computed if it is missing; None if it is skipped."""
        question = self.question(name, settings)
        if stored := self.stored(question):
            return stored
        context = RunContext(self.inputs.device)
        try:
            finding = ANALYSES.load(name).run(self.inputs, settings, self.report)
        except NotApplicable as error:
            if not self.lenient:
                raise
            self.report.log(f"{name} is left out: {error.message}")
            return None
        analysis = Analysis(
            question=question,
            backbone=self.inputs.backbone.facts,
            finding=finding,
            provenance=context.provenance(),
        )
        store.write_finding(self.output, analysis)
        return analysis

    def question(self, name: str, settings: AnalysisSettings) -> Question:
        """Return all that decides the outcome of an analysis."""
        needs, source = ANALYSES.load(name).NEEDS, self.inputs.source
        facts, images = self.inputs.backbone.facts, None
        if "images" in needs and source is not None:
            size = facts.input_size
            images = Images(name=source.name, fingerprint=source.fingerprint, input_size=size)
        weights = facts.weights_hash
        if "head" in needs:
            weights = weights_hash(self.inputs.network.model.state_dict())
        return Question(
            what=name, weights=weights, images=images, settings=settings.model_dump(mode="json")
        )

    def stored(self, question: Question) -> Analysis | None:
        """Return the record that is there, unless it is to be replaced."""
        if self.overwrite:
            return None
        return store.read_finding(self.output, self.inputs.backbone.facts, question)

    def check_cost(self, choice: AnalysisChoice, yes: bool) -> None:
        """Log how long the missing analyses will take; refuse over an hour without `yes`."""
        passes = {
            name: settings.count_passes(self.inputs)
            for name, settings in choice.items()
            if self.stored(self.question(name, settings)) is None
        }
        backbone, size = self.inputs.backbone, self.inputs.backbone.facts.input_size
        if sum(passes.values()) < WORTH_TIMING or size is None:
            return
        seconds = seconds_per_image(backbone, size, self.inputs.device)
        estimates = [WorkEstimate(name, seconds * n) for name, n in passes.items() if n]
        require_consent(backbone.facts.ref, estimates, yes, self.report.log, SMALLER)


def column_labels(analyses: Sequence[Analysis]) -> list[str]:
    """Return the model of each record, with the start of its weights hash if two share a name."""
    return distinct_labels(analyses, [model_name(analysis.backbone) for analysis in analyses])


def analysis_table(analyses: Sequence[Analysis]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: one row per measure, one column per model, '-' where it is absent."""
    labels = column_labels(analyses)
    models = list(dict.fromkeys(labels))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for label, analysis in zip(labels, analyses, strict=True):
        for measure in analysis.finding.measures:
            row = rows.setdefault((analysis.question.what, measure.name), {})
            row[label] = format_measure(measure)
    body = [[*names, *(row.get(model, "-") for model in models)] for names, row in rows.items()]
    return ["analysis", "number", *models], body


def format_measure(measure: Measure) -> str:
    """Return a share in percent, a count whole, another number with four digits."""
    if measure.share:
        return f"{100 * measure.value:.2f} %"
    return f"{measure.value:,}" if isinstance(measure.value, int) else f"{measure.value:.4g}"


def label_views(analyses: Sequence[Analysis]) -> list[View]:
    """Return the views of the records, each labelled by its model."""
    return [
        view.model_copy(update={"label": label})
        for label, analysis in zip(column_labels(analyses), analyses, strict=True)
        for view in analysis.finding.views
    ]
