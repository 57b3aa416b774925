"""Commands, and their options made from the declared options of the Python API."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from typer import Argument, Option

from fsbench.cli import console
from fsbench.core.options import Option as DeclaredOption
from fsbench.core.options import OptionModel, expand_path, split_values

PANELS = ("Argument", "Model", "Images", "Task", "Head", "Machine", "Output", "Advanced")
"""Panels of the help of a command, in this order."""
CONFIG = Option(
    *("-C", "--config"),
    metavar="FILE",
    help="YAML, TOML or JSON file of option values; the command line overrides it.",
    rich_help_panel="Advanced",
)
Output = Annotated[Path, Option("-o", "--output", help="Folder for the results.")]
Json = Annotated[
    bool,
    Option("--json", help="Print JSON on stdout instead of a table.", rich_help_panel="Output"),
]
Board = Annotated[Path, Option(help="Folder of the leaderboard.")]


@dataclass(frozen=True)
class Command:
    """A command as it is declared: its function, and the options of a model that it takes.

    The function receives these as one instance, its first argument; its other parameters are
    options as well. names: of the options of the model; has_config: whether a file may hold them;
    about: its help, where the docstring is not; example: the last line of its help.
    """

    function: Callable[..., None]
    model: type[OptionModel] = OptionModel
    names: tuple[str, ...] = ()
    has_config: bool = False
    about: str = ""
    example: str | None = None

    @property
    def help(self) -> str:
        """The paragraphs of its docstring, each in one line: the help keeps line breaks."""
        paragraphs = (self.about or self.function.__doc__ or "").split("\n\n")
        return "\n\n".join(" ".join(part.split()) for part in paragraphs)

    def make_callback(self, words: str) -> Callable[..., None]:
        """Return what typer calls: the function with all options, which says that it starts.

        words: that call it, e.g. 'leaderboard show'. The options of its output are part of every
        command, those of tables of a command that also prints JSON.
        """
        hints = get_type_hints(self.function, include_extras=True)
        others = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[parameter.name])
            for parameter in signature(self.function).parameters.values()
        ][bool(self.names) :]
        has_tables = any(parameter.name == "as_json" for parameter in others)
        of_output = console.OutputOptions.declared() if has_tables else ("quiet", "verbose")
        parameters = [*declare_all(self.model, self.names), *others]
        if self.has_config:
            annotation = Annotated[Path | None, CONFIG]
            file = Parameter("config", Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            parameters.append(file)

        def run(config: Path | None = None, **values: Any) -> None:
            console.start(words, console.OutputOptions.read(take_values(values, of_output)))
            of_call = take_values(values, self.names)
            of_file = read_config(expand_path(config), self.model, self.names) if config else {}
            chosen = [self.model.read(of_file | of_call)] if self.names else []
            self.function(*chosen, **{name: expand_paths(value) for name, value in values.items()})

        parameters += declare_all(console.OutputOptions, of_output)
        run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return run


COMMANDS: dict[str, Command] = {}
"""Every command by the words that call it, e.g. 'leaderboard show'."""


def command(
    words: str,
    model: type[OptionModel] = OptionModel,
    *only: str,
    without: Collection[str] = (),
    **details: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that declares a command.

    only, without: the options of the model that it has, or lacks; details: fields of `Command`.
    """
    shown = (name for name, declared in model.declared().items() if declared.panel)
    names = tuple(n for n in shown if n not in without and (not only or n in only))

    def declare_command(function: Callable[..., None]) -> Callable[..., None]:
        COMMANDS[words] = Command(function, model, names, **details)
        return function

    return declare_command


def take_values(values: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Remove options from the values of a call, and return those that the call states."""
    taken = {name: values.pop(name) for name in names if name in values}
    return {name: value for name, value in taken.items() if value not in (None, [], False)}


def expand_paths(value: Any) -> Any:
    """Return a value of an option with `~` and environment variables in its paths replaced."""
    if isinstance(value, list):
        return [expand_paths(part) for part in value]
    return expand_path(value) if isinstance(value, Path) else value


def declare_all(model: type[OptionModel], names: Collection[str]) -> Iterator[Parameter]:
    """Yield declared options as parameters of a command, by panel.

    They take texts, which `OptionModel.read` reads like the values of Python.
    """
    declared = model.declared()
    shown = [f for f in fields(model) if f.name in names]
    for field in sorted(shown, key=lambda field: PANELS.index(declared[field.name].panel)):
        kind = model.types()[field.name]
        hint: Any = (list[str] if get_origin(kind) is Sequence else str) | None
        hint, default = (bool, False) if kind is bool else (hint, None)
        info = declare(field.name, declared[field.name], kind, field.default)
        annotation = Annotated[hint, info]
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def declare(name: str, option: DeclaredOption, kind: Any, default: Any) -> Any:
    """Return a declared option as an option or argument of a command: flags, help and panel."""
    metavar = option.metavar or name.upper()
    if option.panel == "Argument":
        return Argument(metavar=metavar, help=option.help)
    words = "|".join(map(str, get_args(kind))) if get_origin(kind) is Literal else metavar
    ending = "required" if default is MISSING else f"default: {default}"
    return Option(
        *(flag for flag in option.flags if not flag.startswith("--")),
        f"--{name.replace('_', '-')}",
        *(flag for flag in option.flags if flag.startswith("--")),
        help=option.help + (f" ({ending})" if default not in (None, False, ()) else ""),
        metavar=None if kind is bool else words,
        rich_help_panel=option.panel,
    )


def read_config(path: Path, model: type[OptionModel], names: Collection[str]) -> dict[str, Any]:
    """Return option -> its value in a file.

    Raise UsageError for a file that cannot be read, a value that does not fit, and code to run: a
    file may come from others, so py: references are allowed on the command line only. Raise
    UnknownName for a key that is no option.
    """
    from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
    from fsbench.core.io import read_mapping
    from fsbench.core.schema import find_code

    try:
        values = read_mapping(path, ", ".join(names), as_written=True)
    except ValidationFailed as error:
        raise UsageError(error.message, fix=error.fix) from error
    for key, value in values.items():
        if model.names().get(str(key).replace("-", "_")) not in names:
            raise UnknownName(f"option in {path}", str(key), names)
        parts = split_values(value, lambda before, after: True)
        if code := find_code([text.strip() for p in parts for text in re.split("[,+]", str(p))]):
            raise UsageError(
                f"{path} names code to run: {code}", fix="pass py: references on the command line"
            )
        if any(isinstance(p, dict | None) or re.search("[\ud800-\udfff]", str(p)) for p in parts):
            raise UsageError(f"{path}: {key}", fix="write a text, a number, true or false")
    try:
        return model.read_values(values)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", fix=error.fix) from None
