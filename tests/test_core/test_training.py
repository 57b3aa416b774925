"""What makes two runs matched: their recipes but for name, seed and methods."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from support import fakes
from support import methods as fakes_methods

from fsbench.core.schema import BackboneFacts, Training


def test_facts_without_training_are_written_as_before() -> None:
    assert "training" not in fakes.facts().model_dump()
    facts = fakes_methods.facts("llf")
    again = BackboneFacts.model_validate_json(facts.model_dump_json())
    assert again == facts
    assert again.training is not None
    assert again.training.methods == ("llf",)


def test_the_digest_is_that_of_the_recipe_as_it_was_trained() -> None:
    from pretrain.recipes.registry import compose_methods, load_recipe

    recipe = compose_methods(load_recipe("pilot/swr"), "swr+weight_compander").override(["seed=3"])
    training = Training(recipe=recipe.model_dump(mode="json"), **fakes_methods.COSTS)
    assert training.recipe_digest == recipe.digest()
    assert training.methods == tuple(method.name for method in recipe.methods)
    assert training.view.seed == 3
    assert training.plan == "3 rounds x 4 epochs"
    other = training.model_copy(update={"recipe": {**training.recipe, "seed": 4}})
    assert (other.view.seed, training.view.seed) == (4, 3)  # nothing computed is copied


def test_the_controls_of_recipes_are_matched_and_plain() -> None:
    from pretrain.recipes.registry import control_recipe, load_recipe, recipe_names

    for name in (name for name in recipe_names() if name.startswith(("full/", "paper/"))):
        recipe = load_recipe(name)
        ours, plain = (
            Training(recipe=variant.model_dump(mode="json"), **fakes_methods.COSTS)
            for variant in (recipe, control_recipe(recipe))
        )
        assert plain.plain, name
        assert ours.conditions() == plain.conditions(), name


@pytest.mark.parametrize(
    "changes",
    [
        {"lr": 0.2},
        {"plan": {"stages": [{}], "rounds": 1, "epochs": 12}},
        {"schedule": "single_cycle"},
        {"architecture": "other"},
        {"loader": "full_batch"},
        {"source_fingerprint": "0" * 64},
        {"new_field": None},
    ],
)
def test_any_other_difference_is_other_conditions(changes: dict[str, Any]) -> None:
    plain, other = fakes_methods.training(), fakes_methods.training("llf", **changes)
    assert other.conditions() != plain.conditions()
    assert fakes_methods.training("llf", seed=7, name="pilot/x").conditions() == plain.conditions()


def test_schedules_that_differ_only_in_restarts_meet_when_asked() -> None:
    cosine = fakes_methods.training("llf")
    once = fakes_methods.training(schedule="single_cycle")
    assert cosine.conditions("single_cycle") == once.conditions()
    stages = {"stages": [{}, {}], "rounds": 1, "epochs": 1}
    assert fakes_methods.training(plan=stages).plan == "2 stages x 1 round x 1 epoch"


def test_seeds_are_of_one_composition_settings_are_not() -> None:
    one = fakes_methods.training("swr", seed=0, lam=0.1)
    assert one.composition == fakes_methods.training("swr", seed=1, lam=0.1).composition
    assert one.composition != fakes_methods.training("swr", seed=0, lam=0.2).composition
    assert one.conditions() == fakes_methods.training("swr", seed=0, lam=0.2).conditions()


def test_facts_of_another_recipe_or_other_steps_are_refused() -> None:
    good = fakes_methods.facts("llf").model_dump(mode="json")
    for change in ({"recipe_digest": "0" * 64}, {"steps": 3}, {"steps": None}):
        with pytest.raises(ValidationError, match="other steps"):
            BackboneFacts.model_validate(good | change)
    forged = json.loads(json.dumps(good))
    forged["training"]["recipe"]["methods"] = [{"name": "normal"}]
    with pytest.raises(ValidationError, match="another recipe digest"):
        BackboneFacts.model_validate(forged)


@pytest.mark.parametrize(
    "change",
    [
        {"methods": []},
        {"methods": [{"name": "=cmd()"}]},
        {"methods": [{"name": "a b"}]},
        {"plan": {"stages": [], "rounds": 1, "epochs": 1}},
        {"plan": {"stages": [{}], "rounds": 0, "epochs": 1}},
        {"seed": -1},
        {"lr": float("nan")},
    ],
)
def test_a_recipe_that_no_board_can_read_is_refused(change: dict[str, Any]) -> None:
    recipe = fakes_methods.recipe() | change
    text = json.dumps({"recipe": recipe, **fakes_methods.COSTS})
    with pytest.raises(ValidationError):
        Training.model_validate_json(text)
