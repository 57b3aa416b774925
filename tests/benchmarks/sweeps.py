"""What a sweep takes before and between its jobs: to plan them, to find those done, to start them.

Backbones have 60 jobs, and every second one has all of its results. Not counted: weights and data
sets are read, which costs the same in any order of work, and the jobs themselves.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
from benchmarks.pairing import Use, use_of
from support import fakes
from support.jobs import Script
from support.sweep import make_options

from fsbench.api.options import ModelOptions, SweepOptions
from fsbench.core.records import EpisodeRecords
from fsbench.results.assembly import build_result
from fsbench.results.entry import write_entry
from fsbench.sweep import graph
from fsbench.sweep.backbones import GivenBackbone
from fsbench.sweep.evaluation import EvaluationJob
from fsbench.sweep.file import SweepFile
from fsbench.sweep.schedule import plan_sweep, run_jobs

TASKS = tuple(f"toy_{name}:5w1s" for name in ("photo", "rims", "scan", "tiles"))
HEADS, SEEDS = ("linear", "ridge", "centroid", "knn", "cosine"), range(3)
BACKBONE_JOBS = len(TASKS) * len(HEADS) * len(SEEDS)


def describe_sweep(names: list[str]) -> SweepFile:
    """Return a sweep of given backbones of these names."""
    models = [{"model": "fsbench/toy_resnet", "random_init": 0, "name": name} for name in names]
    blocks = [{"tasks": [*TASKS], "heads": [*HEADS], "seed": seed} for seed in SEEDS]
    return SweepFile.model_validate({"backbones": models, "evaluate": blocks})


def describe_backbone(model: ModelOptions, needs: object) -> GivenBackbone:
    """Return a backbone with other weights for every name, none of which are read."""
    title = model.name or ""
    return GivenBackbone(model=model, title=title, loaded=fakes.facts(title))


def write_results(names: list[str], options: SweepOptions) -> None:
    """Write all results of backbones of these names: equal outcomes, which nothing compares."""
    none, correct = np.zeros(600, np.bool_), np.arange(600 * 75).reshape(600, 5, 15) % 3 == 0
    records = EpisodeRecords(np.arange(600), correct, none, ~none)
    results = [
        build_result(fakes.facts(), images, spec, records, False, fakes.provenance())
        for job in graph.plan_jobs(describe_sweep(names[:1]), options).jobs.values()
        if isinstance(job, EvaluationJob)
        for images, spec in zip(job.tasks.images.values(), job.tasks.specs.values(), strict=True)
    ]
    for name in names:
        facts = fakes.facts(name)
        copies = [result.model_copy(update={"backbone": facts}) for result in results]
        folder = options.results / name / facts.identity[:12]
        write_entry(folder, [(result, records) for result in copies])


def use_jobs(jobs: int) -> Use:
    """Return what a sweep of so many jobs takes."""
    names = [f"network-{i:04}" for i in range(jobs // BACKBONE_JOBS)]
    file = describe_sweep(names)
    with TemporaryDirectory() as folder, patch.object(graph, "load_given", describe_backbone):
        options = make_options(Path(folder), jobs=8, progress=False)
        write_results(names[::2], options)
        return use_of(lambda: run_jobs(plan_sweep(file, options), options, Script()))
