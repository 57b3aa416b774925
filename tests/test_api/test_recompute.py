"""fsbench leaderboard recompute: the commands give the recipe and the specs and inject nothing."""

import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import fakes
from support import site as fakes_site
from support.cases import read_cases
from support.cli import CommandLine
from support.fakes import DECLARATION

from fsbench.api.pretrain import read_recipe
from fsbench.api.recompute import recipe_of, recompute
from fsbench.api.submit import submit
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import BackboneFacts, Training
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from leaderboard.store import Board, BoardEntry
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe

COSTS = {"steps": 1, "samples": 1, "flops": 1, "seconds": 1.0, "peak_memory_bytes": 0}
SPECS = [EpisodicSpec(episode=EpisodeSpec(k_shot=k)) for k in (1, 5)]
AFFINE = EpisodicSpec(adaptation="affine")


def make_entry(facts: dict[str, Any], *made: dict[str, Any], **update: object) -> BoardEntry:
    """Return an entry with two results, each of its own provenance; update: of both results."""
    entry = fakes_site.entry("entry", fakes.facts(**facts), 0.5, ["eurosat"], SPECS)
    changes = [update | {"provenance": fakes.provenance(**fields)} for fields in made]
    loaded = [
        replace(one, result=one.result.model_copy(update=change))
        for one, change in zip(entry.loaded, changes, strict=True)
    ]
    return replace(entry, loaded=tuple(loaded))


def commands(lines: list[str]) -> list[list[str]]:
    """Return the words of every command but that of pip, which is the first of an environment."""
    words = [shlex.split(line) for line in lines if not line.startswith("#")]
    return [command for command in words if command[0] == "fsbench"]


def only(facts: dict[str, Any], update: dict[str, Any], **made: Any) -> list[str]:
    """Return the script of an entry of one environment."""
    lines = recompute(make_entry(facts, made, made, **update), "board")
    assert sum(" pip install " in line for line in lines) == 1
    return lines


def make_board(folder: Path, **facts: object) -> Path:
    fakes.write(folder / "r", backbone=fakes.facts(**facts), git_commit="a" * 40)
    submit(folder / "r", folder / "board", DECLARATION)
    return folder / "board"


def trained(recipe: Recipe, stated: bool = True, **changes: object) -> BackboneFacts:
    """Return facts of a run of this recipe, whose results hold it or only name it."""
    fields = {"recipe": recipe.model_dump(mode="json") | changes}
    fields |= {"source_fingerprint": "x", "device": "cpu"}
    training = Training.model_validate(fields | COSTS) if stated else None
    digest = training.recipe_digest if training else recipe.digest()
    update = {"recipe": recipe.name, "recipe_digest": digest, "training": training, "steps": 1}
    return fakes.facts().model_copy(update=update)


def test_two_specs_of_one_task_get_two_commands() -> None:
    """Numbers of episodes and probes do not matter: one command takes a spec of each task."""
    specs = [AFFINE, AFFINE.model_copy(update={"bn_mode": "train"}), *SPECS]
    entry = fakes_site.entry("entry", fakes.facts(), 0.5, ["eurosat"], specs)
    _, second = (one for one in entry.loaded if one.result.task.head == "affine")
    others = {f"--spec={one}" for one in entry.loaded if one is not second}
    first, last, _ = commands(recompute(entry, "board"))
    assert others < {*first}
    assert f"--spec={second}" in last
    assert not others & {*last}


@pytest.mark.parametrize(
    "ref", ["x'; touch pwned; '", "$(touch pwned)", "`touch pwned`", 'a b" && touch pwned #', "-rf"]
)
def test_no_reference_injects(ref: str, tmp_path: Path, cli: CommandLine) -> None:
    board = make_board(tmp_path, ref=ref, source="file", architecture="resnet18; touch pwned")
    command = ("leaderboard", "recompute", "entry", "--board", board)
    script = cli(*command).out
    assert f"commit {'a' * 40}, " in script
    assert ", threads 1" in script
    (tmp_path / "bin").mkdir()
    for name in ("fsbench", "git", "python"):
        stub = tmp_path / "bin" / name
        stub.write_text('#!/bin/sh\nprintf "%s\\n" "$0" "$@" >> calls.txt\n')
        stub.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    subprocess.run(["sh", "-eu", "-c", script], cwd=home, env={"PATH": path}, check=True)
    assert [path.name for path in home.iterdir()] == ["calls.txt"]
    calls = (home / "calls.txt").read_text().splitlines()
    assert {f"--model={ref}", "--arch=resnet18; touch pwned", "torch==2.15.0"} < {*calls}


