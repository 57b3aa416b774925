"""Rounds given in steps: equal epochs of whole steps, as many as the recipe has while they fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pretrain import lines, source, tiny

from fsbench.core.errors import UsageError
from pretrain.recipes.plan import count_epochs
from pretrain.recipes.recipe import fit_round_steps
from pretrain.training.cost import estimate_training
from pretrain.training.loop import train_recipe


@pytest.mark.parametrize(
    ("steps", "least", "longest", "epochs"),
    [
        (8, 4, 5, 4),  # four epochs of two steps
        (10, 4, 5, 5),  # 4 does not divide 10
        (40, 4, 5, 8),  # epochs of at most five steps, a pass
        (7, 4, 5, 7),  # a prime number: epochs of one step
        (4, 4, 5, 4),
    ],
)
def test_epochs_by_hand(steps: int, least: int, longest: int, epochs: int) -> None:
    assert count_epochs(steps, least, longest) == epochs


def test_fewer_steps_than_epochs_are_refused() -> None:
    with pytest.raises(UsageError, match="round_steps=3 is fewer than a round has epochs"):
        fit_round_steps(tiny("normal", "plan.round_steps=3"), source())


def test_without_steps_a_recipe_stays_as_it_is() -> None:
    recipe = tiny("normal")
    assert fit_round_steps(recipe, source()) is recipe


@pytest.mark.parametrize("steps", [4, 6, 7, 20])
def test_a_round_takes_exactly_these_steps(tmp_path: Path, steps: int) -> None:
    recipe = tiny("welsr", f"plan.round_steps={steps}", "plan.epoch_images=null")
    train_recipe(recipe, source(), tmp_path)
    ends = {row["round"]: row["step"] for row in lines(tmp_path)}
    assert ends == {0: steps, 1: 2 * steps}
    assert estimate_training(recipe, source(), "cpu").steps == 2 * steps


def test_the_smallest_stage_decides_and_fitting_twice_changes_nothing() -> None:
    """Half of the 40 images hold two batches of 8, all of them five."""
    stages = 'plan.stages=[{"stop": 0.5}, {}]'
    fields = ("plan.round_steps=12", "plan.epochs=2", "plan.epoch_images=null")
    whole, parts = (
        fit_round_steps(tiny("normal", *fields, *more), source()) for more in ((), (stages,))
    )
    assert (whole.plan.epochs, whole.plan.epoch_images) == (3, 32)
    assert (parts.plan.epochs, parts.plan.epoch_images) == (6, 16)
    assert fit_round_steps(parts, source()) == parts


def test_gradient_descent_may_take_any_number_of_steps_an_epoch() -> None:
    fields = ("loader=full_batch", "batch_size=40", "plan.epochs=1", "plan.round_steps=200")
    plan = fit_round_steps(tiny("normal", *fields), source()).plan
    assert (plan.epochs, plan.epoch_images) == (1, 8000)


def test_methods_are_checked_under_the_epochs_that_result() -> None:
    recipe = tiny("dsd", "dsd.sparse_epochs=3", "plan.round_steps=8")
    assert fit_round_steps(recipe, source()).plan.epochs == 4
    with pytest.raises(UsageError, match="never re-anchor"):
        tiny("swr_reanchor", "swr_reanchor.on=none", "plan.round_steps=8")
