"""Estimate FLOPs and seconds of the missing jobs of a plan from a few timed steps.

A training step is timed and counted once for all recipes of equal compute; a forward pass is a
third of it. An affine episode is its support images, three passes each an epoch, and its queries.
Not counted: what a method adds to plain training (the search of NIO and GradInit), decoding images,
linear heads, probes, analyses, entries. Several jobs at once take less time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch

from fsbench.api.evaluate import seconds_per_image
from fsbench.core import process
from fsbench.core.progress import SILENT, WorkEstimate, format_duration, require_consent
from fsbench.core.specs import PROTOCOL_SIZE, EpisodicSpec
from fsbench.core.tasks import TaskId
from fsbench.sweep.backbones import SweepBackbone, TrainingJob, models_of
from fsbench.sweep.evaluation import EvaluationJob
from fsbench.sweep.file import JobKind
from fsbench.sweep.graph import SweepPlan
from fsbench.sweep.job import Job, Workplace
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe
from pretrain.training.cost import FlopCounter, estimate_training

PASSES = 3
"""Cost of a training step in forward passes."""


class JobCost(NamedTuple):
    """Estimated cost of a job, zero if it is done. key: first 16 digits."""

    key: str
    kind: JobKind
    title: str
    state: str
    flops: float
    seconds: float


@dataclass
class CostModel:
    """Estimates on this machine, each computed once."""

    place: Workplace
    runs: dict[str, WorkEstimate] = field(default_factory=dict)
    passes: dict[str, WorkEstimate] = field(default_factory=dict)
    extracted: set[tuple[str, str, int]] = field(default_factory=set)

    def estimate(self, job: Job) -> WorkEstimate:
        if isinstance(job, TrainingJob):
            return self.training(job.recipe)
        return self.evaluating(job) if isinstance(job, EvaluationJob) else WorkEstimate()

    def training(self, recipe: Recipe) -> WorkEstimate:
        """Estimate a whole run; recipes that differ in seed and methods cost the same."""
        plain = recipe if recipe.loader == "episodes" else registry.control_recipe(recipe)
        key = plain.replace({"seed": 0}).digest()
        if key not in self.runs:
            device = process.resolve_device(self.place.device)
            self.runs[key] = estimate_training(plain, self.place.source(recipe), device)
        return self.runs[key]

    def forward(self, backbone: SweepBackbone) -> WorkEstimate:
        """Estimate one image at the backbone's training resolution."""
        if backbone.identity not in self.passes:
            self.passes[backbone.identity] = self._forward(backbone)
        return self.passes[backbone.identity]

    def _forward(self, backbone: SweepBackbone) -> WorkEstimate:
        if isinstance(backbone, TrainingJob):
            run = self.training(backbone.recipe)
            images = run.steps * backbone.recipe.batch_size * PASSES
            return WorkEstimate(seconds=run.seconds / images, flops=run.flops / images)
        block, device = backbone.block, process.resolve_device(self.place.device)
        loaded = models_of(block).load(0, device, SILENT)
        side = backbone.native or PROTOCOL_SIZE
        pixels = torch.zeros((2, 3, side, side), dtype=torch.uint8)
        with torch.no_grad(), FlopCounter() as counter:
            loaded.features(pixels.to(device))
        seconds = seconds_per_image(loaded, side, device)
        return WorkEstimate(seconds=seconds, flops=counter.flops / 2)

    def evaluating(self, job: EvaluationJob) -> WorkEstimate:
        """Estimate features that no earlier job extracts, and affine tuning."""
        images = sum(self.images(job, task) for task in job.parsed)
        size = job.spec(job.parsed[0]).image.input_size
        native = job.backbone.native or PROTOCOL_SIZE
        return self.forward(job.backbone).times(images * (size / native) ** 2)

    def images(self, job: EvaluationJob, task: TaskId) -> float:
        """Return the forward passes (of one image) of a task."""
        spec, record = job.spec(task), job.images[job.parsed.index(task)]
        if isinstance(spec, EpisodicSpec) and spec.adaptation == "affine":
            e, n = spec.episode, job.request.n_episodes
            steps = PASSES * spec.head.epochs * e.n_way * e.k_shot
            return n * (steps + e.n_way * e.n_query)
        key = (job.backbone.identity, record.identity, spec.image.input_size)
        if key in self.extracted:
            return 0.0
        self.extracted.add(key)
        return float(sum(record.class_counts))


def estimate_jobs(plan: SweepPlan, place: Workplace) -> list[JobCost]:
    costs = CostModel(place)
    rows = []
    for key, job in plan.graph.jobs.items():
        cost = WorkEstimate() if key in plan.done else costs.estimate(job)
        state = plan.done.get(key, "missing")
        rows.append(JobCost(key[:16], job.KIND, job.title, state, cost.flops, cost.seconds))
    return rows


def announce_cost(
    plan: SweepPlan, place: Workplace, jobs: int, yes: bool, log: Callable[[str], None]
) -> SweepPlan:
    """Log what a sweep costs and return the plan with it; refuse over an hour unless `yes`."""
    rows = estimate_jobs(plan, place)
    work = WorkEstimate(f"{jobs} at once", sum(row.seconds for row in rows) / jobs)
    require_consent(summarize_costs(rows), [work], yes, log, "use --dry-run to see every job")
    expected = zip(plan.graph.jobs, rows, strict=True)
    return replace(plan, seconds={key: round(row.seconds) for key, row in expected})


def summarize_costs(rows: list[JobCost]) -> str:
    """Return e.g. '8 of 20 jobs are done; 12 to do: 3.1e+12 FLOPs, about 40 s'."""
    todo = [row for row in rows if row.state == "missing"]
    total = sum(row.seconds for row in todo)
    done = f"{len(rows) - len(todo)} of {len(rows)} jobs are done"
    flops = format_flops(sum(row.flops for row in todo)) or 0
    cost = f"{flops} FLOPs, about {format_duration(total)}"
    return f"{done}; {len(todo)} to do: {cost} one after the other"


def format_flops(value: float) -> str:
    return f"{value:.2g}" if value else ""
