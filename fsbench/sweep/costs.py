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
from pretrain.recipes import registry
from pretrain.training.cost import FORWARD_SHARE, estimate_training


@cache
def time_pass(model: ModelOptions, size: int, device: str) -> float:
    (parsed,) = parse_models(model)
    return seconds_per_image(parsed.load(device), size, device)


class CostModel:
    """Estimates of jobs on one device of this machine, each computed once."""

    def __init__(self, options: SweepOptions) -> None:
        self.options, self.device = options, process.resolve_device(options.device)
        self.runs: dict[str, WorkEstimate] = {}
        self.extracted: set[tuple[str, str, int]] = set()

    def estimate(self, job: Job) -> float:
        """Return the seconds of a training, or of affine tuning and features not yet extracted."""
        if isinstance(job, TrainingJob):
            return self.train(job).seconds
        if not isinstance(job, EvaluationJob | FeaturesJob):
            return 0.0
        passes = sum(self.count_passes(job, task) for task in job.tasks.images)
        size = next(iter(job.tasks.specs.values())).image.input_size
        native = job.backbone.sizes[0] or size
        return self.forward(job.backbone, native) * passes * (size / native) ** 2

    def train(self, run: TrainingJob) -> WorkEstimate:
        """Estimate a whole run; recipes that differ in seed and methods cost the same."""
        if run.key not in self.runs:  # every evaluation of the run asks
            recipe = run.recipe
            plain = recipe if recipe.loader == "episodes" else registry.control_recipe(recipe)
            key = plain.replace({"seed": 0}).digest()
            if key not in self.runs:
                outline = read_outline(recipe, self.options)
                self.runs[key] = estimate_training(plain, outline, self.device)
            self.runs[run.key] = self.runs[key]
        return self.runs[run.key]

    def forward(self, backbone: SweepBackbone, size: int) -> float:
        """Return the seconds of one image of this side (px); of a run at its own resolution."""
        if isinstance(backbone, TrainingJob):
            run = self.train(backbone)
            return run.seconds * FORWARD_SHARE / (run.steps * backbone.recipe.batch_size)
        return time_pass(backbone.model, size, self.device)

    def count_passes(self, job: EvaluationJob | FeaturesJob, task: TaskId) -> float:
        """Return the forward passes (of one image) of a task."""
        spec, record = job.tasks.specs[task], job.tasks.images[task]
        if isinstance(spec, EpisodicSpec) and spec.adaptation == "affine":
            e, n = spec.episode, job.tasks.request.n_episodes
            steps = spec.head.epochs * e.n_way * e.k_shot / FORWARD_SHARE
            return n * (steps + e.n_way * e.n_query)
        key = (job.backbone.title, record.identity, spec.image.input_size)
        is_new = key not in self.extracted
        self.extracted.add(key)
        return float(sum(record.class_counts)) if is_new else 0.0


def estimate_costs(plan: SweepPlan, options: SweepOptions) -> SweepPlan:
    """Return the plan with the seconds of its missing jobs, each on the device that it gets.

    No step is timed where the jobs run on other machines.
    """
    if options.engine != "processes":
        return plan
    devices = {job.key: plan.options_of(job, options).device for job in plan.missing}
    costs = {device: CostModel(replace(options, device=device)) for device in {*devices.values()}}
    seconds = {job.key: round(costs[devices[job.key]].estimate(job)) for job in plan.missing}
    return replace(plan, seconds=seconds)
