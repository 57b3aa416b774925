"""What a sweep may do to an entry that is on the board already."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from support import fakes
from support import methods as fakes_methods
from support.sweep import ENTRY, make_options, read, sweep

from fsbench.api.options import SweepOptions
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import BackboneFacts
from fsbench.sweep import submission
from fsbench.sweep.backbones import TrainingJob
from fsbench.sweep.graph import plan_jobs
from fsbench.sweep.job import read_source
from fsbench.sweep.submission import SubmissionJob, is_entry_of


def entry(root: Path) -> SubmissionJob:
    """Of a run that is not trained yet."""
    plan = plan_jobs(read(sweep(root, methods=("llf",), submit=ENTRY)), make_options(root))
    (entry_job,) = (job for job in plan.jobs.values() if isinstance(job, SubmissionJob))
    return entry_job


def of(job: SubmissionJob, options: SweepOptions) -> BackboneFacts:
    """Facts of a network that the job's recipe gave somewhere."""
    (backbone,) = job.backbones
    assert isinstance(backbone, TrainingJob)
    source = {"source_fingerprint": read_source(backbone.recipe, options).fingerprint}
    training = fakes_methods.training().model_copy(update=source)
    changes = {"training": training, "recipe_digest": backbone.recipe.digest()}
    return fakes.facts().model_copy(update=changes)


OTHERS = ["of another recipe", "of another source", "of another name"]


@pytest.mark.parametrize("kind", ["ours", "not trained here", *OTHERS])
def test_results_of_other_weights_of_the_same_recipe_are_not_replaced(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, here = entry(tmp_path), make_options(tmp_path, board=tmp_path / "board")
    facts = of(job, here)
    if kind == "of another recipe":
        facts = facts.model_copy(update={"recipe_digest": "0" * 64})
    if kind == "of another source":
        facts = facts.model_copy(update={"training": fakes_methods.training()})
    name = "another" if kind == "of another name" else job.name
    of_name = SimpleNamespace(file=SimpleNamespace(models=(facts,)))
    board = SimpleNamespace(names=lambda: [name], entry=lambda _: of_name)
    monkeypatch.setattr(submission.Board, "open", lambda folder, new: board)
    trained = None if kind == "not trained here" else fakes.facts("other")
    monkeypatch.setattr(TrainingJob, "facts", lambda run, options: trained)
    if kind != "ours":
        assert is_entry_of(job.name, job.backbones[0], here) is (kind not in OTHERS)
        return
    with pytest.raises(ValidationFailed, match="results of other weights") as error:
        is_entry_of(job.name, job.backbones[0], here)
    assert facts.weights_hash[:12] in str(error.value)
    assert "delete the entry" in error.value.fix
