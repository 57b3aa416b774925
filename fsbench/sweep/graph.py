"""Build the jobs of a sweep file and their dependencies, backbone by backbone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from typing import get_args

from fsbench import backbones, data
from fsbench.api.evaluate import TargetSets
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import DatasetRecord
from fsbench.core.tasks import TaskId
from fsbench.core.training import RESTARTING
from fsbench.results.names import model_name
from fsbench.sweep.analysis import analysis_jobs
from fsbench.sweep.evaluation import (
    EvaluationJob,
    GivenBackbone,
    SweepBackbone,
    TrainedBackbone,
    build_request,
)
from fsbench.sweep.file import BackboneBlock, EvaluationBlock, RunsBlock, SweepFile
from fsbench.sweep.job import Job
from fsbench.sweep.place import Workplace
from fsbench.sweep.submission import SubmissionJob, format_entry_name
from fsbench.sweep.training import RoundZeroJob, TrainingJob
from pretrain import METHODS
from pretrain.recipes import plan, registry
from pretrain.recipes.recipe import Recipe, Scale, fit_round_steps
from pretrain.training import first_round

ALL = "all"
SCALES: tuple[str, ...] = get_args(Scale)


def expand_recipes(runs: RunsBlock) -> Iterator[Recipe]:
    """The recipes of one block. Raises UsageError, UnknownName."""
    for seed, base, methods in product(runs.seeds, runs.recipes, method_names(runs)):
        recipe = choose_recipe(base, methods, {**recipe_overrides(runs), "seed": seed})
        if runs.controls:
            yield from matched_controls(recipe)
        yield recipe


def method_names(runs: RunsBlock) -> tuple[str | None, ...]:
    """Methods of the block; None: those of the recipe itself."""
    if ALL in runs.methods:
        return METHODS.names()
    return runs.methods or (None,)


def recipe_overrides(runs: RunsBlock) -> dict[str, object]:
    """What the block sets, over its scenario. Raises UsageError for a seed, which has its place."""
    if "seed" in runs.set:
        raise UsageError("`set` has a seed", fix="write it as seeds: [0]")
    fixed = plan.scenario_fields(runs.scenario) if runs.scenario else {}
    return {**fixed, **runs.set}


def choose_recipe(base: str, methods: str | None, fields: dict[str, object]) -> Recipe:
    """The recipe of the scale, or the given one, with these methods if any."""
    if base not in SCALES:
        recipe = registry.load_recipe(base)
        return (
            registry.compose_methods(recipe, methods, fields) if methods else recipe.replace(fields)
        )
    if methods is None:
        raise UsageError(f"'{base}' is a scale", fix=f"give `methods`, or a recipe: {base}/normal")
    name = f"{base}/{methods}"
    if "+" not in methods:
        return registry.load_recipe(name).replace(fields)
    return registry.compose_methods(registry.load_recipe(f"{base}/normal"), methods, fields)


def matched_controls(recipe: Recipe) -> Iterator[Recipe]:
    """Plain training of as many steps on as many images: as the recipe has it, and where its rate
    starts over at every round, with one schedule over all of them."""
    plain = registry.control_recipe(recipe)
    yield plain
    restarts = recipe.plan.total_rounds > 1 and recipe.schedule in RESTARTING
    if restarts and recipe.plan.stop_accuracy is None:
        yield plain.replace({"schedule": "single_cycle"})


@dataclass(frozen=True)
class JobGraph:
    """jobs by key, what is needed always before what needs it; needs: key -> keys."""

    jobs: dict[str, Job] = field(default_factory=dict)
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, job: Job, needs: Iterable[Job] = ()) -> None:
        """A job that is there already stays as it is."""
        if job.key not in self.jobs:
            self.jobs[job.key] = job
            self.needs[job.key] = tuple(need.key for need in needs)

    def needed_by(self, key: str) -> list[str]:
        return [other for other, needs in self.needs.items() if key in needs]


def build_graph(file: SweepFile, place: Workplace, report: Reporter = SILENT) -> JobGraph:
    """All jobs of the sweep. Data sets and given backbones are read and checked on the way.

    Raises UsageError, UnknownName, DataError, CheckpointError.
    """
    graph, named = JobGraph(), trained_backbones(file, place)
    found: list[SweepBackbone] = [*map(load_given, file.backbones), *named]
    require_distinct_labels(found)
    blocks = [(asked, evaluation_parts(asked, place, report)) for asked in file.evaluate]
    looks = [
        analysis_jobs(
            asked, [each for each in found if matches_any(asked.only, each)], place, report
        )
        for asked in file.analyze
    ]
    for backbone in found:
        parents = add_training(graph, backbone)
        entry = format_entry_name(file.submit, backbone) if file.submit else None
        evaluations = [
            EvaluationJob(
                backbone=backbone,
                tasks=tuple(images),
                images=tuple(images.values()),
                asked=a,
                entry=entry,
            )
            for a, parts in blocks
            if matches_any(a.only, backbone)
            for images in parts
        ]
        analyses = [look[backbone.label] for look in looks if backbone.label in look]
        for job in (*evaluations, *analyses):
            graph.add(job, parents)
        if file.submit and evaluations:
            unique = {job.key: job for job in evaluations}
            submitting = SubmissionJob(evaluations=tuple(unique.values()), entries=file.submit)
            graph.add(submitting, unique.values())
    return graph


def matches_any(patterns: tuple[str, ...], backbone: SweepBackbone) -> bool:
    return any(fnmatchcase(backbone.label, pattern) for pattern in patterns)


def add_training(graph: JobGraph, backbone: SweepBackbone) -> list[Job]:
    """The job that makes the backbone, if any, after the round 0 that it shares."""
    if not isinstance(backbone, TrainedBackbone):
        return []
    trunk = backbone.training.trunk
    if trunk:
        graph.add(trunk)
    graph.add(backbone.training, [trunk] if trunk else [])
    return [backbone.training]


def trained_backbones(file: SweepFile, place: Workplace) -> list[TrainedBackbone]:
    """The runs of the file, each once, a round 0 shared where two or more have the same."""
    chosen: dict[str, tuple[Recipe, str]] = {}
    for block in file.pretrain:
        for recipe in expand_recipes(block):
            source = place.source(recipe)
            whole = fit_round_steps(recipe, source)
            chosen[f"{whole.digest()} {source.fingerprint}"] = whole, source.fingerprint
    trunks = {key: shared_round_zero(*made) for key, made in chosen.items()}
    shared = Counter(trunk.key for trunk in trunks.values() if trunk)
    return [
        TrainedBackbone(
            training=TrainingJob(
                recipe=recipe,
                source_fingerprint=fingerprint,
                trunk=trunk if trunk and shared[trunk.key] > 1 else None,
            )
        )
        for (recipe, fingerprint), trunk in zip(chosen.values(), trunks.values(), strict=True)
    ]


def shared_round_zero(recipe: Recipe, fingerprint: str) -> RoundZeroJob | None:
    """The round 0 that a run of the recipe may start from."""
    if not first_round.can_share_first_round(recipe):
        return None
    return RoundZeroJob(recipe=first_round.shared_recipe(recipe), source_fingerprint=fingerprint)


def load_given(given: BackboneBlock) -> GivenBackbone:
    """A given backbone, loaded once to know what it is."""
    facts = backbones.load(given.model, arch=given.arch, random_init=given.random_init).facts
    label = given.name or model_name(facts)
    return GivenBackbone(
        given=given, label=label, weights=facts.weights_hash, native=facts.input_size
    )


def require_distinct_labels(found: Iterable[SweepBackbone]) -> None:
    """Raises UsageError for two backbones of one name: their results would mix."""
    twice = [name for name, n in Counter(each.label for each in found).items() if n > 1]
    if twice:
        raise UsageError(
            f"two backbones of the sweep are called {', '.join(twice)}",
            fix="give each of `backbones` a name of its own, and leave no two equal recipes",
        )


def evaluation_parts(
    asked: EvaluationBlock, place: Workplace, report: Reporter
) -> list[dict[str, DatasetRecord]]:
    """The tasks of a block in parts, by data set and adaptation: complete id -> its images."""
    wanted = build_request(asked)
    targets = TargetSets(wanted, data.DataRoots.parse(place.roots), place.cache, report)
    parts: dict[tuple[str, str | None], dict[str, DatasetRecord]] = {}
    for task in wanted.tasks:
        parts.setdefault(part_key(task), {})[str(task)] = targets.record(task)
    return list(parts.values())


def part_key(task: TaskId) -> tuple[str, str | None]:
    return task.dataset, task.head
