"""recipes x methods x seeds, and the controls of each."""

from typing import Any

import pytest

from fsbench.core.errors import UnknownName, UsageError
from fsbench.sweep.file import RunsBlock
from fsbench.sweep.graph import expand_recipes
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe


def expand(**block: Any) -> list[Recipe]:
    return list(expand_recipes(RunsBlock.model_validate(block)))


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (
            {"recipes": ["toy"], "methods": ["llf", "full_reset"], "seeds": [0, 2]},
            ["llf 0 cosine", "full_reset 0 constant", "llf 2 cosine", "full_reset 2 constant"],
        ),
        ({"recipes": ["toy/swr_reanchor"]}, ["swr_reanchor 0 step"]),
        (
            {"recipes": ["toy/swr_reanchor"], "methods": ["llf", "seal+swr"]},
            ["llf 0 step", "seal+swr 0 step"],
        ),
        (
            {"recipes": ["toy/seal"], "controls": True},
            ["normal 0 cosine", "normal 0 single_cycle", "seal 0 cosine"],
        ),
        (
            {"recipes": ["toy/full_reset"], "controls": True},
            ["normal 0 constant", "full_reset 0 constant"],
        ),
    ],
)
def test_name_seed_and_schedule_of_recipes(block: dict[str, Any], expected: list[str]) -> None:
    """A scale gives every method its recipe; a recipe keeps its plan; controls come first."""
    recipes = expand(**block)
    assert [f"{r.name.removeprefix('toy/')} {r.seed} {r.schedule}" for r in recipes] == expected


def test_all_methods_and_what_is_set_beside_a_scenario() -> None:
    assert len(expand(recipes=["toy"], methods=["all"])) == len(METHODS.names())
    (recipe,) = expand(recipes=["toy/swr"], scenario="warm-start", set={"warmup": 0.25})
    stages = 'plan.stages=[{"start": 0, "stop": 0.5}, {"start": 0, "stop": 1}]'
    fields = [stages, "opt_reset=none", "schedule=constant", "warmup=0.25"]
    assert recipe == registry.load_recipe("toy/swr").override(fields)


@pytest.mark.parametrize(
    ("block", "error"),
    [
        ({"recipes": ["toy"]}, UsageError),
        ({"recipes": ["toy"], "methods": ["seel"]}, UnknownName),
        ({"recipes": ["toy/seel"]}, UnknownName),
        ({"recipes": ["toy/seal"], "set": {"rounds": 3}}, UnknownName),
        ({"recipes": ["toy/seal"], "set": {"seed": 3}}, UsageError),
    ],
)
def test_what_is_refused(block: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        expand(**block)
