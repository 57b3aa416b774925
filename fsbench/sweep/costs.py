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


def estimate_costs(plan: SweepPlan, options: SweepOptions) -> SweepPlan:
    """Return the plan with the seconds of its missing jobs, each on the device that it gets.

    No step is timed where the jobs run on other machines.
    """
    if options.engine != "processes":
        return plan
    seconds = dict[str, int]()
    for job in plan.missing:
        name = options.device if plan.share_of(job) or not plan.gpus else "cpu"
        on_device = replace(options, device=process.resolve_device(name))
        seconds[job.key] = round(estimate_job(job, on_device))
    process.free_gpu_memory()
    return replace(plan, seconds=seconds)


def estimate_job(job: Job, options: SweepOptions) -> float:
    """Return the seconds of a training, of features or of affine tuning; 0 for other jobs."""
    if isinstance(job, TrainingJob):
        return time_training(job.plain, options).seconds
    if not isinstance(job, EvaluationJob | FeaturesJob) or job.share == "heads":
        return 0.0
    passes = sum(count_passes(job, task) for task in job.tasks.images)
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


def count_passes(job: EvaluationJob | FeaturesJob, task: TaskId) -> float:
    """Return the forward passes (of one image) of affine tuning, else one of every image."""
    spec, n_episodes = job.tasks.specs[task], job.tasks.request.n_episodes
    if isinstance(spec, EpisodicSpec) and spec.adaptation == "affine":
        e = spec.episode
        steps = spec.head.epochs * e.n_way * e.k_shot / FORWARD_SHARE
        return n_episodes * (steps + e.n_way * e.n_query)
    return float(sum(job.tasks.images[task].class_counts))
