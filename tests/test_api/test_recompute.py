"""fsbench leaderboard recompute: the commands give the recipe and the specs and inject nothing."""

import json
import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import fakes
from support import site as fakes_site
from support.cli import call
from support.fakes import DECLARATION

from fsbench.api.pretrain import read_recipe
from fsbench.api.recompute import EnvironmentCommands, list_evaluations, recipe_of, recompute
from fsbench.api.submit import submit
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import BackboneFacts, Training
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from fsbench.results.entry import Loaded
from fsbench.results.verification import read_loaded
from leaderboard.store import Board, BoardEntry
from pretrain import METHODS
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe

COSTS = {"steps": 1, "samples": 1, "flops": 1, "seconds": 1.0, "peak_memory_bytes": 0}
SPECS = [EpisodicSpec(episode=EpisodeSpec(k_shot=k)) for k in (1, 5)]
AFFINE = EpisodicSpec(adaptation="affine")


def test_two_specs_of_one_task_get_two_commands() -> None:
    """Numbers of episodes and probes do not matter: one command takes a spec of each task."""
    specs = [AFFINE, AFFINE.model_copy(update={"bn_mode": "train"}), *SPECS]
    cells = fakes_site.entry("entry", fakes.facts(), 0.5, ["eurosat"], specs).loaded
    _, second = (cell for cell in cells if cell.result.task.head == "affine")
    others = tuple(f"--spec={cell}" for cell in cells if cell is not second)
    assert list_evaluations(cells, []) == [others, (f"--spec={second}",)]


def board_with_entry(folder: Path, **facts: object) -> Path:
    spec = SPECS[0]
    data, backbone = fakes.official(), fakes.facts(**facts)
    records = fakes.episodes(spec, data, range(40), 0.5)
    fakes.store(folder / "r", spec, records, backbone=backbone, data=data, git_commit="a" * 40)
    submit(folder / "r", folder / "board", DECLARATION)
    return folder / "board"


