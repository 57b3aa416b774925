"""What a sweep may do to an entry that is on the board already."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import fakes
from support import methods as fakes_methods
from support.sweep import ENTRY, make_options, read, sweep

from fsbench.api.options import SweepOptions
from fsbench.backbones.base import feature_spec
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import BackboneFacts
from fsbench.results.verification import read_loaded
from fsbench.sweep.backbones import TrainingJob
from fsbench.sweep.graph import plan_jobs
from fsbench.sweep.job import read_source
from fsbench.sweep.submission import SubmissionJob, keep_results


def entry(root: Path) -> SubmissionJob:
    """Of a run that is not trained yet."""
    plan = plan_jobs(read(sweep(root, methods=("llf",), submit=[ENTRY])), make_options(root))
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


@pytest.mark.parametrize("kind", ["ours", "of another recipe", "of another source"])
def test_an_entry_with_results_that_the_sweep_lacks_is_not_replaced(
    kind: str, tmp_path: Path
) -> None:
    job, here = entry(tmp_path), make_options(tmp_path)
    seeds, facts = [one.backbone for one in job.evaluations], of(job, here, kind)
    assert not keep_results(tmp_path / "none", seeds, here)
    fakes.write(tmp_path / "board", backbone=facts)
    (folder,) = (tmp_path / "board").glob("*/*")
    if kind == "ours":
        assert keep_results(folder, seeds, here)
        few = here.results / f"{job.name}-s0" / facts.identity[:12]
        for index, n in [(range(5), 40), (range(60), 60)]:  # the larger result is kept
            fakes.write(tmp_path / "few", backbone=facts, index=index)
            shutil.copytree(next(tmp_path.glob("few/*/*")), few, dirs_exist_ok=True)
            assert keep_results(folder, seeds, here)
            assert [one.result.score.n for one in read_loaded(few)] == [n]
        return
    with pytest.raises(ValidationFailed, match="results of weights") as error:
        keep_results(folder, seeds, here)
    assert facts.identity[:12] in str(error.value)
    assert "delete the entry" in error.value.fix


def test_results_of_a_run_are_those_of_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other machines make other weights; those of a deleted run are any. Features are plain."""
    job, here = entry(tmp_path), make_options(tmp_path)
    backbone, facts = job.evaluations[0].backbone, of(job, here, "ours")
    assert backbone.has_facts(facts, here)
    low = facts.model_copy(update={"feature_spec": feature_spec(dtype="bf16")})
    assert not backbone.has_facts(low, here)
    for weights, is_its in [(facts.weights_hash, True), ("0" * 64, False)]:
        record = SimpleNamespace(weights_hash=weights)
        monkeypatch.setattr(TrainingJob, "record", lambda run, options, it=record: it)
        assert backbone.has_facts(facts, here) is is_its
