"""Analyze backbones: measure them, store a record per analysis, compare models in table and figure.

Everything is checked before any work; records are stored one by one as they are computed.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path

from fsbench import backbones
from fsbench.api.evaluate import WORTH_TIMING, seconds_per_image
from fsbench.api.machine import RunContext
from fsbench.api.options import AnalysisOptions, AnalysisSelection
from fsbench.api.request import Model, group_settings, parse_models, read_settings
from fsbench.backbones.base import weights_hash
from fsbench.backbones.loading import parse_reference
from fsbench.backbones.preprocessing import NEEDED
from fsbench.backbones.sources import run
from fsbench.core.errors import DataError, UnknownName, UsageError
from fsbench.core.progress import SILENT, Reporter, WorkEstimate, require_consent
from fsbench.core.schema import Analysis, Images, Measure, Question, View
from fsbench.core.specs import SourceSubset
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


def choose_analyses(selection: AnalysisSelection) -> AnalysisChoice:
    """Return analyses with their settings.

    Raises UnknownName for an analysis or a field, UsageError for a value that does not fit.
    """
    chosen = ANALYSES.names() if ALL in selection.what else tuple(dict.fromkeys(selection.what))
    texts = group_settings(selection.set)
    for name in texts.keys() - set(chosen):
        setting = f"{name}.{next(iter(texts[name]))}"
        raise UnknownName("setting", setting, (f"{name}.FIELD" for name in chosen))
    return {name: read_analysis(name, texts.get(name, {}), selection.images) for name in chosen}


def read_analysis(name: str, texts: Mapping[str, str], limit: int | None) -> AnalysisSettings:
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


def missing_part(model: Model, source: str | None, file: AnalysisFile) -> str:
    """Return what an analysis needs and a model lacks; empty if it lacks nothing."""
    kind, name = parse_reference(model.ref)
    is_trained = kind == "run" and model.options.random_init is None
    if "head" in file.NEEDS and not (is_trained and run.read_run(Path(name)).classifies_source):
        return NEEDS_HEAD
    return NEEDS_IMAGES if "images" in file.NEEDS and not (kind == "run" or source) else ""


@dataclass(frozen=True, eq=False)
class Analyzer:
    """Analyses of models: records that are in the output already are read."""

    options: AnalysisOptions
    output: Path
    report: Reporter = SILENT

    @cached_property
    def device(self) -> str:
        return RunContext.start(self.options).device

    def analyze(self, choice: AnalysisChoice) -> list[Analysis]:
        """Run every analysis on every model. Raises UsageError, DataError, CheckpointError."""
        models, applicable = parse_models(self.options), dict(choice)
        for name, model in product(choice, models):
            part = missing_part(model, self.options.source, ANALYSES.load(name))
            if part and ALL not in self.options.what:
                raise UsageError(f"{model.ref} has no {part} for {name}", fix=HINTS[part])
            if part:
                self.report.log(f"{name} is left out: {model.ref} has no {part}")
                applicable.pop(name, None)
        needs = {need for name in applicable for need in ANALYSES.load(name).NEEDS}
        analyses: list[Analysis] = []
        for model in models:
            inputs = self.load(model, needs)
            facts, questions = inputs.backbone.facts, make_questions(inputs, applicable)
            is_new = self.options.overwrite
            stored = {
                name: None if is_new else store.read_finding(self.output, facts, question)
                for name, question in questions.items()
            }
            missing = {name: s for name, s in applicable.items() if stored[name] is None}
            self.check_cost(inputs, missing)
            for name, question in questions.items():
                if record := stored[name] or self.run(inputs, question, applicable[name]):
                    analyses.append(record)
        return analyses

    def load(self, model: Model, needs: Collection[str]) -> AnalysisInput:
        """Return a model, with its classifier and source images if they are needed.

        Raises DataError if the source has other classes; logs if it has other images.
        """
        backbone = model.load(self.device, self.report, NEEDED if "images" in needs else ())
        has_head, size = "head" in needs, backbone.facts.input_size
        network = backbones.load_classifier(model.ref, device=self.device) if has_head else None
        source = self.load_images(model.ref, size) if "images" in needs and size else None
        if network is not None and source is not None:
            record = network.record
            if record.n_classes != source.n_classes:
                raise DataError(
                    f"{model.ref} was trained on {record.n_classes} classes, {source.name} has"
                    f" {source.n_classes}",
                    fix=f"leave --source out, or give its own: {record.source}",
                )
            if record.source_fingerprint not in (None, source.fingerprint):
                self.report.log(f"{model.ref} was trained on other images than this {source.name}")
        return AnalysisInput(backbone, network, source, self.device)

    def load_images(self, ref: str, size: int) -> SourceDataset:
        """Return the source images at the size (px) that the backbone was trained at.

        Of a run's own source only the part that it was trained on, read at the size of its recipe.
        """
        name, read_at, subset = self.options.source, size, None
        if name is None:
            record = run.read_run(Path(parse_reference(ref)[1]))
            recipe = record.recipe_fields
            name, read_at = recipe.get("source", record.source), recipe.get("source_size") or size
            if fields := recipe.get("source_subset"):
                subset = SourceSubset.model_validate(fields)
        roots, cache = self.options.roots, self.options.cache_folder
        source = load_source(name, roots, cache, read_at, self.report, subset)
        train, val = (
            replace(split, images=crop_centre(split.images, size))
            for split in (source.train, source.val)
        )
        return replace(source, train=train, val=val)

    def run(
        self, inputs: AnalysisInput, question: Question, settings: AnalysisSettings
    ) -> Analysis | None:
        """Compute and write the record of an analysis; None if it is skipped."""
        context, name = RunContext(self.device), question.what
        try:
            finding = ANALYSES.load(name).run(inputs, settings, self.report)
        except NotApplicable as error:
            if ALL not in self.options.what:
                raise
            self.report.log(f"{name} is left out: {error.message}")
            return None
        facts, provenance = inputs.backbone.facts, context.provenance()
        analysis = Analysis(
            question=question, backbone=facts, finding=finding, provenance=provenance
        )
        store.write_finding(self.output, analysis)
        return analysis

    def check_cost(self, inputs: AnalysisInput, missing: AnalysisChoice) -> None:
        """Log how long the missing analyses will take; refuse over an hour without `yes`."""
        passes = {name: settings.count_passes(inputs) for name, settings in missing.items()}
        backbone, size = inputs.backbone, inputs.backbone.facts.input_size
        if sum(passes.values()) < WORTH_TIMING or size is None:
            return
        seconds = seconds_per_image(backbone, size, self.device)
        estimates = [WorkEstimate(name, seconds * n) for name, n in passes.items() if n]
        require_consent(backbone.facts.ref, estimates, self.options.yes, self.report.log, SMALLER)


def make_questions(inputs: AnalysisInput, choice: AnalysisChoice) -> dict[str, Question]:
    """Return all that decides the outcome of each analysis."""
    questions, source, facts = {}, inputs.source, inputs.backbone.facts
    for name, settings in choice.items():
        needs, images, weights = ANALYSES.load(name).NEEDS, None, facts.weights_hash
        if "images" in needs and source is not None:
            size = facts.input_size
            images = Images(name=source.name, fingerprint=source.fingerprint, input_size=size)
        if "head" in needs:
            weights = weights_hash(inputs.network.model.state_dict())
        values = settings.model_dump(mode="json")
        questions[name] = Question(what=name, weights=weights, images=images, settings=values)
    return questions


def column_labels(analyses: Sequence[Analysis]) -> list[str]:
    """Return the model of each record, with the start of its weights hash if two share a name."""
    return distinct_labels(analyses, [model_name(analysis.backbone) for analysis in analyses])


def analysis_table(analyses: Sequence[Analysis]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows: one row per measure, one column per model, '-' where it is absent."""
    labels = column_labels(analyses)
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for label, analysis in zip(labels, analyses, strict=True):
        for measure in analysis.finding.measures:
            row = rows.setdefault((analysis.question.what, measure.name), {})
            row[label] = format_measure(measure)
    models = [*dict.fromkeys(labels)]
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
