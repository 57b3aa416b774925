"""The `fsbench` command: register all commands and turn errors into exit codes.

Every file of this package adds the command of its own name, or those of its `register(app)`. Heavy
modules (torch, pydantic, scipy) are imported inside commands, so that `fsbench --help` answers at
once.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import typer
from typer import Option
from typer.core import TyperGroup

from fsbench.cli.console import with_output_options
from fsbench.core import __version__
from fsbench.core.errors import FsbenchError
from fsbench.core.process import Stopped, handled, keep_freed_memory
from fsbench.core.registry import Registry

GROUPS: Registry[Any] = Registry(
    "command group", "fsbench.cli", lambda file: file, machinery=("main", "options", "console")
)

PANELS = {
    "Evaluate": (
        *("benchmark", "episodic", "probe", "analyze", "show", "report"),
        *("results", "episodes", "protocols"),
    ),
    "Pretrain": ("pretrain", "sweep", "budget", "reproduce"),
    "Leaderboard": ("submit", "export", "leaderboard", "compare", "power"),
    "Data": ("data", "cache"),
    "Tools": ("demo", "doctor", "ls"),
}
"""Panels of `fsbench --help` with their commands, in the order in which they are shown."""
PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}
ORDER = list(PANEL_OF)

SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": lambda name: name.replace("_", "-"),
    "max_content_width": 100,
}


class OrderedGroup(TyperGroup):
    """Lists commands in the order of PANELS, unlisted ones last."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(self.commands, key=lambda n: ORDER.index(n) if n in ORDER else len(ORDER))


def build(listing: bool = False) -> typer.Typer:
    """Return the application with all commands, each in its help panel.

    listing: leave all options of commands out, which `fsbench --help` does not show.
    """
    app = typer.Typer(
        name="fsbench",
        cls=OrderedGroup,
        no_args_is_help=True,
        add_completion=False,
        context_settings=SETTINGS,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    for name, file in GROUPS.items():
        if hasattr(file, "register"):
            file.register(app)
        else:
            app.command(name)(getattr(file, name))
    commands: list[Any] = [*app.registered_commands, *app.registered_groups]
    for command in commands:
        command.rich_help_panel = PANEL_OF.get(str(command.name), "Tools")
    groups = {f"{group.name} ": group.typer_instance for group in app.registered_groups}
    for prefix, group in {"": app, **groups}.items():
        for leaf in group.registered_commands if group else ():
            if leaf.callback and listing:
                leaf.callback = drop_options(leaf.callback)
            elif leaf.callback and not hasattr(leaf.callback, "__wrapped__"):  # a group built again
                leaf.callback = with_output_options(f"{prefix}{leaf.name}", leaf.callback)
    return app


def drop_options(command: Callable[..., Any]) -> Callable[[], None]:
    """Return a command of the same name and help that takes no option and does nothing."""

    def listed() -> None:
        return None

    listed.__name__, listed.__doc__ = command.__name__, command.__doc__
    return listed


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
    """Run a command and exit with a code of fsbench/core/errors.py, or 128 + signal number."""
    keep_freed_memory()
    try:
        with handled():
            listing = arguments is None and {*sys.argv[1:]} <= {"-h", "--help"}
            if listing:  # typer imports a parser of Markdown, which takes longer than the list
                unused = sys.modules.setdefault("rich.markdown", ModuleType("rich.markdown"))
                vars(unused)["Markdown"] = None
            build(listing)(args=arguments, prog_name="fsbench")
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
    """Return text with control and direction characters escaped; it may quote strangers."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
