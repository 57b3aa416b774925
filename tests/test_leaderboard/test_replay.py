"""fsbench leaderboard reproduce: the printed commands give the very specs, and inject nothing."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support import fakes
from support.fakes import DECLARATION
from typer.main import get_command

from fsbench.api.replay import evaluations, replays
from fsbench.api.request import (
    EvaluationRequest,
    parse_head_settings,
    parse_probe_settings,
    parse_tasks,
)
from fsbench.cli.evaluate import request
from fsbench.cli.main import build, run
from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodicSpec, Spec
from fsbench.core.tasks import Kind, Options, TaskId
from fsbench.results.building import build as result_of
from fsbench.results.reading import cells
from leaderboard.board.board import Board
from leaderboard.submission.intake import submit_results
from pretrain.recipes import registry

SETS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("toy_tiles:5w1s", (), {}),
    ("toy_rims:3w20s@startup", (), {"seed": 3, "input_size": 64}),
    ("toy_tiles:5w5s/ridge", ("ridge.lam=10", "ridge.normalize=l2"), {}),
    ("toy_tiles:5w5s/soft_kmeans", (), {}),
    ("toy_tiles:5w1s/affine", (), {"bn_mode": "train"}),
    ("toy_tiles:probe", ("probe.views=2", "probe.schedule=cosine"), {"seed": 5}),
    ("toy_tiles:probe", (), {"limit": 3}),
    ("dogs:probe", ("probe.select=held_out",), {}),
    ("dogs:knn", ("probe.k=5", "probe.metric=euclidean"), {}),
    ("toy_tiles:knn", ("probe.temperature=0.2",), {}),
)


def wanted(task: str, sets: tuple[str, ...], fields: dict[str, Any]) -> Spec:
    asked = EvaluationRequest(
        parse_tasks([task], Options()),
        settings=parse_head_settings(sets),
        probing=parse_probe_settings(sets),
        **{"input_size": 32, **fields},
    )
    return asked.spec(asked.tasks[0], 32)


def fake(spec: Spec, dataset: str) -> Result:
    """A result of this spec; what matters here follows from spec, data set and flags."""
    data = fakes.official("toy_tiles")
    one = result_of(fakes.facts(), data, fakes.episodic(), fakes.episodes(
        fakes.episodic(), data, range(40), 0.5), False, fakes.provenance())  # fmt: skip
    limited = ("limited",) if getattr(spec, "epochs", 0) == 3 else ()
    named = data.model_copy(update={"name": dataset})
    return one.model_copy(update={"spec": spec, "dataset": named, "flags": limited,
                                  "task": TaskId.of(dataset, spec)})  # fmt: skip


@pytest.mark.parametrize(("task", "sets", "fields"), SETS)
def test_the_command_line_reads_them_back_as_the_same_spec(
    task: str, sets: tuple[str, ...], fields: dict[str, Any]
) -> None:
    spec = wanted(task, sets, fields)
    notes: list[str] = []
    found = evaluations([fake(spec, task.partition(":")[0])], notes)
    ((options, tasks),) = found.items()
    assert notes == []
    kind, *rest = options
    command = get_command(build()).commands[kind]  # type: ignore[attr-defined]
    words = ["--model=x", f"--tasks={','.join(tasks)}", *rest]
    given = dict(command.make_context(kind, words).params)
    kinds: tuple[Kind, ...] = ("episodic",) if kind == "episodic" else ("probe",)
    asked = request(kinds, given)
    assert asked.spec(asked.tasks[0], 32) == spec
    assert asked.n_episodes == (40 if isinstance(spec, EpisodicSpec) else asked.n_episodes)


def test_what_no_option_gives_is_said() -> None:
    notes: list[str] = []
    assert evaluations([fake(fakes.episodic(), "toy_tiles")], notes) == {}
    assert "no options give its spec" in notes[0]


def entry(folder: Path, **facts: object) -> Path:
    spec = wanted("toy_tiles:5w1s", (), {})
    assert isinstance(spec, EpisodicSpec)
    data, backbone = fakes.official(), fakes.facts(**facts)
    from fsbench.results import ResultStore

    cell = ResultStore(folder / "r").cell(backbone, data, spec, "model")
    cell.write_block(0, fakes.episodes(spec, data, range(40), 0.5))
    cell.finish(range(40), provenance=fakes.provenance(git_commit="a" * 40))
    submit_results(folder / "r", folder / "board", DECLARATION)
    return folder / "board"


@pytest.mark.parametrize(
    "ref", ["x'; touch pwned; '", "$(touch pwned)", "`touch pwned`", 'a b" && touch pwned #', "-rf"]
)
def test_no_reference_injects(ref: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = entry(tmp_path, ref=ref, source="file", architecture="resnet18; touch pwned")
    with pytest.raises(SystemExit):
        run(["leaderboard", "reproduce", "entry", "--board", str(board)])
    script = capsys.readouterr().out
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
    assert "checkout" in calls


def test_what_could_do_harm_when_printed_or_pasted_is_refused(tmp_path: Path) -> None:
    from support.forged import forge

    board = entry(tmp_path)
    assert replays(Board.open(board).entry("entry"), "board")
    for change, match in (
        ({"platform": "x\x1b[2J"}, "control characters"),
        ({"packages": {"torch\n": "1"}}, "control characters"),
    ):
        forge(board / "entry", "5w", **change)
        with pytest.raises(ValidationFailed, match=match):
            replays(Board.open(board).entry("entry"), "board")
    forge(board / "entry", "5w", platform="Linux", packages={"torch": "2.15.0 @ http://evil"})
    (one,) = replays(Board.open(board).entry("entry"), "board")
    assert one.constraints == []


def test_code_of_a_submitter_is_not_proposed(tmp_path: Path) -> None:
    folder = tmp_path / "board"
    held = Board.open(entry(tmp_path)).entry("entry")
    cell = held.cells[0]
    facts = cell.result.backbone.model_copy(update={"ref": "py:os:system", "source": "py"})
    moved = cell.result.model_copy(update={"backbone": facts})
    hand = type(held)(held.file, (type(cell)(cell.path, moved, cell.records),))
    with pytest.raises(ValidationFailed, match="code of its author"):
        replays(hand, str(folder))


def test_a_run_of_a_recipe_starts_with_its_pretraining(tmp_path: Path) -> None:
    recipe = registry.load_recipe("toy/normal").replace({"seed": 2})
    board = entry(tmp_path, recipe="toy/normal", recipe_digest=recipe.digest())
    (one,) = replays(Board.open(board).entry("entry"), "board")
    assert ("fsbench", "pretrain", "toy/normal", "--seed=2", "--output=runs") in one.commands
    assert f"--model=run:runs/{recipe.label}" in one.commands[-2]
    other = entry(tmp_path / "b", recipe="toy/normal", recipe_digest="0" * 64)
    (one,) = replays(Board.open(other).entry("entry"), "board")
    assert any("is not the run's" in note for note in one.notes)


def test_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    board = entry(tmp_path)
    with pytest.raises(SystemExit):
        run(["leaderboard", "reproduce", "entry", "--board", str(board), "--format", "json"])
    (machine,) = json.loads(capsys.readouterr().out)["machines"]
    assert machine["environment"]["threads"] == "1"
    assert all(shlex.split(shlex.join(command)) == command for command in machine["commands"])
    assert len(list(cells(board))) == 1
