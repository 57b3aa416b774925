"""The loader of gradient descent: all images, every step."""

from __future__ import annotations

import pytest
import torch

from fsbench.core.errors import UsageError
from fsbench.reproductions import _synthetic
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.training.batches import FullBatchLoader

CPU = torch.device("cpu")
SOURCE = _synthetic.draw_source(1.0, 0)


def recipe(**values: object) -> Recipe:
    return _synthetic.build_column_recipe("BL", 0).replace(values)


def test_every_step_sees_every_image_once() -> None:
    loader = FullBatchLoader(recipe(), SOURCE, CPU)
    assert loader.steps(0) == _synthetic.STEPS
    first, later = (loader.batch(TrainingClock(loader.recipe.plan, batch=b)) for b in (0, 7))
    assert torch.equal(first.images, later.images)
    wanted = torch.from_numpy(SOURCE.train.images)
    order = loader.stages[0]
    assert sorted(order) == list(range(256))
    assert torch.equal(first.images, wanted[order])
    assert torch.equal(first.labels, torch.from_numpy(SOURCE.train.labels)[order])


def test_an_epoch_without_a_size_is_one_step() -> None:
    assert FullBatchLoader(recipe(**{"plan.epoch_images": None}), SOURCE, CPU).steps(0) == 1


def test_augmentation_is_drawn_anew_every_step() -> None:
    loader = FullBatchLoader(recipe(augmentation="flip"), SOURCE, CPU)
    first, later = (loader.batch(TrainingClock(loader.recipe.plan, batch=b)) for b in (0, 7))
    assert not torch.equal(first.images, later.images)


def test_a_batch_smaller_than_the_stage_is_refused() -> None:
    with pytest.raises(UsageError, match="256 here; batch_size is 32"):
        FullBatchLoader(recipe(batch_size=32), SOURCE, CPU)
