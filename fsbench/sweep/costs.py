"""Estimate the seconds of the missing jobs of a plan from a few timed steps.

A training step is timed once for all recipes of equal compute; a forward pass is a third of it. An
affine episode is its support images, three passes each an epoch, and its queries. Not counted: what
a method adds to plain training, decoding images, linear heads, probes, analyses, entries.
"""

from dataclasses import replace
from functools import cache

from fsbench.api.evaluate import seconds_per_image
from fsbench.api.options import ModelOptions, SweepOptions
from fsbench.api.request import parse_models
from fsbench.core import process
from fsbench.core.progress import WorkEstimate
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import TaskId
from fsbench.sweep.backbones import SweepBackbone, TrainingJob
from fsbench.sweep.evaluation import EvaluationJob, FeaturesJob
from fsbench.sweep.graph import SweepPlan
from fsbench.sweep.job import Job, read_outline
from pretrain.recipes.recipe import Recipe
from pretrain.training.cost import FORWARD_SHARE, estimate_training

Features = tuple[str, str, int]
"""Title of a backbone, identity of images and their size (px)."""


def estimate_costs(plan: SweepPlan, options: SweepOptions) -> SweepPlan:
    """Return the plan with the seconds of its missing jobs, each on the device that it gets.

    No step is timed where the jobs run on other machines.
    """
    if options.engine != "processes":
        return plan
    seconds, extracted = dict[str, int](), set[Features]()
    for job in plan.missing:
        name = options.device if plan.share_of(job) or not plan.gpus else "cpu"
        on_device = replace(options, device=process.resolve_device(name))
        seconds[job.key] = round(estimate_job(job, on_device, extracted))
    process.free_gpu_memory()
    return replace(plan, seconds=seconds)


def estimate_job(job: Job, options: SweepOptions, extracted: set[Features]) -> float:
    """Return the seconds of a training, or of affine tuning and of features not yet `extracted`."""
    if isinstance(job, TrainingJob):
        return time_training(job.plain, options).seconds
    if not isinstance(job, EvaluationJob | FeaturesJob):
        return 0.0
    passes = sum(count_passes(job, task, extracted) for task in job.tasks.images)
    if not passes:
        return 0.0
    size = next(iter(job.tasks.specs.values())).image.input_size
    native = job.backbone.sizes[0] or size
    return time_pass(job.backbone, native, options) * passes * (size / native) ** 2


@cache
def time_training(plain: Recipe, options: SweepOptions) -> WorkEstimate:
    return estimate_training(plain, read_outline(plain, options), options.device)


def time_pass(backbone: SweepBackbone, size: int, options: SweepOptions) -> float:
    """Return the seconds of one image of this side (px); of a run at its own resolution."""
    if isinstance(backbone, TrainingJob):
        run = time_training(backbone.plain, options)
        return run.seconds * FORWARD_SHARE / (run.steps * backbone.recipe.batch_size)
    return time_model(backbone.model, size, options.device)


@cache
def time_model(model: ModelOptions, size: int, device: str) -> float:
    (parsed,) = parse_models(model)
    return seconds_per_image(parsed.load(device), size, device)


def count_passes(job: EvaluationJob | FeaturesJob, task: TaskId, extracted: set[Features]) -> float:
    """Return the forward passes (of one image) of a task, whose features are `extracted` then."""
    spec, record = job.tasks.specs[task], job.tasks.images[task]
    if isinstance(spec, EpisodicSpec) and spec.adaptation == "affine":
        e, n = spec.episode, job.tasks.request.n_episodes
        steps = spec.head.epochs * e.n_way * e.k_shot / FORWARD_SHARE
        return n * (steps + e.n_way * e.n_query)
    features = job.backbone.title, record.identity, spec.image.input_size
    if features in extracted:
        return 0.0
    extracted.add(features)
    return float(sum(record.class_counts))
