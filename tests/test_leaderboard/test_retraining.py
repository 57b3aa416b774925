"""The command that trains a run again, read back as the command line reads it."""

from __future__ import annotations

import pytest
from support import fakes

from fsbench.api.pretrain import build_recipe
from fsbench.api.retraining import command
from fsbench.core.schema import BackboneFacts
from fsbench.core.training import Training
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe

COSTS = {"steps": 1, "samples": 1, "flops": 1, "seconds": 1.0, "peak_memory_bytes": 0}


def facts(recipe: Recipe, known: bool = True) -> BackboneFacts:
    """Of a run of this recipe, whose results carry it or, as older ones, only name it."""
    fields = {"recipe": recipe.model_dump(mode="json"), "source_fingerprint": "x", "device": "cpu"}
    training = Training.model_validate(fields | COSTS) if known else None
    changes = {"recipe": recipe.name, "recipe_digest": recipe.digest(), "training": training}
    return fakes.facts().model_copy(update=changes)


def read_back(words: tuple[str, ...]) -> Recipe:
    """The recipe that `fsbench pretrain` makes of these words."""
    assert words[:2] == ("fsbench", "pretrain")
    assert words[-1] == "--output=runs"
    pairs = [word.removeprefix("--").partition("=") for word in words[3:-1]]
    given = {name: value for name, _, value in pairs}
    sets = [value for name, _, value in pairs if name == "set"]
    sets += [f"seed={given['seed']}"] if "seed" in given else []
    return build_recipe(words[2], settings=sets, method=given.get("method"))


@pytest.mark.parametrize("scale", ["toy", "pilot"])
@pytest.mark.parametrize("name", METHODS.names())
def test_every_recipe_and_its_control(name: str, scale: str) -> None:
    recipe = registry.load_recipe(f"{scale}/{name}")
    for each in (recipe, registry.control_recipe(recipe), recipe.replace({"seed": 4})):
        found = command(facts(each))
        assert found is not None
        assert read_back(found[0]) == found[1] == each


def test_compositions_scenarios_and_settings() -> None:
    base = registry.load_recipe("toy/normal")
    both = registry.compose_methods(base, "swr+weight_compander", {"swr.lam": 0.02, "width": 8})
    scenario = build_recipe(
        "toy/head_reset", {"plan.epochs": 3, "seed": 7}, scenario="continual-full"
    )
    for each in (both, scenario):
        found = command(facts(each))
        assert found is not None
        assert read_back(found[0]) == each
    assert command(facts(both))[0][2:4] == ("toy/normal", "--method=weight_compander+swr")  # type: ignore[index]
    plain = command(facts(base))
    assert plain is not None
    assert plain[0] == ("fsbench", "pretrain", "toy/normal", "--output=runs")


def test_older_results_are_searched_by_seed() -> None:
    recipe = registry.load_recipe("toy/normal").replace({"seed": 2})
    found = command(facts(recipe, known=False))
    assert found is not None
    assert (read_back(found[0]), found[1].label) == (recipe, recipe.label)
    assert command(facts(recipe.replace({"lr": 0.5}), known=False)) is None


def test_no_command_is_given_that_trains_another_run() -> None:
    """A recipe with a field or a method that this version does not know."""
    recipe = registry.load_recipe("toy/normal")
    for change in ({"later": 1}, {"methods": [{"name": "unheard"}]}, {"name": "lost/normal"}):
        held = facts(recipe)
        assert held.training is not None
        fields = dict(held.training.recipe) | change
        training = held.training.model_copy(update={"recipe": fields})
        other = held.model_copy(update={"training": training, "recipe_digest": "0" * 64})
        assert command(other) is None
