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
from support import cli

from fsbench.api.options import EvaluationOptions
from fsbench.cli import main, options
from fsbench.cli.main import PANELS, SETTINGS, build
from fsbench.core.errors import UnknownName
from fsbench.core.progress import format_count

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fsbench", "leaderboard", "pretrain", "protocols")
HEAVY = {"numpy", "pandas", "pyarrow", "pydantic", "scipy", "sklearn", "timm", "torch", "yaml"}


def test_help_names_every_command_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call("--help") == 0
    shown = capsys.readouterr().out
    for name in (
        "benchmark", "episodic", "probe", "pretrain", "ls", "show", "data", "episodes", "cache",
        "results", "submit", "leaderboard", "doctor", "demo",
    ):  # fmt: skip
        assert name in shown


def test_every_command_has_a_help_line() -> None:
    for command in build().registered_commands:
        assert command.help or (command.callback and command.callback.__doc__), command.name


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
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.call(*words, "--help") == 0
    shown = capsys.readouterr().out
    assert "…" not in shown
    for parameter in COMMANDS[words].params:
        assert parameter.hidden or max(parameter.opts, key=len)[:20].lower() in shown.lower()


def test_no_help_text_is_taken_for_markup() -> None:
    for words, command in COMMANDS.items():
        for parameter in command.params:
            assert "[" not in (parameter.help or ""), (words, parameter.name)


def test_usage_errors_exit_2_without_a_traceback(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.call("nope") == 2
    assert cli.call("ls", "method") == 2
    shown = capfd.readouterr().err
    assert "did you mean 'methods'" in shown
    assert "Traceback" not in shown


def small_app() -> typer.Typer:
    def echo(chosen: EvaluationOptions) -> None:
        typer.echo(f"{chosen.task_names} {chosen.batch_size}")

    names = ("model", "tasks", "batch_size")
    command = options.Command(echo, EvaluationOptions, names, has_config=True)
    app = typer.Typer(context_settings=SETTINGS)
    app.command()(command.make_callback("echo"))
    return app


@pytest.mark.parametrize("flag", ["--batch-size", "--batch_size", "-b"])
def test_underscore_and_dash_are_the_same_option(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    small_app()(["-m", "x", "-t", "a,b", "-t", "folder:x,y", flag, "8"], standalone_mode=False)
    assert capsys.readouterr().out.strip() == "['a', 'b', 'folder:x,y'] 8"


def test_config_gives_defaults_and_the_command_line_wins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text("tasks: eurosat,isic\nbatch_size: 4\n")
    small_app()(["-m", "x", "--config", str(config)], standalone_mode=False)
    small_app()(["-m", "x", "--config", str(config), "-b", "16"], standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["['eurosat', 'isic'] 4", "['eurosat', 'isic'] 16"]


@pytest.mark.parametrize(
    ("text", "said"), [("tsks: a\n", "tasks"), ("- a\n", "mapping"), ("a: [\n", "YAML")]
)
def test_bad_config_is_a_usage_error_that_names_the_file(
    text: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "bad.yaml"
    config.write_text(text)
    assert cli.call("episodic", "-m", "fsbench/toy_resnet", "-C", str(config)) == 2
    shown = capfd.readouterr().err
    assert "bad.yaml" in shown
    assert said in shown


@pytest.mark.parametrize(
    "model",
    ["py:os:getcwd", "[timm/resnet18, 'py:os:getcwd']", "a.pth@py:os:getcwd"],
)
def test_a_config_file_may_not_name_code(
    model: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "run.yaml"
    config.write_text(f"model: {model}\ntasks: toy_scan:5w1s\n")
    assert cli.call("episodic", "-C", str(config)) == 2
    shown = capfd.readouterr().err
    assert "names code to run: " in shown
    assert "py:os:getcwd" in shown
    config.write_text("model: a.pth\narch: py:os:getcwd\ntasks: toy_scan:5w1s\n")
    assert cli.call("episodic", "-C", str(config)) == 2
    assert "names code to run: py:os:getcwd" in capfd.readouterr().err


def test_the_panels_of_the_help_list_every_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.call("--help") == 0
    shown = capsys.readouterr().out
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


@pytest.mark.parametrize("words", [["--help"], ["leaderboard", "show", "--help"], ["ls"]])
def test_the_help_imports_nothing_heavy(words: list[str]) -> None:
    assert not {"numpy", "scipy", "torch", "yaml"} & imported_by(*words)


def test_every_command_says_that_it_starts_before_it_does_anything() -> None:
    program: Any = typer.main.get_command(build())
    for words, command in leaves(program):
        assert {"quiet", "verbose"} <= {parameter.name for parameter in command.params}, words


def test_all_commands_together_import_nothing_heavy() -> None:
    code = "import sys; from fsbench.cli.main import build; build(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & {*done.stdout.split()}


def test_drawing_episodes_imports_no_torch() -> None:
    modules = imported_by("episodes", "hash", "toy_tiles:5w1s", "--episodes", "1")
    assert not {"pandas", "scipy", "torch"} & modules


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


def test_help_folds_a_paragraph_at_the_width_alone() -> None:
    """Docstrings wrap at 100 characters, where a help of 80 shall not break as well."""
    command = [sys.executable, "-m", "fsbench", "leaderboard", "verify", "--help"]
    shown = subprocess.check_output(
        command, cwd=ROOT, text=True, env=os.environ | {"COLUMNS": "80"}
    )
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
    for package in PACKAGES:
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


@pytest.mark.parametrize(
    ("n", "noun", "expected"),
    [
        (1, "entry", "1 entry"),
        (0, "entry", "0 entries"),
        (2, "class", "2 classes"),
        (2, "day", "2 days"),
    ],
)
def test_a_count_has_its_noun(n: int, noun: str, expected: str) -> None:
    assert format_count(n, noun) == expected


@pytest.mark.parametrize(
    ("kind", "listed"),
    [
        ("key in a.yaml", "known keys in a.yaml: "),
        ("kind of cache", "known kinds of cache: "),
        ("setting", "known settings: "),
    ],
)
def test_names_that_may_be_meant_have_their_plural(kind: str, listed: str) -> None:
    assert listed in str(UnknownName(kind, "x", ["a"]))
