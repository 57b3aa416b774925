"""The README cannot rot: its tables come from the registries, its commands exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from fsbench.api.readme import BLOCK, fill
from fsbench.cli.main import build
from leaderboard.methods.build import of_board
from leaderboard.methods.figures import named
from leaderboard.pilot.checks import correlate_transfer
from leaderboard.published import ENTRIES

ROOT = Path(__file__).resolve().parent.parent
PILOT = ROOT / "leaderboard" / "pilot"
README = (ROOT / "README.md").read_text(encoding="utf8")
STUDY = (PILOT / "README.md").read_text(encoding="utf8")
CONSOLE = re.findall(r"```console\n(.*?)```", README + STUDY, re.DOTALL)
JOINED = "\n".join(CONSOLE).replace("\\\n", " ")
COMMANDS = [
    line[2:].split("  #")[0] for line in JOINED.splitlines() if line.startswith("$ fsbench")
]


@pytest.mark.parametrize(("text", "tables"), [(README, 7), (STUDY, 1)], ids=["README", "pilot"])
def test_tables_are_those_of_the_registries(text: str, tables: int) -> None:
    assert len(BLOCK.findall(text)) >= tables
    assert fill(text) == text, "run `make readme`"


def test_pictures_of_the_pilot_study_are_those_of_its_entries() -> None:
    drawn = named(of_board(ENTRIES))
    held = {p.name: p.read_text(encoding="utf8") for p in (PILOT / "figures").iterdir()}
    assert held == drawn, "run `make readme`"


def test_correlations_of_the_pilot_study_are_those_of_the_script() -> None:
    boards = [board.model_dump(mode="json") for board in of_board(ENTRIES)]
    said = "\n".join(correlate_transfer.lines(boards, ENTRIES, PILOT / "analyses"))
    assert f"```text\n{said}\n```" in STUDY


@pytest.mark.parametrize("text", [README, STUDY], ids=["README", "pilot"])
def test_links_and_pictures_are_files(text: str) -> None:
    home = ROOT if text is README else PILOT
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert targets
    assert [t for t in targets if not (home / t).exists()] == []


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_of_the_readme_exist_with_these_options(line: str) -> None:
    words = shlex.split(line)[1:]
    command = get_command(build())
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
    assert not getattr(command, "commands", {}), f"no such command: {line}"
    known = {flag for parameter in command.params for flag in parameter.opts}
    assert {word for word in words if word.startswith("-")} <= known, line


def test_every_command_group_is_in_the_readme() -> None:
    for name in get_command(build()).commands:  # type: ignore[attr-defined]
        assert f"fsbench {name}" in README, name


def test_the_map_names_every_room() -> None:
    for room in ("fsbench/data", "fsbench/backbones", "pretrain", "protocols", "leaderboard"):
        assert f"`{room}`" in README, room
