"""The `fsbench` command: gathers the command groups and turns errors into exit codes.

A command group is one file of this package with `register(app)`. Heavy modules (torch, pydantic,
scipy) are imported inside the commands, so that `fsbench --help` answers at once.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn

import typer

from fsbench import __version__
from fsbench.core.allocator import keep_freed_memory
from fsbench.core.errors import FsbenchError
from fsbench.core.registry import Registry, attribute
from fsbench.core.signals import Stopped, handled

GROUPS: Registry[Any] = Registry(
    "command group",
    "fsbench.cli",
    attribute("register"),
    machinery=("main", "options", "console"),
)

SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": lambda name: name.replace("_", "-"),
    "max_content_width": 100,
}


def build() -> typer.Typer:
    """The whole command tree."""
    app = typer.Typer(
        name="fsbench",
        help="Does a backbone transfer, and is the gain real?",
        no_args_is_help=True,
        add_completion=False,
        context_settings=SETTINGS,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    for register in GROUPS.values():
        register(app)
    return app


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Does a backbone transfer, and is the gain real?"""


def run(arguments: list[str] | None = None) -> NoReturn:
    """Entry point of the console command; exits with the codes of fsbench/core/errors.py, after a
    signal with 128 + its number."""
    keep_freed_memory()
    try:
        with handled():
            build()(args=arguments, prog_name="fsbench")
    except Stopped as stopped:
        typer.echo(stopped, err=True)
        sys.exit(stopped.exit_code)
    except FsbenchError as error:
        typer.echo(f"error: {printable(str(error))}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        typer.echo(f"error: {error}\n  fix: check the path, its rights and the disk", err=True)
        sys.exit(1)
    sys.exit(0)


def printable(text: str) -> str:
    """Text that may quote strangers, with control and direction characters escaped."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
