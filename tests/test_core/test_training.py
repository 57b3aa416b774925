"""What makes two runs matched: their recipes but for name, seed and methods."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from support import fakes
from support import methods as fakes_methods
from support.cases import read_cases

from fsbench.core.schema import BackboneFacts, Training
from pretrain.recipes.recipe import Recipe
from pretrain.recipes.registry import compose_methods, control_recipe, load_recipe, recipe_names


def train(recipe: Recipe) -> Training:
    return Training(recipe=recipe.model_dump(mode="json"), **fakes_methods.COSTS)


def test_the_digest_is_that_of_the_recipe_as_it_was_trained() -> None:
    recipe = compose_methods(load_recipe("pilot/swr"), "swr+weight_compander").override(["seed=3"])
    training = train(recipe)
    assert training.recipe_digest == recipe.digest()
    assert training.methods == tuple(method.name for method in recipe.methods)
    assert (training.view.seed, training.plan) == (3, "3 rounds x 4 epochs")
    other = training.model_copy(update={"recipe": {**training.recipe, "seed": 4}})
    assert (other.view.seed, training.view.seed) == (4, 3)  # nothing computed is copied
    stages = {"stages": [{}, {}], "rounds": 1, "epochs": 1}
    assert fakes_methods.training(plan=stages).plan == "2 stages x 1 round x 1 epoch"


def test_the_controls_of_recipes_are_matched_and_plain() -> None:
    for name in (name for name in recipe_names() if name.startswith(("full/", "paper/"))):
        ours, plain = train(load_recipe(name)), train(control_recipe(load_recipe(name)))
        assert plain.plain, name
        assert ours.conditions() == plain.conditions(), name


@pytest.mark.parametrize("changes", read_cases("boards")["conditions"])
def test_any_other_difference_is_other_conditions(changes: dict[str, Any]) -> None:
    plain, other = fakes_methods.training(), fakes_methods.training("llf", **changes)
    assert other.conditions() != plain.conditions()
    assert fakes_methods.training("llf", seed=7, name="pilot/x").conditions() == plain.conditions()


def test_seeds_are_of_one_composition_settings_and_restarts_are_not() -> None:
    one, seed, lam = (
        fakes_methods.training("swr", seed=seed, lam=lam)
        for seed, lam in ((0, 0.1), (1, 0.1), (0, 0.2))
    )
    assert one.composition == seed.composition != lam.composition
    assert one.conditions() == lam.conditions()
    fast = fakes_methods.training(lr=0.2)
    assert one.conditions(leave_out=["lr"]) == fast.conditions(leave_out=["lr"])
    assert one.conditions(leave_out=["batch_size"]) != fast.conditions(leave_out=["batch_size"])
    once = fakes_methods.training(schedule="single_cycle")
    assert one.conditions("single_cycle") == once.conditions() != one.conditions()


def test_facts_of_another_recipe_or_other_steps_are_refused() -> None:
    facts = fakes_methods.facts("llf")
    good = facts.model_dump(mode="json")
    assert BackboneFacts.model_validate(good) == facts
    assert "training" not in fakes.facts().model_dump()
    for change in ({"recipe_digest": "0" * 64}, {"steps": 3}, {"steps": None}):
        with pytest.raises(ValidationError, match="other steps"):
            BackboneFacts.model_validate(good | change)
    forged = json.loads(json.dumps(good))
    forged["training"]["recipe"]["methods"] = [{"name": "normal"}]
    with pytest.raises(ValidationError, match="another recipe digest"):
        BackboneFacts.model_validate(forged)


UNREADABLE: list[dict[str, Any]] = [
    *({"methods": methods} for methods in ([], [{"name": "=cmd()"}], [{"name": "a b"}])),
    {"plan": {"stages": [], "rounds": 1, "epochs": 1}},
    {"plan": {"stages": [{}], "rounds": 0, "epochs": 1}},
    *({"seed": -1}, {"lr": float("nan")}),
]


@pytest.mark.parametrize("change", UNREADABLE)
def test_a_recipe_that_no_board_can_read_is_refused(change: dict[str, Any]) -> None:
    text = json.dumps({"recipe": fakes_methods.recipe() | change, **fakes_methods.COSTS})
    with pytest.raises(ValidationError):
        Training.model_validate_json(text)
