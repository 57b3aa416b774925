"""The `fsbench` command: find the command that a call names and turn errors into exit codes.

PANELS lists all commands. A call imports the file of its command alone, `fsbench --help` none;
heavy modules (torch, pydantic, scipy) are imported inside commands, so that the first line of every
command comes at once.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import typer
from typer import Option

from fsbench.core import __version__
from fsbench.core.errors import FsbenchError
from fsbench.core.process import Stopped, open_output, raise_on_signals

PANELS = {
    "Evaluate": {
        "benchmark": "Run the whole benchmark: linear probe and CD-FSL episodes of one or more "
        "backbones.",
        "episodic": "Run few-shot episodes: choose ways, shots, heads and target data sets.",
        "probe": "Run the linear probe on whole data sets; DATASET:knn is the k-NN probe.",
        "analyze": "Analyze backbones: write records beside their results and one figure per "
        "analysis.",
        "show": "Verify results against their records and print them; several models become "
        "columns.",
        "report": "Write results or a board as tables of a paper, one per protocol and input size.",
        "results": "Merge the parts of a sharded evaluation.",
        "episodes": "Export the episodes of a task, or hash them.",
        "protocols": "Compare evaluation protocols.",
    },
    "Pretrain": {
        "pretrain": "Pretrain a backbone by a recipe, or resume a stopped run; run:FOLDER is its "
        "reference.",
        "sweep": "Run a sweep file: pretrain, evaluate, analyze and submit whatever is missing.",
        "claims": "Test claims of the papers and compare with the published figures; or list "
        "the claims.",
    },
    "Leaderboard": {
        "submit": "Check results and add one entry per recipe; list all problems and write "
        "nothing on any.",
        "export": "Write results for the Hugging Face hub, or a run as a folder that timm loads.",
        "leaderboard": "Make, show, check and verify leaderboards.",
        "compare": "Compare two entries on shared episodes, per task and overall; one table per "
        "head and size.",
    },
    "Data": {
        "data": "List, show, verify or download data sets.",
        "cache": "List or clear cached features and images.",
    },
    "Tools": {
        "demo": "Pretrain methods on generated images, evaluate, submit and rank them, in a few "
        "minutes.",
        "doctor": "Check packages, devices, data sets and disk; exit 1 if a required package is "
        "missing.",
        "ls": "List methods, recipes, data sets, protocols, heads, timm's models and more.",
    },
}
"""Panels of `fsbench --help`: the first line of the help of every command, in this order."""
FILES = {name: name for commands in PANELS.values() for name in commands} | {
    **dict.fromkeys(("benchmark", "episodic", "probe"), "evaluate"),
    **dict.fromkeys(("ls", "protocols", "results"), "show"),
    "episodes": "data",
    "export": "submit",
}
"""File of this package that defines a command, in a function of its own name or by `register`."""

PASSIVE_THREADS = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
"""Threads that sleep while they wait: torch's spin by default, which on a busy machine made a probe
of 200 steps take 37 to 74 s in place of .8 to 4.8 s."""

SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": lambda name: name.replace("_", "-"),
    "max_content_width": 100,
}


def build(words: Sequence[str] | None = None) -> typer.Typer:
    """Return the application with all commands, or with the one that the words of a call name.

    If they name none (`--help`, a wrong name), its commands have a help line and do nothing.
    """
    app = typer.Typer(
        name="fsbench",
        no_args_is_help=True,
        add_completion=False,
        context_settings=SETTINGS,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    if words is not None and (not words or words[0] not in FILES):
        for panel, commands in PANELS.items():
            for name, summary in commands.items():
                app.command(name, help=summary, rich_help_panel=panel)(lambda: None)
        return app
    for file in dict.fromkeys([FILES[words[0]]] if words else FILES.values()):
        module = import_module(f"fsbench.cli.{file}")
        if hasattr(module, "register"):
            module.register(app)
        else:
            app.command(file)(getattr(module, file))
    if words:
        choose_command(app, words)
    add_output_options(app)
    return app


def choose_command(app: typer.Typer, words: Sequence[str]) -> None:
    """Remove all commands but the one that the words name; those of a group if none is named."""
    app.registered_commands = [c for c in app.registered_commands if c.name == words[0]]
    app.registered_groups = [group for group in app.registered_groups if group.name == words[0]]
    for group in app.registered_groups:
        if group.typer_instance and len(words) > 1:
            commands = group.typer_instance.registered_commands
            named = [command for command in commands if command.name == words[1]]
            group.typer_instance.registered_commands = named or commands


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

    arguments: those of the process by default, whose threads wait passively (PASSIVE_THREADS).
    """
    words = sys.argv[1:] if arguments is None else arguments
    if arguments is None:
        open_output()
        for name, value in PASSIVE_THREADS.items():
            os.environ.setdefault(name, value)
    try:
        with raise_on_signals():
            command = typer.main.get_command(build(words))
            command(args=words, prog_name="fsbench")
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
