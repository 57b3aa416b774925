"""What a sweep may do to an entry that is on the board already."""

from pathlib import Path

import pytest
from support import fakes
from support import methods as fakes_methods
from support.sweep import ENTRY, make_options, read, sweep

from fsbench.api.options import SweepOptions
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import BackboneFacts
from fsbench.sweep.backbones import TrainingJob
from fsbench.sweep.graph import plan_jobs
from fsbench.sweep.job import read_source
from fsbench.sweep.submission import SubmissionJob, keep_results


def entry(root: Path) -> SubmissionJob:
    """Of a run that is not trained yet."""
    plan = plan_jobs(read(sweep(root, methods=("llf",), submit=ENTRY)), make_options(root))
    (entry_job,) = (job for job in plan.jobs.values() if isinstance(job, SubmissionJob))
    return entry_job


def of(job: SubmissionJob, options: SweepOptions, kind: str) -> BackboneFacts:
    """Facts of a network that the job's recipe, or a recipe or source nearby, gave somewhere."""
    backbone = job.evaluations[0].backbone
    assert isinstance(backbone, TrainingJob)
    seed = 1 if kind == "of another recipe" else 0
    training = fakes_methods.training().model_copy(
        update={"recipe": backbone.recipe.replace({"seed": seed}).model_dump(mode="json")}
    )
    if kind != "of another source":
        source = {"source_fingerprint": read_source(backbone.recipe, options).fingerprint}
        training = training.model_copy(update=source)
    digest = training.recipe_digest
    return fakes.facts(recipe_digest=digest, steps=training.steps, training=training.model_dump())


OTHERS = ["of another recipe", "of another source", "of no entry"]


@pytest.mark.parametrize("kind", ["ours", "not trained here", *OTHERS])
def test_results_of_other_weights_of_the_same_recipe_are_not_replaced(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, here = entry(tmp_path), make_options(tmp_path)
    backbone = job.evaluations[0].backbone
    facts = of(job, here, kind)
    fakes.write(tmp_path / "board", backbone=facts)
    (folder,) = (tmp_path / "board").glob("*/*")
    if kind == "of no entry":
        folder = tmp_path / "none"
    trained = None if kind == "not trained here" else fakes.facts("other")
    monkeypatch.setattr(TrainingJob, "facts", lambda run, options: trained)
    if kind != "ours":
        assert keep_results(folder, backbone, here) is (kind not in OTHERS)
        copies = here.results.glob(f"{job.name}-s0/{facts.identity[:12]}/entry.json")
        assert len(list(copies)) == (kind not in OTHERS)
        return
    with pytest.raises(ValidationFailed, match="results of other weights") as error:
        keep_results(folder, backbone, here)
    assert facts.weights_hash[:12] in str(error.value)
    assert "delete the entry" in error.value.fix
