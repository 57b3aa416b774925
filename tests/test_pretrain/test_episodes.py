"""The loader `episodes`: tasks of the frozen sampler, whole, from the current stage alone."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from support.episodic import Prepared
from support.pretrain import equal, lines, record, source, tiny, train

from fsbench import backbones
from fsbench.core.errors import DataError, UsageError
from fsbench.core.specs import EpisodeSpec
from fsbench.data import Split
from fsbench.data.episodes import EpisodeSampler
from pretrain.recipes import registry
from pretrain.recipes.plan import Stage, TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import Batch
from pretrain.training.episodes import EpisodeLoader, TaskImages, meta_learner_of

CPU = torch.device("cpu")
HALVES = {"plan.stages": (Stage(stop=0.5), Stage(start=0.5))}


def loader(*assignments: str) -> EpisodeLoader:
    return EpisodeLoader(tiny("protonet", "augmentation=none", *assignments), source(), CPU)


def at(step: int, made: EpisodeLoader, **position: int) -> Batch:
    return made.batch(TrainingClock(made.recipe.plan, step=step, **position))


def find_images(made: EpisodeLoader, batch: Batch) -> list[int]:
    """Which images of the train split a batch holds; all of these differ."""
    every = made.normalise(made.images)
    return [int((every == image).flatten(1).all(dim=1).nonzero()) for image in batch.images]


def test_a_batch_is_whole_tasks_of_distinct_images_with_labels_of_their_own() -> None:
    made = loader("protonet.shots=2", "protonet.queries=3", "batch_size=20", "protonet.way=2")
    batch = at(0, made)
    assert batch.labels.tolist() == [0] * 5 + [1] * 5 + [0] * 5 + [1] * 5
    for task in np.split(np.array(find_images(made, batch)), 2):
        assert len(set(task)) == 10
        classes = source().train.labels[task].reshape(2, 5)
        assert all(len(set(row)) == 1 for row in classes)
        assert classes[0, 0] != classes[1, 0]
    numbered = Batch(torch.arange(20).view(20, 1, 1, 1), batch.labels)
    first, second = meta_learner_of(made.recipe).tasks(numbered)
    assert first.support.flatten().tolist() == [0, 1, 5, 6]
    assert first.query.flatten().tolist() == [2, 3, 4, 7, 8, 9]
    assert second.support.flatten().tolist() == [10, 11, 15, 16]
    assert second.support_labels.tolist() == [0, 0, 1, 1]
    assert second.query_labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_tasks_are_the_samplers_and_every_step_takes_the_next_ones() -> None:
    made, spec = loader("seed=3"), EpisodeSpec(n_way=2, k_shot=1, n_query=1, seed=3)
    by_class = {c: np.flatnonzero(source().train.labels == c) for c in range(4)}
    drawn = EpisodeSampler(spec, "tiny/train/0", dict.fromkeys(range(4), 10))
    for step in (5, 0, 5):
        expected = [
            np.concatenate(drawn.episode(i).images(by_class), axis=1).ravel()
            for i in (2 * step, 2 * step + 1)
        ]
        assert find_images(made, at(step, made)) == np.concatenate(expected).tolist()
    assert find_images(made, at(0, made)) != find_images(made, at(0, loader("seed=4")))


def test_a_stage_gives_tasks_of_its_own_images() -> None:
    recipe = tiny("protonet", "augmentation=none").replace(HALVES)
    made = EpisodeLoader(recipe, source(), CPU)
    for stage in (0, 1):
        batches = [at(step, made, round=stage * recipe.plan.rounds) for step in range(20)]
        images = set().union(*(find_images(made, batch) for batch in batches))
        assert images <= set(made.stages[stage].tolist())
        assert len(images) > 10


def test_images_are_augmented_as_the_recipe_says() -> None:
    plain, moved = loader(), loader("augmentation=crop_flip")
    assert not torch.equal(at(0, plain).images, at(0, moved).images)
    assert torch.equal(at(0, moved).images, at(0, moved).images)
    assert not torch.equal(at(0, moved).images, at(0, moved, batch=1).images)


@pytest.mark.parametrize(
    ("name", "set_", "says", "fix"),
    [
        ("toy/maml", "loader=batches", "maml trains on tasks, not on", "loader=episodes"),
        ("toy/maml", "batch_size=150", r"5 x \(5 \+ 15\) = 100 images", "batch_size=100"),
        ("toy/maml", "batch_size=50", r"batch_size=50 is no number", "batch_size=100"),
        ("toy/anil", "compile=true", "copies of the network", "compile=false"),
        ("toy/normal", "loader=episodes", "only a meta-learner trains on", "--set"),
    ],
)
def test_what_cannot_train_is_refused(name: str, set_: str, says: str, fix: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        registry.load_recipe(name).override([set_])
    assert fix in caught.value.fix


def test_other_recipes_and_classes_of_few_images_are_refused() -> None:
    with pytest.raises(UsageError, match="start from toy/maml"):
        registry.compose_methods(registry.load_recipe("toy/normal"), "maml")
    few = replace(source(), train=Split(source().train.images[:8], source().train.labels[:8]))
    says = "2 images in class 0; 2-shot with 1 queries needs 3"
    with pytest.raises(DataError, match=says) as caught:
        EpisodeLoader(tiny("maml", "maml.shots=2", "batch_size=6"), few, CPU)
    assert "maml.shots" in caught.value.fix


def test_the_control_classifies_as_many_images_a_step() -> None:
    meta: Recipe = registry.load_recipe("toy/maml")
    plain = registry.control_recipe(meta)
    assert (plain.loader, plain.batch_size, plain.plan) == ("batches", 100, meta.plan)


NORMS = ("running", "batch")


def test_it_is_the_mean_over_the_queries_of_frozen_tasks_of_the_validation_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Prepared(tmp_path, "maml", "maml.val_episodes=3", "maml.queries=2", "batch_size=6")
    tasks: list[TaskImages] = []

    def query_logits(self: object, ctx: object, task: TaskImages) -> torch.Tensor:
        """Right for class 0 of every task, and for both in the first one."""
        right = torch.nn.functional.one_hot(task.query_labels, 2).float()
        tasks.append(task)
        return right if len(tasks) == 1 else torch.tensor([[1.0, 0.0]]).expand(4, 2)

    monkeypatch.setattr(type(run.learner), "query_logits", query_logits)
    assert run.made.validation.measure(run.ctx) == pytest.approx((1 + 0.5 + 0.5) / 3)
    val = source().val
    by_class = {c: (val.labels == c).nonzero()[0] for c in range(4)}
    drawn = EpisodeSampler(run.learner.spec(0), "tiny/val", dict.fromkeys(range(4), 3))
    for i, task in enumerate(tasks):
        support, query = drawn.episode(i).images(by_class)
        normalise = run.made.validation.normalise
        pixels = [torch.from_numpy(val.images[indices.ravel()]) for indices in (support, query)]
        assert torch.equal(task.support, normalise(pixels[0]))
        assert torch.equal(task.query, normalise(pixels[1]))


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["maml", "metasgd", "protonet"])
def test_it_leaves_no_trace(name: str, norm: str, tmp_path: Path) -> None:
    run = Prepared(tmp_path, name, f"{name}.val_norm={norm}")
    model = run.ctx.model
    before = copy.deepcopy(model.state_dict())
    modes = [module.training for module in model.modules()]
    accuracy = run.made.validation.measure(run.ctx)
    assert 0 <= accuracy <= 1
    assert run.made.validation.measure(run.ctx) == accuracy
    assert equal(before, model.state_dict())
    assert modes == [module.training for module in model.modules()]
    assert all(parameter.grad is None for parameter in run.ctx.parameters.values())


@pytest.mark.parametrize("norm", NORMS)
def test_only_by_statistics_of_the_batch_does_an_answer_depend_on_other_queries(
    norm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Prepared(tmp_path, "anil", f"anil.val_norm={norm}", "anil.val_episodes=1")
    said: list[torch.Tensor] = []
    kind, original = type(run.learner), type(run.learner).query_logits

    def query_logits(self: object, ctx: object, task: TaskImages) -> torch.Tensor:
        others = torch.cat([task.query[:1], torch.zeros_like(task.query[1:])])
        said.extend(original(self, ctx, t) for t in (task, task._replace(query=others)))  # type: ignore[arg-type]
        return said[0]

    monkeypatch.setattr(kind, "query_logits", query_logits)
    run.made.validation.measure(run.ctx)
    assert torch.allclose(said[0][0], said[1][0]) is (norm == "running")


def test_a_run_has_it_apart_from_the_accuracy_of_classification(tmp_path: Path) -> None:
    run = train(tmp_path, "protonet", "plan.rounds=1", "validate_every=4")
    facts, log = record(run), lines(run)
    assert [row["episodic_accuracy"] is None for row in log] == [True, True, True, False]
    assert {row["val_accuracy"] for row in log} == {None}
    assert facts["source_accuracy"] is None
    assert facts["stage_accuracies"] == [None]
    assert facts["episodic_accuracy"] == log[-1]["episodic_accuracy"]
    assert facts["rounds"][0]["episodic_accuracy"] == log[-1]["episodic_accuracy"]
    assert facts["episodic_tasks"] == {
        "way": 2, "shots": 1, "queries": 1, "episodes": 2, "split": "val", "batch_norm": "running",
    }  # fmt: skip
    assert facts["n_classes"] == 2
    assert backbones.load_backbone(f"run:{run}").facts.source_accuracy is None


def test_other_runs_do_not_have_it(tmp_path: Path) -> None:
    run = train(tmp_path, "normal", "plan.rounds=1")
    facts, log = record(run), lines(run)
    assert not [name for name in (*facts, *facts["rounds"][0], *log[0]) if "episodic" in name]
    assert facts["source_accuracy"] == log[-1]["val_accuracy"]
