"""The `fsbench` command: all commands in one program, and errors as exit codes.

Heavy modules (torch, pydantic, scipy) are imported inside commands, so that the first line of every
command comes at once.
"""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import typer
from typer import Option

from fsbench.core import __version__
from fsbench.core.errors import FsbenchError
from fsbench.core.process import Stopped, open_output, raise_on_signals

PANELS = {
    "Evaluate": (
        *("benchmark", "episodic", "probe", "analyze", "show", "report", "results", "episodes"),
        "protocols",
    ),
    "Pretrain": ("pretrain", "sweep", "claims"),
    "Leaderboard": ("submit", "export", "leaderboard", "compare"),
    "Data": ("data", "cache"),
    "Tools": ("demo", "doctor", "ls"),
}
"""Panels of `fsbench --help`: names of commands, in this order."""
FILES = (
    *("evaluate", "analyze", "show", "report", "pretrain", "sweep", "claims", "submit"),
    *("leaderboard", "compare", "data", "cache", "demo", "doctor"),
)
"""Files of this package that define commands, in a function of their own name or by `register`."""

THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0", "OPENBLAS_NUM_THREADS": "1"}
"""Threads that sleep while they wait: torch's spin by default, which on a busy machine made a probe
of 200 steps take 37 to 74 s in place of .8 to 4.8 s. NumPy, whose products are small, has one."""

SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": lambda name: name.replace("_", "-"),
    "max_content_width": 100,
}


def build(words: Sequence[str] | None = None) -> typer.Typer:
    """Return the application with all commands.

    words: of a call; where they name no command (`--help`), none has its options and arguments,
    which take most of the time.
    """
    app = typer.Typer(
        name="fsbench",
        no_args_is_help=True,
        add_completion=False,
        context_settings=SETTINGS,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    for file in FILES:
        module = import_module(f"fsbench.cli.{file}")
        if hasattr(module, "register"):
            module.register(app)
        else:
            app.command(file)(getattr(module, file))
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    for group in app.registered_groups:
        group.rich_help_panel = panels[str(group.name)]
    is_list = words is not None and not {*words[:1]} & panels.keys()
    for command in app.registered_commands:
        command.rich_help_panel = panels[str(command.name)]
        if is_list and command.callback:
            command.help, command.callback = command.help or command.callback.__doc__, root
    if is_list:
        for group in app.registered_groups:
            summary = group.typer_instance.info.help if group.typer_instance else None
            group.typer_instance = typer.Typer(callback=root, help=summary)
    else:
        add_output_options(app)
    return app


def build_program(words: Sequence[str]) -> Any:
    """Return the application as a program of click, its commands in the order of the panels."""
    program: Any = typer.main.get_command(build(words))
    order = [name for names in PANELS.values() for name in names]
    program.commands = {name: program.commands[name] for name in order}
    return program


def add_output_options(app: typer.Typer, group: str = "") -> None:
    """Add the options of its output to every command. group: the word before their names."""
    from fsbench.cli.console import with_output_options

    for command in app.registered_commands:
        if command.callback:
            path = f"{group} {command.name}".strip()
            command.callback = with_output_options(path, command.callback)
    for inner in app.registered_groups:
        if inner.typer_instance:
            add_output_options(inner.typer_instance, str(inner.name))


def show_version(is_set: bool) -> None:
    if is_set:
        typer.echo(__version__)
        raise typer.Exit


def root(
    version: bool = Option(
        False, "--version", callback=show_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    """Evaluate whether a backbone transfers, and whether a gain is real."""


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and exit with a code of fsbench/core/errors.py, or 128 + signal number.

    arguments: those of the process by default, which gets THREADS.
    """
    words = sys.argv[1:] if arguments is None else arguments
    if arguments is None:
        open_output()
        os.environ |= {**THREADS, **os.environ}
        gc.set_threshold(50_000)  # imports and records make many objects, which stay
    try:
        with raise_on_signals():
            build_program(words)(args=words, prog_name="fsbench")
    except Stopped as stopped:
        typer.echo(stopped, err=True)
        sys.exit(stopped.exit_code)
    except FsbenchError as error:
        typer.echo(f"error: {printable(str(error))}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        typer.echo(f"error: {error}\n  fix: check the path, its rights and the disk", err=True)
        sys.exit(1)
    except Exception as error:
        from fsbench.core.progress import VERBOSITY
        from fsbench.core.registry import user_error

        explained = user_error(error)
        if explained is None or VERBOSITY.get() > 0:
            raise
        typer.echo(f"error: {printable(str(explained))}\n  -v shows the calls", err=True)
        sys.exit(explained.exit_code)
    sys.exit(0)


def printable(text: str) -> str:
    """Return text with control and direction characters escaped; it may quote strangers."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
