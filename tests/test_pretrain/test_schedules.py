"""Learning rates against numbers worked out by hand from SEAL's schedule."""

from __future__ import annotations

import math

import pytest

from pretrain.recipes import registry
from pretrain.recipes.plan import TrainingClock
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.schedules import lr_factor


def at(recipe: Recipe, round_: int, epoch: int, batch: int = 0, steps: int = 10) -> float:
    return lr_factor(recipe, TrainingClock(recipe.plan, round_, epoch, batch), steps)


def test_seal_warms_up_twenty_epochs_and_restarts_every_round() -> None:
    recipe = registry.load_recipe("paper/seal")
    assert recipe.warmup_epochs == 20
    assert at(recipe, 0, 0) == 1 / 20
    assert at(recipe, 0, 19) == at(recipe, 0, 20) == 1.0
    assert at(recipe, 0, 90) == pytest.approx(0.5)
    assert at(recipe, 0, 159) == pytest.approx(0.5 * (1 + math.cos(math.pi * 139 / 140)))
    assert [at(recipe, 3, e) for e in range(160)] == [at(recipe, 0, e) for e in range(160)]
    assert at(recipe, 0, 50, batch=9) == at(recipe, 0, 50)


def test_a_single_cycle_runs_over_all_rounds() -> None:
    recipe = registry.load_recipe("paper/normal_long_single_cycle")
    assert at(recipe, 0, 9) == 10 / 20
    assert at(recipe, 5, 10) == pytest.approx(0.5 * (1 + math.cos(math.pi * 790 / 1580)))
    assert at(recipe, 9, 159) < 1e-5
    rates = [at(recipe, r, e) for r in range(10) for e in range(160)]
    assert rates[20:] == sorted(rates[20:], reverse=True)


def test_by_step_the_rate_moves_with_every_batch() -> None:
    recipe = registry.load_recipe("paper/normal").override(["schedule_by=step", "plan.epochs=8"])
    assert at(recipe, 0, 0, 0) == pytest.approx(1 / 10)
    assert at(recipe, 0, 0, 9) == pytest.approx(1.0)
    assert at(recipe, 0, 1, 0) == 1.0
    assert at(recipe, 0, 4, 5) == pytest.approx(0.5)


def test_steps_fall_at_parts_of_the_round() -> None:
    recipe = registry.load_recipe("paper/normal").override(["schedule=step", "warmup=0"])
    assert [at(recipe, 0, e) for e in (0, 79, 80, 119)] == [1.0, 1.0, 0.1, 0.1]
    assert at(recipe, 0, 120) == pytest.approx(0.01)


def test_constant_after_the_warm_up() -> None:
    recipe = registry.load_recipe("paper/normal").override(["schedule=constant"])
    assert [at(recipe, 0, e) for e in (0, 20, 159)] == [1 / 20, 1.0, 1.0]
