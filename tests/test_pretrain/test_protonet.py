"""Prototypical networks on features that are small enough to calculate with."""

import math
from pathlib import Path

import pytest
import torch
from support.episodic import Prepared
from support.pretrain import lines, source, tiny, weights

from pretrain.methods import protonet
from pretrain.training.batches import Batch
from pretrain.training.loop import train_recipe

FEATURES = torch.tensor(
    [
        # class 0: two of the support around (1, 0), a query
        [[0.0, 0.0], [2.0, 0.0], [0.5, 0.0]],
        # class 1: around (0, 1)
        [[0.0, 3.0], [0.0, -1.0], [1.0, 1.0]],
    ]
).flatten(0, 1)
"""Of (0.5, 0): squared distances 0.25 and 1.25; of (1, 1): 1 and 1."""


def test_the_loss_is_that_of_distances_to_the_mean_features(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Prepared(tmp_path, "protonet", "protonet.shots=2", "batch_size=6")
    monkeypatch.setattr(protonet, "head_inputs", lambda ctx, images: images.flatten(1))
    batch = Batch(FEATURES.view(6, 2, 1, 1), torch.tensor([0, 0, 0, 1, 1, 1]))
    (task,) = run.learner.tasks(batch)
    said = run.learner.query_logits(run.ctx, task)
    assert said.flatten().tolist() == pytest.approx([-0.25, -1.25, -1.0, -1.0])
    expected = (math.log(1 + math.exp(-1)) + math.log(2)) / 2
    assert float(run.learner.training_step(run.ctx, batch)) == pytest.approx(expected)


def test_features_are_what_reaches_the_head_before_dropout(tmp_path: Path) -> None:
    run = Prepared(tmp_path, "protonet", "dropout=0.9")
    run.ctx.model.eval()
    features = protonet.head_inputs(run.ctx, run.batch.images)
    assert features.shape == (8, 64)
    head = run.ctx.model.get_submodule(run.ctx.roles.head)
    assert torch.allclose(head(features), run.ctx.model(run.batch.images))
    run.ctx.model.train()
    assert (protonet.head_inputs(run.ctx, run.batch.images) > 0).float().mean() > 0.3
    assert len(head._forward_pre_hooks) == 1


def test_it_learns_and_leaves_the_head_as_it_was_drawn(tmp_path: Path) -> None:
    overrides = ("plan.epochs=8", "plan.epoch_images=40", "lr=0.01", "augmentation=none")
    recipe = tiny("protonet", *overrides)
    drawn = Prepared(tmp_path / "start", "protonet").ctx.model.state_dict()["fc.weight"]
    train_recipe(recipe, source(), tmp_path / "run")
    losses = [line["train_loss"] for line in lines(tmp_path / "run")]
    assert sum(losses[-4:]) < 0.6 * sum(losses[:4])
    assert torch.equal(weights(tmp_path / "run")["fc.weight"], drawn)