def test_a_run_of_a_recipe_starts_with_its_pretraining(tmp_path: Path) -> None:
    recipe = registry.load_recipe("toy/normal").replace({"seed": 2, "lr": 0.07})
    entry = Board.open(make_board(tmp_path, **dict(trained(recipe)))).entry("entry")
    command, evaluation, _ = commands(recompute(entry, "board"))
    assert (command[:2], command[3:]) == (["fsbench", "pretrain"], ["--output=runs"])
    assert read_recipe(Path(command[2])) == recipe
    assert evaluation[2] == f"--model=run:runs/{recipe.label}"


def test_only_the_recipe_of_the_run_is_proposed() -> None:
    recipe = registry.load_recipe("toy/normal").replace({"seed": 2})
    for facts in (trained(recipe, stated=False), trained(recipe, later=1)):
        lines = only(dict(facts), {})
        assert [command[1] for command in commands(lines)] == ["benchmark", "leaderboard"]
        assert any("pretrain it yourself" in line for line in lines)
    for change in ({"later": 1}, {"methods": [{"name": "unheard"}]}, {"name": "lost/normal"}):
        assert recipe_of(trained(recipe, **change)) is None


@pytest.mark.parametrize("scale", ["toy", "pilot"])
@pytest.mark.parametrize("name", METHODS.names())
def test_results_hold_every_recipe_and_its_control(name: str, scale: str) -> None:
    recipe = registry.load_recipe(f"{scale}/{name}")
    for variant in (recipe, registry.control_recipe(recipe), recipe.replace({"seed": 4})):
        assert recipe_of(trained(variant)) == variant
    base = registry.load_recipe("toy/normal")
    both = registry.compose_methods(base, "swr+weight_compander", {"swr.lam": 0.02, "width": 8})
    assert recipe_of(trained(both)) == both


@pytest.mark.parametrize(("facts", "made", "network", "machine"), read_cases("boards")["commands"])
def test_commands_name_weights_specs_and_machine(
    facts: dict[str, Any], made: dict[str, Any], network: list[str], machine: list[str]
) -> None:
    specs = [f"--spec={one}" for one in make_entry(facts, made, made).loaded]
    model, *others = network
    where = machine[1:3] if "features_device" in made else []
    assert commands(only(facts, {}, **made)) == [
        ["fsbench", "benchmark", model, *specs, *others, *machine, "--output=results"],
        ["fsbench", "leaderboard", "verify", "entry", *network, *where, "--board=board"],
    ]


@pytest.mark.parametrize(
    ("change", "groups"),
    [({}, 1), ({"threads": 2}, 2), ({"packages": {"torch": "1"}}, 2), ({"command": "other"}, 1)],
)
def test_every_environment_has_its_commands(change: dict[str, Any], groups: int) -> None:
    lines = recompute(make_entry({}, {}, change), "board")
    assert sum(" pip install " in line for line in lines) == groups


def test_only_plain_versions_reach_the_script() -> None:
    lines = only({}, {}, packages={"torch": "2.0+cpu", "-r evil": "1", "x; y": "1"})
    assert "python -m pip install torch==2.0+cpu ." in lines


@pytest.mark.parametrize(
    "facts",
    [
        {"source": "py"},
        {"ref": "py:os:system"},
        {"ref": "a.pth@py:os:system", "source": "file"},
        {"architecture": "py:os:system", "source": "file"},
        {"source": "module", "ref": "module:mine"},
        dict(trained(registry.load_recipe("toy/normal"), source="py:os:system")),
    ],
)
def test_code_is_never_proposed(facts: dict[str, object]) -> None:
    with pytest.raises(ValidationFailed, match="code of its author"):
        recompute(make_entry(facts, {}, {}), "board")
