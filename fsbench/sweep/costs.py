"""Estimate the seconds of the missing jobs of a plan from a few timed steps.

A training step is timed once for all recipes of equal compute; a forward pass is a third of it. An
affine episode is its support images, three passes each an epoch, and its queries. Not counted: what
a method adds to plain training (the search of NIO and GradInit), decoding images, linear heads,
probes, analyses, entries. Several jobs at once take less time.
"""

from dataclasses import replace

from fsbench.api.evaluate import seconds_per_image
from fsbench.api.options import SweepOptions
from fsbench.core import process
from fsbench.core.progress import WorkEstimate
from fsbench.core.specs import PROTOCOL_SIZE, EpisodicSpec
from fsbench.core.tasks import TaskId
from fsbench.sweep.backbones import SweepBackbone, TrainingJob, load_existing
from fsbench.sweep.evaluation import EvaluationJob
from fsbench.sweep.graph import SweepPlan
from fsbench.sweep.job import Job, read_source
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.training.cost import estimate_training

PASSES = 3
"""Cost of a training step in forward passes."""


class CostModel:
    """Estimates on this machine, each computed once."""

    def __init__(self, options: SweepOptions) -> None:
        self.options, self.device = options, process.resolve_device(options.device)
        self.runs: dict[str, WorkEstimate] = {}
        self.passes: dict[str, float] = {}
        self.extracted: set[tuple[str, str, int]] = set()

    def estimate(self, job: Job) -> float:
        """Return the seconds of a job."""
        if isinstance(job, TrainingJob):
            return self.training(job.recipe).seconds
        return self.evaluating(job) if isinstance(job, EvaluationJob) else 0.0

    def training(self, recipe: Recipe) -> WorkEstimate:
        """Estimate a whole run; recipes that differ in seed and methods cost the same."""
        plain = recipe if recipe.loader == "episodes" else registry.control_recipe(recipe)
        key = plain.replace({"seed": 0}).digest()
        if key not in self.runs:
            source = read_source(recipe, self.options)
            self.runs[key] = estimate_training(plain, source, self.device)
        return self.runs[key]

    def forward(self, backbone: SweepBackbone) -> float:
        """Return the seconds of one image at the backbone's training resolution."""
        if isinstance(backbone, TrainingJob):
            run = self.training(backbone.recipe)
            return run.seconds / (run.steps * backbone.recipe.batch_size * PASSES)
        if backbone.label not in self.passes:
            loaded = load_existing(backbone.model, self.device)
            seconds = seconds_per_image(loaded, backbone.sizes[0] or PROTOCOL_SIZE, self.device)
            self.passes[backbone.label] = seconds
        return self.passes[backbone.label]

    def evaluating(self, job: EvaluationJob) -> float:
        """Estimate features that no earlier job extracts, and affine tuning."""
        images = sum(self.images(job, task) for task in job.images)
        size = job.spec(next(iter(job.images))).image.input_size
        native = job.backbone.sizes[0] or PROTOCOL_SIZE
        return self.forward(job.backbone) * images * (size / native) ** 2

    def images(self, job: EvaluationJob, task: TaskId) -> float:
        """Return the forward passes (of one image) of a task."""
        spec, record = job.spec(task), job.images[task]
        if isinstance(spec, EpisodicSpec) and spec.adaptation == "affine":
            e, n = spec.episode, job.request.n_episodes
            steps = PASSES * spec.head.epochs * e.n_way * e.k_shot
            return n * (steps + e.n_way * e.n_query)
        key = (job.backbone.label, record.identity, spec.image.input_size)
        if key in self.extracted:
            return 0.0
        self.extracted.add(key)
        return float(sum(record.class_counts))


def estimate_costs(plan: SweepPlan, options: SweepOptions) -> SweepPlan:
    """Return the plan with the seconds of its missing jobs."""
    costs = CostModel(options)
    return replace(plan, seconds={job.key: round(costs.estimate(job)) for job in plan.missing})
