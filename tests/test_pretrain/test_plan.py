"""Plans and clocks count stages, rounds, epochs and steps."""

import itertools
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from support.pretrain import lines, record, source, tiny, train

from fsbench.api.pretrain import resolve_recipe
from fsbench.core.errors import UnknownName, UsageError
from pretrain import METHODS
from pretrain.recipes import plan as scenarios
from pretrain.recipes import registry
from pretrain.recipes.plan import Plan, Stage, TrainingClock, count_epochs
from pretrain.recipes.recipe import fit_round_steps
from pretrain.training.batches import BatchLoader
from pretrain.training.cost import estimate_training
from pretrain.training.loop import train_recipe

WARM_START = scenarios.scenario_fields("warm-start")


def test_a_clock_visits_every_position_once() -> None:
    plan = Plan(stages=(Stage(stop=0.5), Stage()), rounds=2, epochs=3)
    clock, positions, starts = TrainingClock(plan), [], []
    while not clock.done:
        if clock.epoch == 0 and clock.starts_stage:
            starts.append(clock.round)
        for _ in range(2):
            positions.append(clock.names)
            clock.tick()
        clock.next_epoch()
    assert len(positions) == len(set(positions)) == clock.step == 2 * plan.total_epochs == 24
    assert positions[0] == (0, 0, 0, 0)
    assert positions[-1] == (1, 3, 2, 1)
    assert starts == [0, 2]


def test_a_stage_must_hold_images() -> None:
    with pytest.raises(ValidationError, match="holds no image"):
        Stage(start=0.5, stop=0.5)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("warm-start", [20, 40]),
        ("continual-full", list(range(4, 44, 4))),
        ("continual-limited", [4] * 10),
    ],
)
def test_stages_of_a_scenario(name: str, sizes: list[int]) -> None:
    """Images are added, or seen in one stage only; momentum and rate carry over."""
    recipe = tiny("normal").replace(scenarios.scenario_fields(name))
    assert (recipe.opt_reset, recipe.schedule, recipe.warmup) == ("none", "constant", 0)
    loader = BatchLoader(recipe, source(), torch.device("cpu"))
    parts = [set(stage.tolist()) for stage in loader.stages]
    assert [len(part) for part in parts] == sizes
    assert set().union(*parts) == set(range(40))
    assert name == "continual-limited" or all(a < b for a, b in itertools.pairwise(parts))


def test_stationary_changes_nothing_but_the_stages() -> None:
    recipe = tiny("normal")
    assert recipe.replace(scenarios.scenario_fields("stationary")) == recipe
    with pytest.raises(UnknownName, match="did you mean 'warm-start'"):
        scenarios.scenario_fields("warmstart")


def test_a_run_records_the_accuracy_at_the_end_of_every_stage(tmp_path: Path) -> None:
    recipe = tiny("normal", "validate_every=3")
    train_recipe(recipe.replace(scenarios.scenario_fields("continual-limited")), source(), tmp_path)
    facts = record(tmp_path)
    last = {row["stage"]: row["val_accuracy"] for row in lines(tmp_path) if row["round"] % 2}
    assert facts["stage_accuracies"] == [last[stage] for stage in range(10)]
    assert facts["source_accuracy"] == facts["stage_accuracies"][-1]


@pytest.mark.parametrize("name", ["shrink_perturb", "head_reset", "full_reset", "swr_reanchor"])
@pytest.mark.parametrize("scale", ["pilot", "toy"])
def test_the_control_is_normal_with_the_same_scenario_or_schedule(scale: str, name: str) -> None:
    recipe, normal = (registry.load_recipe(f"{scale}/{n}") for n in (name, "normal"))
    fields = {"plan.epoch_images": recipe.plan.epoch_images}
    fields |= {"schedule": "step"} if name == "swr_reanchor" else WARM_START
    assert registry.control_recipe(recipe) == normal.replace(fields)


def test_no_pilot_run_sees_more_images_than_plain_training() -> None:
    plans = {name: registry.load_recipe(f"pilot/{name}").plan for name in METHODS.names()}
    n_images = {name: plan.total_epochs * (plan.epoch_images or 0) for name, plan in plans.items()}
    assert max(n_images.values()) == n_images["normal"] == 324_000
    assert n_images["full_reset"] == 324_000
    assert n_images["maml"] == 108_000


def test_the_command_puts_set_above_the_scenario() -> None:
    chosen = resolve_recipe(
        "toy/swr_reanchor", overrides={"schedule": "step", "plan.rounds": 1}, scenario="warm-start"
    )
    assert len(chosen.plan.stages) == 2
    assert (chosen.schedule, chosen.opt_reset, chosen.plan.rounds) == ("step", "none", 1)
    with pytest.raises(UsageError, match="on=none"):
        resolve_recipe("toy/swr_reanchor", scenario="warm-start")


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


@pytest.mark.parametrize("steps", [4, 6, 7, 20])
def test_a_round_takes_exactly_these_steps(tmp_path: Path, steps: int) -> None:
    fields = (f"plan.round_steps={steps}", "plan.epoch_images=null")
    log = lines(train(tmp_path, "welsr", *fields))
    assert {row["round"]: row["step"] for row in log} == {0: steps, 1: 2 * steps}
    assert estimate_training(tiny("welsr", *fields), source(), "cpu").steps == 2 * steps


HALF_FIRST = 'plan.stages=[{"stop": 0.5}, {}]'
FULL_BATCH = ("loader=full_batch", "batch_size=40", "plan.epochs=1")


@pytest.mark.parametrize(
    ("fields", "epochs", "images"),
    [
        (("plan.round_steps=12", "plan.epochs=2"), 3, 32),  # five batches of 8 are a pass
        (("plan.round_steps=12", "plan.epochs=2", HALF_FIRST), 6, 16),  # two are one of 20 images
        (("plan.round_steps=200", *FULL_BATCH), 1, 8000),  # the same images without a limit
        ((), 4, None),
    ],
)
def test_the_smallest_stage_decides_on_the_epochs(
    fields: tuple[str, ...], epochs: int, images: int | None
) -> None:
    recipe = fit_round_steps(tiny("normal", "plan.epoch_images=null", *fields), source())
    assert (recipe.plan.epochs, recipe.plan.epoch_images) == (epochs, images)
    assert fit_round_steps(recipe, source()) == recipe


def test_methods_are_checked_under_the_epochs_that_result() -> None:
    recipe = tiny("dsd", "dsd.sparse_epochs=3", "plan.round_steps=8")
    assert fit_round_steps(recipe, source()).plan.epochs == 4
    with pytest.raises(UsageError, match="never re-anchor"):
        tiny("swr_reanchor", "swr_reanchor.on=none", "plan.round_steps=8")
    with pytest.raises(UsageError, match="round_steps=3 is fewer than a round has epochs"):
        fit_round_steps(tiny("normal", "plan.round_steps=3"), source())
