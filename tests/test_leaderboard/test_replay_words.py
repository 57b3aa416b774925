"""What `leaderboard reproduce` prints for an entry, word by word; nothing is read or run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support import fakes
from support import site as fakes_site

from fsbench.api.replay import Replay, replays
from fsbench.core.errors import ValidationFailed
from fsbench.core.specs import EpisodeSpec, EpisodicSpec
from leaderboard.board.board import BoardEntry
from leaderboard.ranking.outcomes import VerifiedResult

TEXTS = ("ref", "architecture", "recipe", "task", "platform", "device", "packages")
SPECS = [EpisodicSpec(episode=EpisodeSpec(k_shot=k)) for k in (1, 5)]


def entry(facts: dict[str, object] | None = None, **made: object) -> BoardEntry:
    """Two cells; made: changes of the provenance of the second one."""
    found = fakes_site.entry("entry", fakes.facts(**(facts or {})), 0.5, ["eurosat"], SPECS)  # type: ignore[arg-type]
    first, second = found.cells
    changed = second.result.model_copy(update={"provenance": fakes.provenance(**made)})
    return replace(found, cells=(first, moved(second, changed)))


def moved(cell: Any, result: Any) -> VerifiedResult:
    return VerifiedResult(cell.path, result, cell.outcomes)


def every(**made: object) -> BoardEntry:
    """Both cells made alike."""
    found = entry(**made)
    second = found.cells[1].result
    first = found.cells[0].result.model_copy(update={"provenance": second.provenance})
    return replace(found, cells=(moved(found.cells[0], first), found.cells[1]))


def only(entry: BoardEntry) -> Replay:
    (found,) = replays(entry, "board")
    return found


def test_the_commands_of_a_plain_entry() -> None:
    assert only(entry()).commands == [
        (
            *("fsbench", "episodic", "--model=run:runs/a"),
            "--tasks=eurosat:5w1s/linear@ibm,eurosat:5w5s/linear@ibm",
            *("--input-size=224", "--episodes=600", "--seed=0", "--threads=1", "--device=cpu"),
            "--output=results",
        ),
        ("fsbench", "leaderboard", "verify", "entry", "--model=run:runs/a", "--board=board"),
    ]


def test_the_machine_is_that_of_the_results() -> None:
    command = only(every(threads=3, device="NVIDIA H100", batch_size=7)).commands[0]
    assert command[-4:] == ("--threads=3", "--device=cuda", "--batch-size=7", "--output=results")


def test_the_weights_are_named_for_both_commands() -> None:
    file = {"source": "file", "ref": "w.pt", "architecture": "resnet18", "random_init": 4}
    words = {"--model=w.pt", "--arch=resnet18", "--random-init=4"}
    assert all(words <= set(command) for command in only(entry(file)).commands)


@pytest.mark.parametrize(
    ("change", "groups"),
    [({}, 1), ({"threads": 2}, 2), ({"packages": {"torch": "1"}}, 2), ({"command": "other"}, 1)],
)
def test_every_environment_has_commands_of_its_own(change: dict[str, Any], groups: int) -> None:
    assert len(replays(entry(**change), "board")) == groups


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
def test_only_a_hash_is_checked_out(commit: str | None, checkout: str, noted: bool) -> None:
    found = only(every(git_commit=commit))
    assert found.commit == checkout
    assert any("not committed" in note for note in found.notes) == noted
    assert (f"git checkout {checkout}" in found.script()) == bool(checkout)


def test_only_plain_versions_of_plain_packages_are_pinned() -> None:
    packages = {"torch": "2.0+cpu", "-r evil": "1", "numpy": "@ http://evil", "x; y": "1"}
    assert only(every(packages=packages)).constraints == ["torch==2.0+cpu"]


def test_a_folder_of_ones_own_is_left_to_the_reader() -> None:
    found = entry()
    cells = []
    for cell in found.cells:
        data = cell.result.dataset.model_copy(update={"name": "folder-mine"})
        task = replace(cell.result.task, dataset="folder-mine")
        changed = cell.result.model_copy(update={"dataset": data, "task": task})
        cells.append(moved(cell, changed))
    shown = only(replace(found, cells=tuple(cells)))
    assert "--tasks=folder:DIR:5w1s/linear@ibm,folder:DIR:5w5s/linear@ibm" in shown.commands[0]
    assert any("folder of its maker's own" in note for note in shown.notes)


@pytest.mark.parametrize(
    "name", ["ref", "architecture", "recipe", "platform", "device", "packages"]
)
def test_no_text_with_control_characters_is_printed(name: str) -> None:
    hostile = "x\x1b[2J"
    if name in ("ref", "architecture", "recipe"):
        bad = entry({name: hostile})
    elif name == "task":
        bad = entry()
        first = bad.cells[0]
        task = first.result.model_copy(update={"task": hostile})
        bad = replace(bad, cells=(moved(first, task),))
    else:
        bad = entry(**{name: {hostile: "1"} if name == "packages" else hostile})
    with pytest.raises(ValidationFailed, match="control characters"):
        replays(bad, "board")


@pytest.mark.parametrize("facts", [{"source": "py"}, {"ref": "py:os:system"}])
def test_code_is_never_proposed(facts: dict[str, object]) -> None:
    with pytest.raises(ValidationFailed, match="code of its author"):
        replays(entry(facts), "board")


def test_a_name_that_passes_for_an_option_is_refused() -> None:
    found = entry()
    declaration = found.file.declaration.model_copy(update={"name": "-rf"})
    file = found.file.model_copy(update={"declaration": declaration})
    with pytest.raises(ValidationFailed, match="pass for an option"):
        replays(replace(found, file=file), "board")
