"""recipes x methods x seeds, and the controls of each."""

import pytest

from fsbench.core.errors import UnknownName, UsageError
from fsbench.sweep.file import RunsBlock
from fsbench.sweep.graph import expand_recipes
from pretrain import METHODS
from pretrain.recipes import registry


def names(**block: object) -> list[tuple[str, int, str]]:
    recipes = expand_recipes(RunsBlock.model_validate(block))
    return [(recipe.name, recipe.seed, recipe.schedule) for recipe in recipes]


def test_a_scale_gives_every_method_its_own_recipe() -> None:
    got = names(recipes=["toy"], methods=["llf", "full_reset"], seeds=[0, 2])
    assert got == [
        ("toy/llf", 0, "cosine"),
        ("toy/full_reset", 0, "constant"),
        ("toy/llf", 2, "cosine"),
        ("toy/full_reset", 2, "constant"),
    ]
    assert len(names(recipes=["toy"], methods=["all"])) == len(METHODS.names())


def test_a_recipe_keeps_its_plan_under_other_methods() -> None:
    assert names(recipes=["toy/swr_reanchor"]) == [("toy/swr_reanchor", 0, "step")]
    got = names(recipes=["toy/swr_reanchor"], methods=["llf", "seal+swr"])
    assert got == [("toy/llf", 0, "step"), ("toy/seal+swr", 0, "step")]


def test_controls_come_first_with_and_without_restarts() -> None:
    got = names(recipes=["toy/seal"], controls=True)
    normal = "toy/normal"
    assert got == [(normal, 0, "cosine"), (normal, 0, "single_cycle"), ("toy/seal", 0, "cosine")]
    carried = names(recipes=["toy/full_reset"], controls=True)
    assert carried == [(normal, 0, "constant"), ("toy/full_reset", 0, "constant")]


def test_what_is_set_beats_the_scenario() -> None:
    block = {"recipes": ["toy/swr"], "scenario": "warm-start", "set": {"warmup": 0.25}}
    (recipe,) = expand_recipes(RunsBlock.model_validate(block))
    assert len(recipe.plan.stages) == 2
    assert recipe.warmup == 0.25
    assert recipe == registry.load_recipe("toy/swr").override(
        [
            'plan.stages=[{"start": 0, "stop": 0.5}, {"start": 0, "stop": 1}]',
            "opt_reset=none",
            "schedule=constant",
            "warmup=0.25",
        ]
    )


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
def test_what_is_refused(block: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        names(**block)
