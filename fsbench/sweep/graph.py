"""Build the jobs of a sweep file and their dependencies, backbone by backbone."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from typing import Any, get_args

from fsbench.api.analyze import choose_analyses
from fsbench.api.options import ModelOptions, SweepOptions
from fsbench.api.pretrain import resolve_recipe
from fsbench.api.request import build_request, parse_models
from fsbench.core.errors import UsageError
from fsbench.core.options import split_values
from fsbench.core.progress import SILENT, Reporter
from fsbench.results.names import model_name, safe_name
from fsbench.sweep.analysis import choose_applicable
from fsbench.sweep.backbones import GivenBackbone, SweepBackbone, TrainingJob, name_entry
from fsbench.sweep.evaluation import EvaluationJob, FeaturesJob, group_tasks, index_results
from fsbench.sweep.file import EntriesBlock, GpuShares, RunsBlock, SweepFile, select
from fsbench.sweep.job import Job, read_outline
from fsbench.sweep.submission import SubmissionJob
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe, Scale, fit_round_steps


def expand_recipes(runs: RunsBlock, more_methods: Sequence[str] = ()) -> Iterator[Recipe]:
    """Yield the recipes of one block. Raise UsageError, UnknownName.

    more_methods: those of the command line, which may name code.
    """
    of_file = METHODS.names() if "all" in runs.methods else runs.methods or (None,)
    names, scales = [*of_file, *map(registry.load_code, more_methods)], get_args(Scale)
    for seed, base, methods in product(runs.seeds, runs.recipes, names):
        name, method = f"{base}/{methods}", None
        if name not in registry.recipe_names():
            name, method = f"{base}/normal" if base in scales and methods else base, methods
        options: dict[str, Any] = {"scenario": runs.scenario, "seed": seed, "overrides": runs.set}
        recipe = resolve_recipe(name, method=method, **options)
        if runs.controls:
            yield from matched_controls(recipe)
        yield recipe


def matched_controls(recipe: Recipe) -> Iterator[Recipe]:
    """Yield plain training of equal steps and images: as in the recipe, and, if its rate restarts
    in every round, with one schedule over all rounds."""
    plain = registry.control_recipe(recipe)
    yield plain
    restarts = recipe.plan.total_rounds > 1 and recipe.schedule in ("cosine", "step", "plateau")
    if restarts and recipe.plan.stop_accuracy is None:
        yield plain.replace({"schedule": "single_cycle"})


@dataclass(frozen=True)
class SweepPlan:
    """Jobs by key, each after the jobs it needs.

    needs: key -> keys; done: key -> why it needs no work, all others are missing; seconds:
    estimates of the missing jobs, if made; gpus: that jobs share, and how many fit on each.
    """

    jobs: dict[str, Job] = field(default_factory=dict)
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    done: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, int] = field(default_factory=dict)
    shares: GpuShares = field(default_factory=GpuShares)
    gpus: Mapping[str, float] = field(default_factory=dict)

    def add(self, job: Job, needs: Iterable[Job] = ()) -> None:
        """Add a job unless the plan has it."""
        if job.key not in self.jobs:
            self.jobs[job.key] = job
            self.needs[job.key] = tuple(need.key for need in needs)

    @property
    def missing(self) -> list[Job]:
        return [job for key, job in self.jobs.items() if key not in self.done]

    def share_of(self, job: Job) -> float:
        """Return the GPUs that a job takes of those there are."""
        return float(getattr(self.shares, job.share)) if self.gpus and job.share else 0

    def options_of(self, job: Job, options: SweepOptions, gpus: Sequence[str] = ()) -> SweepOptions:
        """Return the options of a job, where jobs share GPUs with its device and those it sees."""
        if not self.gpus:
            return options
        share, features = self.share_of(job), self.shares.features > 0
        chosen = replace(options, device="cuda" if share else "cpu", gpus=share)
        if job.share == "heads" and features != (share > 0):
            chosen = replace(chosen, features_device="cuda" if features else "cpu")
        return replace(chosen, visible=",".join(gpus))

    def wall_seconds(self, jobs: int) -> float:
        """Return the estimated time of all missing jobs, so many at once on the GPUs."""
        on_gpus = sum(self.share_of(self.jobs[key]) * s for key, s in self.seconds.items())
        return max(sum(self.seconds.values()) / jobs, on_gpus / (sum(self.gpus.values()) or 1))


def plan_jobs(file: SweepFile, options: SweepOptions, report: Reporter = SILENT) -> SweepPlan:
    """Build all jobs of the sweep; data sets and given backbones are read and checked.

    Raises UsageError, UnknownName, DataError, CheckpointError.
    """
    plan, requests = SweepPlan(), [build_request(block) for block in file.evaluate]
    needs = frozenset(need for request in requests for need in request.needs)
    existing = [
        load_given(replace(model, model=(ref,)), needs)
        for model in file.backbones
        for ref in split_values(model.model)
    ]
    all_backbones: list[SweepBackbone] = [*existing, *expand_runs(file, options)]
    names = Counter(backbone.title for backbone in all_backbones)
    if twice := [name for name, n in names.items() if n > 1]:  # their results would mix
        raise UsageError(
            f"two backbones of the sweep are called {', '.join(twice)}",
            fix="give each of `backbones` a name of its own, and leave no two equal recipes",
        )
    all_sizes = {backbone.sizes for backbone in all_backbones}
    groups = [group_tasks(request, all_sizes, options, report) for request in requests]
    choices = [choose_analyses(block) for block in file.analyze]
    of_entry: dict[str, tuple[EntriesBlock, dict[str, EvaluationJob]]] = {}
    for backbone in all_backbones:
        runs = [backbone] if isinstance(backbone, TrainingJob) else []
        evaluations = [
            EvaluationJob(backbone=backbone, tasks=tasks, share=tasks.share)
            for by_sizes in select(backbone.title, file.evaluate, groups)
            for tasks in by_sizes[backbone.sizes]
        ]
        analyses = [
            job
            for choice in select(backbone.title, file.analyze, choices)
            for job in choose_applicable(choice, backbone, report)
        ]
        for run in runs:
            plan.add(run)
        for evaluation in evaluations:
            for features in (extractions := [*evaluation.extractions()]):
                plan.add(features, runs)
            plan.add(evaluation, [*runs, *extractions])
        for analysis in analyses:
            plan.add(analysis, runs)
        blocks = select(backbone.title, file.submit, file.submit)
        if blocks and evaluations:
            _, by_key = of_entry.setdefault(name_entry(backbone), (blocks[0], {}))
            by_key.update({job.key: job for job in evaluations})
    for name, (entries, by_key) in of_entry.items():
        seeds = tuple(by_key.values())
        plan.add(SubmissionJob(name=name, evaluations=seeds, entries=entries), seeds)
    return plan


def expand_runs(file: SweepFile, options: SweepOptions) -> list[TrainingJob]:
    """Return the runs of the file, each once."""
    runs: dict[str, TrainingJob] = {}
    for block in file.pretrain:
        for recipe in expand_recipes(block, options.method):
            fitted = fit_round_steps(recipe, read_outline(recipe, options))
            runs.setdefault(fitted.digest(), TrainingJob(recipe=fitted))
    return list(runs.values())


@cache
def load_given(model: ModelOptions, needs: frozenset[str] = frozenset()) -> GivenBackbone:
    """Load a backbone for its facts, once per process. Raise UsageError if one of `needs` lacks."""
    (parsed,) = parse_models(model)
    facts = parsed.load("cpu", needs=needs).facts
    title = safe_name(model.name) if model.name else model_name(facts)
    return GivenBackbone(model=model, title=title, loaded=facts)


def find_done(plan: SweepPlan, options: SweepOptions) -> SweepPlan:
    """Compute which jobs are done from folders and board, from the last job to the first."""
    index_results.cache_clear()  # either may have changed
    done, is_needed = dict[str, str](), dict[str, bool]()
    for key, job in reversed(plan.jobs.items()):
        if job.done(options):
            done[key] = "on the board" if isinstance(job, SubmissionJob) else "done"
        elif isinstance(job, TrainingJob | FeaturesJob) and is_needed.get(key) is False:
            done[key] = "not needed any more"
        for need in plan.needs[key]:
            is_needed[need] = key not in done or is_needed.get(need, False)
    return replace(plan, done=done)
