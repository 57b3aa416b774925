"""The `fsbench` command: all commands in one program, and errors as exit codes.

Heavy modules (torch, pydantic, scipy) are imported inside commands, so that the first line of every
command comes at once.
"""

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NoReturn

import typer
from typer import Option

from fsbench import cli
from fsbench.cli.options import COMMANDS
from fsbench.core import __version__
from fsbench.core.errors import FsbenchError
from fsbench.core.process import Stopped, open_output, raise_on_signals

PANELS = {
    "Evaluate": (
        *("benchmark", "episodic", "probe", "analyze", "show", "report", "results", "episodes"),
    ),
    "Pretrain": ("pretrain", "sweep", "claims"),
    "Leaderboard": ("submit", "export", "leaderboard", "compare"),
    "Data": ("data", "cache"),
    "Tools": ("demo", "doctor", "ls"),
}
"""Panels of `fsbench --help`: names of commands and groups, in this order."""
GROUPS = {
    "results": "Merge the parts of a sharded evaluation.",
    "episodes": "Show, export or hash the episodes of a task.",
    "leaderboard": "Make, show, check and verify leaderboards.",
    "data": "List, show, verify or download data sets.",
}
"""Commands of two words, by the first one, and its help."""

THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0", "OPENBLAS_NUM_THREADS": "1"}
"""Threads that sleep while they wait: torch's spin by default, which on a busy machine made a probe
of 200 steps take 37 to 74 s in place of .8 to 4.8 s. NumPy, whose products are small, has one."""
COLLECTION = 50_000
"""New objects until Python looks for garbage: imports and records make many, which stay."""

SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": lambda name: name.replace("_", "-"),
    "max_content_width": 100,
}


def build(words: Sequence[str] | None = None) -> typer.Typer:
    """Return the application with all commands.

    words: of a call. Only the command or group that they name has its options and arguments, which
    take most of the time; by default all have.
    """
    for module in iter_modules(cli.__path__):
        import_module(f"{cli.__name__}.{module.name}")
    app = typer.Typer(
        name="fsbench",
        no_args_is_help=True,
        add_completion=False,
        context_settings=SETTINGS,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    for panel, names in PANELS.items():
        for name in names:
            parent = app
            if name in GROUPS:
                parent = typer.Typer(no_args_is_help=True, callback=do_nothing)
                app.add_typer(parent, name=name, help=GROUPS[name], rich_help_panel=panel)
            for path, command in COMMANDS.items():
                first, _, second = path.partition(" ")
                if first == name:
                    is_called = words is None or name in words[:1]
                    add = parent.command(
                        second or first,
                        help=command.help,
                        epilog=command.example,
                        rich_help_panel=None if second else panel,
                    )
                    add(command.make_callback(path) if is_called else do_nothing)
    return app


def do_nothing() -> None:
    """Stand for a command that is not called."""


def build_program(words: Sequence[str]) -> Any:
    """Return the application as a program of click, its commands in the order of the panels."""
    program: Any = typer.main.get_command(build(words))
    order = [name for names in PANELS.values() for name in names]
    program.commands = {name: program.commands[name] for name in order}
    return program


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
        gc.set_threshold(COLLECTION)
        atexit.register(gc.freeze)  # no search for garbage at the end, which takes .05 s
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
