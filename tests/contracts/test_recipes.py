"""What every recipe owes: it builds, survives JSON, and stands beside its control."""

import json
import re
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import typer
from support.cases import GOLDEN
from support.pretrain import published_figures

from fsbench.api.pretrain import read_recipe, resolve_recipe
from fsbench.backbones.networks import load_architecture
from fsbench.claims import CLAIMS
from fsbench.cli.main import build
from fsbench.core.errors import UsageError
from fsbench.data import SOURCES
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import META, Recipe
from protocols.analyses import ANALYSES

NAMES = registry.recipe_names()
every = pytest.mark.parametrize("name", NAMES)
SCALES = ("full", "pilot", "regime", "toy")


@every
def test_it_is_whole_and_survives_json_and_a_file(name: str, tmp_path: Path) -> None:
    recipe = registry.load_recipe(name)
    assert (recipe.name, recipe.label) == (name, f"{name.replace('/', '-')}-s0")
    again = Recipe.model_validate_json(recipe.canonical())
    assert len({recipe, again}) == 1
    assert load_architecture(recipe.architecture).name == recipe.architecture
    assert recipe.source in SOURCES.names()
    (tmp_path / "recipe.json").write_text(recipe.model_dump_json(), "utf8")
    assert read_recipe(tmp_path / "recipe.json").digest() == again.digest() == recipe.digest()
    row = registry.find_paper_row(name)
    assert (row is not None) == name.startswith("paper/")
    assert row is None or (row.paper and row.row)
    for figure in published_figures(name):
        assert 0 < figure.accuracy < 1
        recipe.override(figure.overrides)


def test_digests_are_those_of_earlier_versions() -> None:
    """Stored runs and leaderboard entries name their recipe by its digest."""
    recorded = json.loads((GOLDEN / "recipe_digests.json").read_text(encoding="utf8"))
    assert {name: registry.load_recipe(name).digest() for name in NAMES} == recorded


def test_every_method_has_a_recipe_at_every_scale_and_digests_differ() -> None:
    expected = {f"{scale}/{name}" for scale in SCALES for name in METHODS.names()}
    assert expected <= set(NAMES)
    assert len({registry.load_recipe(name).digest() for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("scale", ["pilot", "toy"])
def test_normal_under_the_same_plan_is_the_control(scale: str) -> None:
    control = registry.load_recipe(f"{scale}/normal")
    for name in ("llf", "seal", "seal_freeze", "seal_reinit", "seal_reverse"):
        ours = dict(registry.load_recipe(f"{scale}/{name}"))
        assert {**ours, "name": control.name, "methods": control.methods} == dict(control)


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
    fields = registry.scaled(type(recipe.methods[0]))["full"]
    needs = [field for field in fields if not field.startswith(f"{method}.")]
    if needs:
        with pytest.raises(UsageError):
            registry.compose_methods(base, method)
    else:
        swapped = registry.compose_methods(base, method)
        assert dict(swapped) | {"name": recipe.name} == dict(recipe)


README = Path(__file__).resolve().parents[2] / "pretrain" / "README.md"
PROGRAM: Any = typer.main.get_command(build())


@cache
def list_commands() -> list[list[str]]:
    """The words of the commands of the README's table of experiments, braces expanded."""
    text = README.read_text(encoding="utf8").split("### From an experiment to a command")[1]
    commands = []
    for code in re.findall("`(fsbench [^`]+)`", text.split("\n#")[0]):
        parts = re.split(r"\{([^}]*)\}", code)
        choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
        commands += ["".join(chosen).split() for chosen in product(*choices)]
    return commands


def test_every_recipe_of_a_paper_and_every_claim_has_a_command() -> None:
    trained = {words[2] for words in list_commands() if words[1] == "pretrain"}
    assert {name for name in NAMES if name.startswith("paper/")} <= trained
    assert {words[2] for words in list_commands() if words[1] == "claims"} == set(CLAIMS.names())
    methods = {name.partition("/")[2] for name in trained if name.startswith("full/")}
    stated = {row.name for _, method in METHODS.items() for row in method.PAPER}
    events = ("full_reset", "head_reset", "shrink_perturb")
    assert set(METHODS.names()) <= methods | stated | META | set(events)


@pytest.mark.parametrize("program", sorted({words[1] for words in list_commands()}))
def test_the_commands_of_the_experiments_are_valid(program: str) -> None:
    for words in (words for words in list_commands() if words[1] == program):
        options = list(zip(words[3::2], words[4::2], strict=False))
        if program == "pretrain":
            settings = [value for option, value in options if option == "--set"]
            settings += [f"source={value}" for option, value in options if option == "--source"]
            recipe = resolve_recipe(words[2], set=settings, method=dict(options).get("--method"))
            load_architecture(recipe.architecture)
        elif program == "analyze":
            assert set(words[-1].split(",")) <= set(ANALYSES.names())
        else:  # options and their values are read as on the command line
            PROGRAM.commands[program].make_context(program, words[2:])
