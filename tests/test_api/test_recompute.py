"""fsbench leaderboard recompute: the commands give the recipe and the specs and inject nothing."""

import json
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import fakes
from support import site as fakes_site
from support.cli import CommandLine
from support.fakes import DECLARATION

from fsbench.api.pretrain import read_recipe
from fsbench.api.recompute import EnvironmentCommands, list_evaluations, recipe_of, recompute
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


def only(facts: dict[str, Any], update: dict[str, Any], **made: Any) -> EnvironmentCommands:
    """Return the commands of an entry of one environment."""
    (recomputation,) = recompute(make_entry(facts, made, made, **update), "board")
    return recomputation


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
    loaded = fakes_site.entry("entry", fakes.facts(), 0.5, ["eurosat"], specs).loaded
    _, second = (one for one in loaded if one.result.task.head == "affine")
    others = tuple(f"--spec={one}" for one in loaded if one is not second)
    assert list_evaluations(loaded, []) == [others, (f"--spec={second}",)]


@pytest.mark.parametrize(
    "ref", ["x'; touch pwned; '", "$(touch pwned)", "`touch pwned`", 'a b" && touch pwned #', "-rf"]
)
def test_no_reference_injects(ref: str, tmp_path: Path, cli: CommandLine) -> None:
    board = make_board(tmp_path, ref=ref, source="file", architecture="resnet18; touch pwned")
    command = ("leaderboard", "recompute", "entry", "--board", board)
    (machine,) = json.loads(cli(*command, "--format", "json").out)["machines"]
    assert machine["environment"]["threads"] == "1"
    assert all(shlex.split(shlex.join(words)) == words for words in machine["commands"])
    script = cli(*command).out
    assert f"# computed by the code of: git checkout {'a' * 40}\n" in script
    (tmp_path / "bin").mkdir()
    for name in ("fsbench", "git", "python"):
        stub = tmp_path / "bin" / name
        stub.write_text('#!/bin/sh\nprintf "%s\\n" "$0" "$@" >> calls.txt\n')
        stub.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    subprocess.run(["sh", "-eu", "-c", script], cwd=home, env={"PATH": path}, check=True)
    assert sorted(p.name for p in home.iterdir()) == ["calls.txt", "constraints.txt"]
    calls = (home / "calls.txt").read_text().splitlines()
    assert {f"--model={ref}", "--arch=resnet18; touch pwned"} < {*calls}
    assert (home / "constraints.txt").read_text() == "torch==2.15.0\n"


def test_a_run_of_a_recipe_starts_with_its_pretraining(tmp_path: Path) -> None:
    recipe = registry.load_recipe("toy/normal").replace({"seed": 2, "lr": 0.07})
    entry = Board.open(make_board(tmp_path, **dict(trained(recipe)))).entry("entry")
    (recomputation,) = recompute(entry, "board")
    command, evaluation, _ = recomputation.commands
    assert (command[:2], command[3:]) == (("fsbench", "pretrain"), ("--output=runs",))
    assert read_recipe(Path(command[2])) == recipe
    assert evaluation[2] == f"--model=run:runs/{recipe.label}"


def test_only_the_recipe_of_the_run_is_proposed() -> None:
    recipe = registry.load_recipe("toy/normal").replace({"seed": 2})
    for facts in (trained(recipe, stated=False), trained(recipe, later=1)):
        recomputation = only(dict(facts), {})
        assert [command[1] for command in recomputation.commands] == ["benchmark", "leaderboard"]
        assert any("pretrain it yourself" in note for note in recomputation.notes)
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


@pytest.mark.parametrize(
    ("facts", "made", "network", "machine"),
    [
        ({}, {}, ["--model=run:runs/a"], ["--threads=1", "--device=cpu"]),
        (
            {"source": "file", "ref": "w.pt", "architecture": "resnet18", "random_init": 4},
            {"threads": 3, "device": "NVIDIA H100", "batch_size": 7},
            ["--model=w.pt", "--arch=resnet18", "--random-init=4"],
            ["--threads=3", "--device=cuda", "--batch-size=7"],
        ),
    ],
)
def test_commands_name_weights_specs_and_machine(
    facts: dict[str, Any], made: dict[str, Any], network: list[str], machine: list[str]
) -> None:
    specs = [f"--spec={one}" for one in make_entry(facts, made, made).loaded]
    assert only(facts, {}, **made).commands == [
        ("fsbench", "benchmark", *network, *specs, *machine, "--output=results"),
        ("fsbench", "leaderboard", "verify", "entry", *network, "--board=board"),
    ]


@pytest.mark.parametrize(
    ("change", "groups"),
    [({}, 1), ({"threads": 2}, 2), ({"packages": {"torch": "1"}}, 2), ({"command": "other"}, 1)],
)
def test_every_environment_has_its_commands(change: dict[str, Any], groups: int) -> None:
    assert len(recompute(make_entry({}, {}, change), "board")) == groups


@pytest.mark.parametrize(
    ("commit", "checkout", "is_noted"),
    [
        ("a" * 40, "a" * 40, False),
        ("a" * 40 + "-dirty", "a" * 40, True),
        *(("--exec=touch", "", False), ("main", "", False), (None, "", True)),
    ],
)
def test_only_hashes_and_plain_versions_reach_the_script(
    commit: str | None, checkout: str, is_noted: bool
) -> None:
    packages = {"torch": "2.0+cpu", "-r evil": "1", "x; y": "1"}
    recomputation = only({}, {}, git_commit=commit, packages=packages)
    assert recomputation.commit == checkout
    assert any("uncommitted" in note for note in recomputation.notes) == is_noted
    assert (f"git checkout {checkout}" in recomputation.script()) == bool(checkout)
    assert recomputation.constraints == ["torch==2.0+cpu"]


@pytest.mark.parametrize(
    ("name", "option", "note"),
    [
        ("folder-mine", "--tasks=folder:DIR", "folder of the submitter"),
        ("hub-a-b", "--tasks=hf-hub:ORG/NAME?split=NAME", "complete its reference"),
    ],
)
def test_images_of_the_submitter_are_left_to_the_reader(name: str, option: str, note: str) -> None:
    data = make_entry({}, {}, {}).loaded[0].result.dataset.model_copy(update={"name": name})
    recomputation = only({}, {"dataset": data})
    assert option in recomputation.commands[0]
    assert any(note in text for text in recomputation.notes)


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
