"""The command line as a whole: exit codes, spelling of options, config files, clean errors."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from support.cli import CommandLine

from fsbench.cli import main, options
from fsbench.cli.main import PANELS, build

ROOT = Path(__file__).resolve().parents[2]


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command below a group, with the words that call it."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, sub in command.commands.items():
        yield from leaves(sub, (*path, name))


COMMANDS = dict(leaves(typer.main.get_command(build())))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_of_every_command_shows_all_of_its_options(
    words: tuple[str, ...], cli: CommandLine
) -> None:
    shown = cli(*words, "--help").out
    assert "…" not in shown
    parameters = {parameter.name: parameter for parameter in COMMANDS[words].params}
    assert COMMANDS[words].help
    assert {"quiet", "verbose"} <= parameters.keys()
    for parameter in parameters.values():
        assert parameter.hidden or max(parameter.opts, key=len)[:20].lower() in shown.lower()
        assert "[" not in (parameter.help or ""), "markup"


CODE = "names code to run: {}py:os:getcwd"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("tsks: a\n", ["bad.yaml", "tasks"]),
        ("- a\n", ["bad.yaml", "mapping"]),
        ("a: [\n", ["bad.yaml", "YAML"]),
        ("config: self.yaml\n", ["bad.yaml", "config"]),
        ("--seed: 2\n", ["bad.yaml", "--seed"]),
        ("model: py:os:getcwd\n", [CODE.format("")]),
        ("model: [timm/resnet18, 'py:os:getcwd']\n", [CODE.format("")]),
        ("model: a.pth@py:os:getcwd\n", [CODE.format("a.pth@")]),
        ("model: a.pth\narch: py:os:getcwd\n", [CODE.format("")]),
    ],
)
def test_a_config_file_is_read_strictly_and_names_no_code(
    text: str, parts: list[str], tmp_path: Path, cli: CommandLine
) -> None:
    config = tmp_path / "bad.yaml"
    config.write_text(text)
    shown = cli("episodic", "-m", "fsbench/toy_resnet", "-C", config, code=2).err
    assert all(part in shown for part in parts)


def test_the_panels_of_the_help_list_every_command(cli: CommandLine) -> None:
    shown = cli("--help").out
    names = [name for commands in PANELS.values() for name in commands]
    places = [shown.index(f"│ {name} ") for name in names]
    assert places == sorted(places)
    assert {words.split()[0] for words in options.COMMANDS} == {*names}


def imported_by(*arguments: str) -> set[str]:
    """Modules that a call of the program has imported when it ends."""
    code = (
        "import sys; from fsbench.cli.main import run\n"
        "try: run()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    return {*done.stderr.splitlines()[-1].split()}


@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        ("--help", {"numpy", "scipy", "torch", "yaml"}),
        ("leaderboard show --help", {"numpy", "scipy", "torch", "yaml"}),
        (
            "leaderboard show --board leaderboard/studies/pilot/entries",
            {"pandas", "rich.console", "scipy.stats", "torch"},
        ),
        ("ls", {"scipy", "torch", "yaml"}),
        ("episodes hash toy_tiles:5w1s --episodes 1", {"pandas", "scipy", "torch"}),
    ],
)
def test_a_command_imports_what_it_needs(words: str, unneeded: set[str]) -> None:
    assert not unneeded & imported_by(*words.split())


@pytest.mark.parametrize("policy", [None, "ACTIVE"])
def test_threads_of_torch_wait_passively_unless_the_user_says_else(policy: str | None) -> None:
    code = (
        "import os; from fsbench.cli import main\ntry: main.run()\n"
        "finally: print(*(os.environ[name] for name in main.THREADS))"
    )
    names = set(main.THREADS)
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment |= {"OMP_WAIT_POLICY": policy} if policy else {}
    command = [sys.executable, "-c", code, "ls"]
    shown = subprocess.check_output(command, cwd=ROOT, text=True, env=environment)
    assert shown.splitlines()[-1].split() == [policy or "PASSIVE", "0", "1"]


def test_help_folds_a_paragraph_at_the_width_alone(
    monkeypatch: pytest.MonkeyPatch, cli: CommandLine
) -> None:
    """Docstrings wrap at 100 characters, where a help of 80 shall not break as well."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli("leaderboard", "verify", "--help").out
    assert "which. -t names columns of the entry" in shown


@pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
def test_a_command_that_imports_torch_ends_in_silence(tmp_path: Path) -> None:
    """Triton lists what it still holds at the end unless all of it is freed."""
    call = ["pretrain", "toy/normal", "--set", "plan.round_steps=10", "-o", str(tmp_path)]
    command = [sys.executable, "-m", "fsbench", *call]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "leaked" not in done.stderr


def fix_texts() -> Iterator[tuple[str, str]]:
    """The literal texts of every `fix=`, with the place."""
    for package in ("fsbench", "leaderboard", "pretrain", "protocols"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
                if isinstance(node, ast.keyword) and node.arg == "fix":
                    for part in ast.walk(node.value):
                        if isinstance(part, ast.Constant) and isinstance(part.value, str):
                            yield f"{path.relative_to(ROOT)}:{part.lineno}", part.value


def test_hints_of_errors_name_only_options_that_exist() -> None:
    options = {option for c in COMMANDS.values() for p in c.params for option in p.opts}
    options |= {"--help", "--nproc-per-node"}  # the last one: torchrun
    unknown = [
        (place, option)
        for place, text in fix_texts()
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)
        if option not in options
    ]
    assert unknown == []


def test_the_doctor_names_versions_folders_and_cache(tmp_path: Path, cli: CommandLine) -> None:
    parts = cli.json("doctor", "--cache", tmp_path)
    assert {"torch", "cpu", "FSBENCH_DATA"} <= parts.keys()
    assert parts["cache"].startswith(f"{tmp_path} (")
