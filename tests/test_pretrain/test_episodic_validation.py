"""What a meta-learner's run says of itself, and under which name."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
from support.episodic import Prepared
from support.pretrain import equal, lines, source, tiny

from fsbench import backbones
from fsbench.data.episodes import EpisodeSampler
from pretrain.meta.learner import TaskImages
from pretrain.training.loop import train_recipe

NORMS = ("running", "batch")


def test_it_is_the_mean_over_the_queries_of_frozen_tasks_of_the_validation_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Prepared(tmp_path, "maml", "maml.val_episodes=3", "maml.queries=2", "batch_size=6")
    seen: list[TaskImages] = []

    def query_logits(self: object, ctx: object, task: TaskImages) -> torch.Tensor:
        """Right for class 0 of every task, and for both in the first one."""
        right = torch.nn.functional.one_hot(task.query_labels, 2).float()
        seen.append(task)
        return right if len(seen) == 1 else torch.tensor([[1.0, 0.0]]).expand(4, 2)

    monkeypatch.setattr(type(run.learner), "query_logits", query_logits)
    assert run.made.validation.measure(run.ctx) == pytest.approx((1 + 0.5 + 0.5) / 3)
    val = source().val
    by_class = {c: (val.labels == c).nonzero()[0] for c in range(4)}
    drawn = EpisodeSampler(run.learner.spec(0), "tiny/val", dict.fromkeys(range(4), 3))
    for i, task in enumerate(seen):
        support, query = drawn.episode(i).images(by_class)
        normalise = run.made.validation.normalise
        pixels = [torch.from_numpy(val.images[found.ravel()]) for found in (support, query)]
        assert torch.equal(task.support, normalise(pixels[0]))
        assert torch.equal(task.query, normalise(pixels[1]))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["maml", "metasgd", "protonet"])
def test_it_leaves_no_trace(name: str, norm: str, tmp_path: Path) -> None:
    run = Prepared(tmp_path, name, f"{name}.val_norm={norm}")
    model = run.ctx.model
    before = copy.deepcopy(model.state_dict())
    modes = [module.training for module in model.modules()]
    found = run.made.validation.measure(run.ctx)
    assert 0 <= found <= 1
    assert run.made.validation.measure(run.ctx) == found
    assert equal(before, model.state_dict())
    assert modes == [module.training for module in model.modules()]
    assert all(parameter.grad is None for parameter in run.ctx.parameters.values())


@pytest.mark.parametrize("norm", NORMS)
def test_only_by_statistics_of_the_batch_does_an_answer_depend_on_other_queries(
    norm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Prepared(tmp_path, "anil", f"anil.val_norm={norm}", "anil.val_episodes=1")
    said: list[torch.Tensor] = []
    kind, own = type(run.learner), type(run.learner).query_logits

    def query_logits(self: object, ctx: object, task: TaskImages) -> torch.Tensor:
        others = torch.cat([task.query[:1], torch.zeros_like(task.query[1:])])
        said.extend(own(self, ctx, t) for t in (task, task._replace(query=others)))  # type: ignore[arg-type]
        return said[0]

    monkeypatch.setattr(kind, "query_logits", query_logits)
    run.made.validation.measure(run.ctx)
    assert torch.allclose(said[0][0], said[1][0]) is (norm == "running")


def test_a_run_has_it_apart_from_the_accuracy_of_classification(tmp_path: Path) -> None:
    run = train_recipe(tiny("protonet", "plan.rounds=1", "validate_every=4"), source(), tmp_path)
    record, log = json.loads((run / "run.json").read_text()), lines(run)
    assert [row["episodic_accuracy"] is None for row in log] == [True, True, True, False]
    assert {row["val_accuracy"] for row in log} == {None}
    assert record["source_accuracy"] is None
    assert record["stage_accuracies"] == [None]
    assert record["episodic_accuracy"] == log[-1]["episodic_accuracy"]
    assert record["rounds"][0]["episodic_accuracy"] == log[-1]["episodic_accuracy"]
    assert record["episodic_tasks"] == {
        "way": 2, "shots": 1, "queries": 1, "episodes": 2, "split": "val", "batch_norm": "running",
    }  # fmt: skip
    assert record["n_classes"] == 2
    assert backbones.load_backbone(f"run:{run}").facts.source_accuracy is None


def test_other_runs_do_not_have_it(tmp_path: Path) -> None:
    run = train_recipe(tiny("normal", "plan.rounds=1"), source(), tmp_path)
    record = json.loads((run / "run.json").read_text())
    texts = [*record, *record["rounds"][0], *lines(run)[0]]
    assert not [text for text in texts if "episodic" in text]
    assert record["source_accuracy"] == lines(run)[-1]["val_accuracy"]
