"""Scenarios: which images each stage sees, what carries over, and what a run records."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch
from support.pretrain import epochs, lines, source, tiny, trainer

from fsbench.api.pretrain import choose_recipe
from fsbench.core.errors import UnknownName, UsageError
from pretrain import METHODS
from pretrain.recipes import plan as scenarios
from pretrain.recipes import registry
from pretrain.training.batches import BatchLoader
from pretrain.training.loop import train_recipe


def stages(name: str) -> list[set[int]]:
    """Image indices of every stage."""
    recipe = tiny("normal").replace(scenarios.scenario_fields(name))
    return [set(s.tolist()) for s in BatchLoader(recipe, source(), torch.device("cpu")).stages]


def test_warm_start_is_half_of_the_images_and_then_all() -> None:
    half, whole = stages("warm-start")
    assert len(half) == 20
    assert half < whole == set(range(40))


def test_full_access_adds_a_tenth_at_a_time() -> None:
    parts = stages("continual-full")
    assert [len(part) for part in parts] == list(range(4, 44, 4))
    assert all(a < b for a, b in itertools.pairwise(parts))


def test_limited_access_sees_every_image_in_one_stage_only() -> None:
    parts = stages("continual-limited")
    assert [len(part) for part in parts] == [4] * 10
    assert set().union(*parts) == set(range(40))


def test_stationary_changes_nothing_but_the_stages() -> None:
    recipe = tiny("normal")
    assert recipe.replace(scenarios.scenario_fields("stationary")) == recipe
    with pytest.raises(UnknownName, match="did you mean 'warm-start'"):
        scenarios.scenario_fields("warmstart")


def test_momentum_and_rate_carry_over(tmp_path: Path) -> None:
    made = trainer(
        tiny("normal", "plan.rounds=1").replace(scenarios.scenario_fields("warm-start")), tmp_path
    )
    epochs(made, made.recipe.plan.epochs)
    before = {n: b["momentum_buffer"].clone() for n, b in made.ctx.optimizer_state().items()}
    made._open_epoch(2)
    after = made.ctx.optimizer_state()
    assert made.ctx.clock.stage == 1
    assert before.keys() == after.keys()
    assert all(torch.equal(before[n], after[n]["momentum_buffer"]) for n in before)
    epochs(made, 1)
    assert {row["lr"] for row in lines(tmp_path)} == {made.recipe.lr}


def test_a_run_records_the_accuracy_at_the_end_of_every_stage(tmp_path: Path) -> None:
    recipe = tiny("normal", "validate_every=3").replace(
        scenarios.scenario_fields("continual-limited")
    )
    train_recipe(recipe, source(), tmp_path)
    facts = json.loads((tmp_path / "run.json").read_text())
    last = {row["stage"]: row["val_accuracy"] for row in lines(tmp_path) if row["round"] % 2}
    assert facts["stage_accuracies"] == [last[stage] for stage in range(10)]
    assert facts["source_accuracy"] == facts["stage_accuracies"][-1]


@pytest.mark.parametrize("name", ["shrink_perturb", "head_reset", "full_reset"])
@pytest.mark.parametrize("scale", ["pilot", "toy"])
def test_the_control_is_normal_with_the_same_scenario(scale: str, name: str) -> None:
    recipe = registry.load_recipe(f"{scale}/{name}")
    fields = {
        **scenarios.scenario_fields("warm-start"),
        "plan.epoch_images": recipe.plan.epoch_images,
    }
    assert registry.control_recipe(recipe) == registry.load_recipe(f"{scale}/normal").replace(
        fields
    )


def test_no_pilot_run_sees_more_images_than_plain_training() -> None:
    plans = {name: registry.load_recipe(f"pilot/{name}").plan for name in METHODS.names()}
    seen = {name: plan.total_epochs * (plan.epoch_images or 0) for name, plan in plans.items()}
    assert max(seen.values()) == seen["normal"] == 324_000
    assert seen["full_reset"] == 324_000
    assert seen["maml"] == 108_000


@pytest.mark.parametrize("scale", ["pilot", "toy"])
def test_the_control_of_reanchoring_is_normal_with_the_same_schedule(scale: str) -> None:
    control = registry.load_recipe(f"{scale}/normal").override(["schedule=step"])
    assert registry.control_recipe(registry.load_recipe(f"{scale}/swr_reanchor")) == control


def test_the_command_puts_set_above_the_scenario() -> None:
    chosen = choose_recipe(
        "toy/swr_reanchor", {"schedule": "step", "plan.rounds": 1}, scenario="warm-start"
    )
    assert len(chosen.plan.stages) == 2
    assert (chosen.schedule, chosen.opt_reset, chosen.plan.rounds) == ("step", "none", 1)
    with pytest.raises(UsageError, match="on=none"):
        choose_recipe("toy/swr_reanchor", scenario="warm-start")
