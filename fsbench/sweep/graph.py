"""Build the jobs of a sweep file and their dependencies, backbone by backbone."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from typing import get_args

from fsbench import data
from fsbench.api.evaluate import TargetSets
from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import RESTARTING, DatasetRecord
from fsbench.results.names import model_name
from fsbench.sweep.analysis import analysis_jobs
from fsbench.sweep.evaluation import (
    EvaluationJob,
    GivenBackbone,
    SweepBackbone,
    TrainedBackbone,
    load_facts,
)
from fsbench.sweep.file import BackboneBlock, EvaluationBlock, RunsBlock, SweepFile
from fsbench.sweep.job import Job, Workplace
from fsbench.sweep.submission import SubmissionJob, format_entry_name
from fsbench.sweep.training import RoundZeroJob, TrainingJob
from pretrain import METHODS
from pretrain.recipes import plan, registry
from pretrain.recipes.recipe import Recipe, Scale, fit_round_steps
from pretrain.training import first_round

ALL = "all"
SCALES: tuple[str, ...] = get_args(Scale)


def expand_recipes(runs: RunsBlock) -> Iterator[Recipe]:
    """Yield the recipes of one block. Raise UsageError, UnknownName."""
    names = METHODS.names() if ALL in runs.methods else runs.methods or (None,)
    fields = recipe_overrides(runs)
    for seed, base, methods in product(runs.seeds, runs.recipes, names):
        recipe = derive_recipe(base, methods, fields | {"seed": seed})
        if runs.controls:
            yield from matched_controls(recipe)
        yield recipe


def recipe_overrides(runs: RunsBlock) -> dict[str, object]:
    """Return the fields that the block sets. Raise UsageError for a seed (use `seeds`)."""
    if "seed" in runs.set:
        raise UsageError("`set` has a seed", fix="write it as seeds: [0]")
    fixed = plan.scenario_fields(runs.scenario) if runs.scenario else {}
    return {**fixed, **runs.set}


def derive_recipe(base: str, methods: str | None, fields: dict[str, object]) -> Recipe:
    """Return the recipe of the scale, or the named one, with these methods if any."""
    if base not in SCALES:
        return registry.compose_methods(registry.load_recipe(base), methods, fields)
    if methods is None:
        raise UsageError(f"'{base}' is a scale", fix=f"give `methods`, or a recipe: {base}/normal")
    name = f"{base}/{methods}"
    if "+" not in methods:
        return registry.load_recipe(name).replace(fields)
    return registry.compose_methods(registry.load_recipe(f"{base}/normal"), methods, fields)


def matched_controls(recipe: Recipe) -> Iterator[Recipe]:
    """Yield plain training of equal steps and images: as in the recipe, and, if its rate restarts
    in every round, with one schedule over all rounds."""
    plain = registry.control_recipe(recipe)
    yield plain
    restarts = recipe.plan.total_rounds > 1 and recipe.schedule in RESTARTING
    if restarts and recipe.plan.stop_accuracy is None:
        yield plain.replace({"schedule": "single_cycle"})


@dataclass(frozen=True)
class JobGraph:
    """Jobs by key, each after the jobs it needs; needs: key -> keys."""

    jobs: dict[str, Job] = field(default_factory=dict)
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, job: Job, needs: Iterable[Job] = ()) -> None:
        """Add a job unless the graph has it."""
        if job.key not in self.jobs:
            self.jobs[job.key] = job
            self.needs[job.key] = tuple(need.key for need in needs)

    def needed_by(self, key: str) -> list[str]:
        return [other for other, needs in self.needs.items() if key in needs]


def build_graph(file: SweepFile, place: Workplace, report: Reporter = SILENT) -> JobGraph:
    """Build all jobs of the sweep; data sets and given backbones are read and checked.

    Raises UsageError, UnknownName, DataError, CheckpointError.
    """
    graph, named = JobGraph(), trained_backbones(file, place)
    needs = {need for block in file.evaluate for need in block.request().needs}
    existing = [load_given(block, frozenset(needs)) for block in file.backbones]
    all_backbones: list[SweepBackbone] = [*existing, *named]
    require_distinct_labels(all_backbones)
    blocks = [(block, evaluation_parts(block, place, report)) for block in file.evaluate]
    by_block = [
        analysis_jobs(block, select_backbones(all_backbones, block.only), place, report)
        for block in file.analyze
    ]
    of_entry: dict[str, dict[str, EvaluationJob]] = {}
    for backbone in all_backbones:
        parents = add_training(graph, backbone)
        entry = format_entry_name(file.submit, backbone) if file.submit else None
        evaluations = [
            EvaluationJob(
                backbone=backbone,
                tasks=tuple(images),
                images=tuple(images.values()),
                block=block,
                entry=entry,
            )
            for block, parts in blocks
            if select_backbones([backbone], block.only)
            for images in parts
        ]
        analyses = [jobs[backbone.label] for jobs in by_block if backbone.label in jobs]
        for job in (*evaluations, *analyses):
            graph.add(job, parents)
        if entry is not None:
            of_entry.setdefault(entry, {}).update({job.key: job for job in evaluations})
    for jobs_of_entry in of_entry.values():
        if file.submit and jobs_of_entry:
            evaluations = list(jobs_of_entry.values())
            graph.add(
                SubmissionJob(evaluations=tuple(evaluations), entries=file.submit), evaluations
            )
    return graph


def select_backbones(
    candidates: Iterable[SweepBackbone], patterns: tuple[str, ...]
) -> list[SweepBackbone]:
    """Return the backbones whose labels match one of the patterns."""
    return [b for b in candidates if any(fnmatchcase(b.label, pattern) for pattern in patterns)]


def add_training(graph: JobGraph, backbone: SweepBackbone) -> list[Job]:
    """Add the job that trains the backbone, if any, after the round 0 that it shares."""
    if not isinstance(backbone, TrainedBackbone):
        return []
    trunk = backbone.training.trunk
    if trunk:
        graph.add(trunk)
    graph.add(backbone.training, [trunk] if trunk else [])
    return [backbone.training]


def trained_backbones(file: SweepFile, place: Workplace) -> list[TrainedBackbone]:
    """Return the runs of the file, each once; equal first rounds become one shared round 0."""
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
    """Return the round 0 that a run of the recipe may start from."""
    if not first_round.can_share_first_round(recipe):
        return None
    return RoundZeroJob(recipe=first_round.shared_recipe(recipe), source_fingerprint=fingerprint)


def load_given(block: BackboneBlock, needs: frozenset[str] = frozenset()) -> GivenBackbone:
    """Load an existing backbone once for its facts. Raise UsageError where one of `needs` lacks."""
    facts = load_facts(block, needs)
    return GivenBackbone(
        block=block,
        label=block.name or model_name(facts),
        identity=facts.identity,
        native=facts.input_size,
        evaluation_size=facts.evaluation_size,
    )


def require_distinct_labels(all_backbones: Iterable[SweepBackbone]) -> None:
    """Raise UsageError for two backbones of one name: their results would mix."""
    counts = Counter(backbone.label for backbone in all_backbones)
    twice = [label for label, n in counts.items() if n > 1]
    if twice:
        raise UsageError(
            f"two backbones of the sweep are called {', '.join(twice)}",
            fix="give each of `backbones` a name of its own, and leave no two equal recipes",
        )


def evaluation_parts(
    block: EvaluationBlock, place: Workplace, report: Reporter
) -> list[dict[str, DatasetRecord]]:
    """Return the tasks of a block, grouped by data set and head: complete id -> image record."""
    request = block.request()
    targets = TargetSets(request, data.DataRoots.parse(place.roots), place.cache, report)
    parts: dict[tuple[str, str | None], dict[str, DatasetRecord]] = {}
    for task in request.tasks:
        parts.setdefault((task.dataset, task.head), {})[str(task)] = targets.record(task)
    return list(parts.values())


@dataclass(frozen=True)
class SweepPlan:
    """Jobs of a sweep. done: key -> why it needs no work; all others are missing. seconds:
    estimates of the missing jobs, if made.
    """

    graph: JobGraph
    done: Mapping[str, str]
    seconds: Mapping[str, int] = field(default_factory=dict)

    @property
    def missing(self) -> list[Job]:
        return [job for key, job in self.graph.jobs.items() if key not in self.done]


def plan_jobs(graph: JobGraph, place: Workplace) -> SweepPlan:
    """Compute which jobs are done from folders and board, from the last job to the first."""
    done: dict[str, str] = {}
    for key, job in reversed(graph.jobs.items()):
        reason = explain_done(job, graph, place, done)
        if reason:
            done[key] = reason
    return SweepPlan(graph, done)


def explain_done(job: Job, graph: JobGraph, place: Workplace, later: Mapping[str, str]) -> str:
    """Return why a job needs no work, or ''; later: the same of the jobs that need it."""
    users = graph.needed_by(job.key)
    if isinstance(job, EvaluationJob) and job.is_on_board(place):
        return "on the board"
    if job.done(place):
        return "on the board" if isinstance(job, SubmissionJob) else "done"
    if isinstance(job, TrainingJob) and users and all(user in later for user in users):
        return "not needed any more"
    if isinstance(job, RoundZeroJob):
        runs = [graph.jobs[user] for user in users]
        if all(r.key in later or (isinstance(r, TrainingJob) and r.started(place)) for r in runs):
            return "not needed any more"
    return ""
