"""What every recipe owes: it builds, survives JSON, and stands beside its control."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsbench.api.pretrain import read_recipe, write_recipe
from fsbench.backbones.architectures import ARCHITECTURES
from fsbench.core.errors import UnknownName, UsageError
from fsbench.data import SOURCES
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe

NAMES = registry.RECIPES.names()
every = pytest.mark.parametrize("name", NAMES)
SCALES = ("full", "pilot", "regime", "toy")
DIGESTS = Path(__file__).resolve().parents[1] / "golden" / "recipe_digests.json"


@every
def test_it_is_whole_and_survives_json(name: str) -> None:
    recipe = registry.load_recipe(name)
    assert recipe.name == name
    assert recipe.label == f"{name.replace('/', '-')}-s0"
    again = Recipe.model_validate_json(recipe.canonical())
    assert again == recipe
    assert again.digest() == recipe.digest()
    assert len({recipe, again}) == 1


@every
def test_a_file_keeps_the_digest(name: str, tmp_path: Path) -> None:
    recipe = registry.load_recipe(name)
    write_recipe(recipe, tmp_path / "recipe.json")
    assert read_recipe(tmp_path / "recipe.json").digest() == recipe.digest()


def test_digests_are_those_of_earlier_versions() -> None:
    """Stored runs and leaderboard entries name their recipe by its digest."""
    recorded = json.loads(DIGESTS.read_text(encoding="utf8"))
    assert {name: registry.load_recipe(name).digest() for name in recorded} == recorded


@every
def test_its_parts_exist(name: str) -> None:
    recipe = registry.load_recipe(name)
    assert recipe.architecture in ARCHITECTURES.names()
    assert recipe.source in SOURCES.names()


def test_every_method_has_a_recipe_at_every_scale_and_digests_differ() -> None:
    expected = {f"{scale}/{name}" for scale in SCALES for name in METHODS.names()}
    assert expected <= set(NAMES)
    assert len({registry.load_recipe(name).digest() for name in NAMES}) == len(NAMES)


@every
def test_published_figures_are_fractions_under_overrides_that_exist(name: str) -> None:
    row = registry.RECIPES.paper_row(name)
    assert (row is not None) == name.startswith("paper/")
    assert row is None or (row.paper and row.row)
    for figure in registry.RECIPES.figures(name):
        assert 0 < figure.accuracy < 1
        registry.load_recipe(name).override(figure.overrides)


@pytest.mark.parametrize("scale", ["pilot", "toy"])
def test_normal_under_the_same_plan_is_the_control(scale: str) -> None:
    control = registry.load_recipe(f"{scale}/normal")
    for name in ("llf", "seal", "seal_freeze", "seal_reinit", "seal_reverse"):
        ours = dict(registry.load_recipe(f"{scale}/{name}"))
        assert {**ours, "name": control.name, "methods": control.methods} == dict(control)


def test_seals_figures_stand_as_printed() -> None:
    seal = registry.load_recipe("paper/seal")
    assert (seal.plan.rounds, seal.plan.epochs, seal.batch_size) == (10, 160, 32)
    assert (seal.lr, seal.momentum, seal.weight_decay) == (0.01, 0.9, 5e-4)
    assert (seal.label_smoothing, seal.input_size, seal.warmup_epochs) == (0.1, 64, 20)
    printed = {
        n: [f.accuracy for f in registry.RECIPES.figures(f"paper/{n}")]
        for n in METHODS.names()
        if n in ("normal", "llf") or n.startswith("seal")
    }
    assert printed == {
        "normal": [0.5437],
        "llf": [0.5612, 0.5692],
        "seal": [0.5825, 0.5922],
        "seal_freeze": [0.5245, 0.5117],
        "seal_reinit": [0.5682, 0.5887],
        "seal_reverse": [0.5025, 0.4105],
    }


def test_a_bare_name_is_refused_with_the_full_ones() -> None:
    with pytest.raises(
        UsageError, match="full/seal, paper/seal, pilot/seal, regime/seal, toy/seal"
    ):
        registry.load_recipe("SEAL")
    with pytest.raises(UnknownName, match="did you mean 'toy/seal'"):
        registry.load_recipe("toy/seel")


@pytest.mark.parametrize("method", METHODS.names())
def test_every_method_trains_by_seals_plan(method: str) -> None:
    """In `full/METHOD` always; in place of another method unless it needs other fields too."""
    recipe = registry.load_recipe(f"full/{method}")
    base = registry.load_recipe("paper/normal_long")
    same = ("architecture", "source", "input_size", "lr", "weight_decay")
    meta = recipe.loader == "episodes"
    assert meta or [getattr(recipe, f) for f in same] == [getattr(base, f) for f in same]
    images = recipe.plan.epoch_images or 100_000
    assert meta or recipe.plan.total_epochs * images == 1600 * 100_000
    needs = [field for field in type(recipe.methods[0]).FULL if not field.startswith(f"{method}.")]
    if needs:
        with pytest.raises(UsageError):
            registry.compose_methods(base, method)
    else:
        swapped = registry.compose_methods(base, method)
        assert dict(swapped) | {"name": recipe.name} == dict(recipe)