@pytest.mark.parametrize(
    "ref", ["x'; touch pwned; '", "$(touch pwned)", "`touch pwned`", 'a b" && touch pwned #', "-rf"]
)
def test_no_reference_injects(ref: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = board_with_entry(tmp_path, ref=ref, source="file", architecture="resnet18; touch pwned")
    call("leaderboard", "recompute", "entry", "--board", str(board))
    script = capsys.readouterr().out
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
    assert f"--model={ref}" in calls
    assert "--arch=resnet18; touch pwned" in calls
    assert (home / "constraints.txt").read_text() == "torch==2.15.0\n"


def trained(recipe: Recipe, stated: bool = True, **changes: object) -> BackboneFacts:
    """Facts of a run of this recipe, whose results hold it or only name it."""
    fields = {"recipe": recipe.model_dump(mode="json") | changes}
    fields |= {"source_fingerprint": "x", "device": "cpu"}
    training = Training.model_validate(fields | COSTS) if stated else None
    digest = training.recipe_digest if training else recipe.digest()
    update = {"recipe": recipe.name, "recipe_digest": digest, "training": training, "steps": 1}
    return fakes.facts().model_copy(update=update)


def test_a_run_of_a_recipe_starts_with_its_pretraining(tmp_path: Path) -> None:
    recipe = registry.load_recipe("toy/normal").replace({"seed": 2, "lr": 0.07})
    board = board_with_entry(tmp_path, **dict(trained(recipe)))
    command, evaluation, _ = only(Board.open(board).entry("entry")).commands
    assert command[:2] == ("fsbench", "pretrain")
    assert command[3:] == ("--output=runs",)
    assert read_recipe(Path(command[2])) == recipe
    assert evaluation[2] == f"--model=run:runs/{recipe.label}"


def test_only_the_recipe_of_the_run_is_proposed() -> None:
    recipe = registry.load_recipe("toy/normal").replace({"seed": 2})
    for facts in (trained(recipe, stated=False), trained(recipe, later=1)):
        recomputation = only(entry_of(dict(facts)))
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


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = board_with_entry(tmp_path)
    call("leaderboard", "recompute", "entry", "--board", str(board), "--format", "json")
    (machine,) = json.loads(capsys.readouterr().out)["machines"]
    assert machine["environment"]["threads"] == "1"
    assert all(shlex.split(shlex.join(command)) == command for command in machine["commands"])
    assert len(list(read_loaded(board))) == 1


def entry_of(facts: Mapping[str, object] | None = None, **made: object) -> BoardEntry:
    """An entry with two results; made: changes of the provenance of the second one."""
    backbone = fakes.facts(**dict(facts or {}))
    entry = fakes_site.entry("entry", backbone, 0.5, ["eurosat"], SPECS)
    return change_results(entry, entry.loaded[1:], provenance=fakes.provenance(**made))


def change_results(entry: BoardEntry, changed: Sequence[Loaded], **update: object) -> BoardEntry:
    """Return the entry with other facts of some of its results."""
    cells = [
        replace(cell, result=cell.result.model_copy(update=update)) if cell in changed else cell
        for cell in entry.loaded
    ]
    return replace(entry, loaded=tuple(cells))


def of_one_environment(facts: Mapping[str, object] | None = None, **made: object) -> BoardEntry:
    entry = entry_of(facts)
    return change_results(entry, entry.loaded, provenance=fakes.provenance(**made))


def only(entry: BoardEntry) -> EnvironmentCommands:
    (recomputation,) = recompute(entry, "board")
    return recomputation


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
    entry = of_one_environment(facts, **made)
    specs = [f"--spec={cell}" for cell in entry.loaded]
    assert only(entry).commands == [
        ("fsbench", "benchmark", *network, *specs, *machine, "--output=results"),
        ("fsbench", "leaderboard", "verify", "entry", *network, "--board=board"),
    ]


@pytest.mark.parametrize(
    ("change", "groups"),
    [({}, 1), ({"threads": 2}, 2), ({"packages": {"torch": "1"}}, 2), ({"command": "other"}, 1)],
)
def test_every_environment_has_its_commands(change: dict[str, Any], groups: int) -> None:
    assert len(recompute(entry_of(**change), "board")) == groups


@pytest.mark.parametrize(
    ("commit", "checkout", "noted"),
    [
        ("a" * 40, "a" * 40, False),
        ("a" * 40 + "-dirty", "a" * 40, True),
        ("--exec=touch", "", False),
        ("main", "", False),
        (None, "", True),
    ],
)
def test_only_a_hash_is_named_for_a_checkout(
    commit: str | None, checkout: str, noted: bool
) -> None:
    recomputation = only(of_one_environment(git_commit=commit))
    assert recomputation.commit == checkout
    assert any("uncommitted" in note for note in recomputation.notes) == noted
    assert (f"git checkout {checkout}" in recomputation.script()) == bool(checkout)


def test_only_plain_versions_of_plain_packages_are_pinned() -> None:
    packages = {"torch": "2.0+cpu", "-r evil": "1", "x; y": "1"}
    assert only(of_one_environment(packages=packages)).constraints == ["torch==2.0+cpu"]


@pytest.mark.parametrize(
    ("name", "option", "note"),
    [
        ("folder-mine", "--tasks=folder:DIR", "folder of the submitter"),
        ("hub-a-b", "--tasks=hf-hub:ORG/NAME?split=NAME", "complete its reference"),
    ],
)
def test_images_of_the_submitter_are_left_to_the_reader(name: str, option: str, note: str) -> None:
    entry = entry_of()
    data = entry.loaded[0].result.dataset.model_copy(update={"name": name})
    recomputation = only(change_results(entry, entry.loaded, dataset=data))
    assert option in recomputation.commands[0]
    assert any(note in text for text in recomputation.notes)


@pytest.mark.parametrize(
    "facts",
    [
        {"source": "py"},
        {"ref": "py:os:system"},
        {"ref": "a.pth@py:os:system", "source": "file"},
        {"architecture": "py:os:system", "source": "file"},
        dict(trained(registry.load_recipe("toy/normal"), source="py:os:system")),
    ],
)
def test_code_is_never_proposed(facts: dict[str, object]) -> None:
    with pytest.raises(ValidationFailed, match="code of its author"):
        recompute(entry_of(facts), "board")
