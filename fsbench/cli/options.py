"""Options of the commands, made from the declared options of the Python API."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from typer import Argument, Option

from fsbench.api.options import EvaluationOptions
from fsbench.core.options import Option as DeclaredOption
from fsbench.core.options import OptionModel, expand_path, split_values

PANELS = ("Model", "Images", "Task", "Head", "Machine", "Output", "Advanced")
"""Panels of the help of an evaluation, in this order."""
METAVARS: dict[Any, str] = {int: "N", float: "X", str | Path: "PATH", bool: "", str: "TEXT"}


def declare_all(model: type[OptionModel], names: Collection[str]) -> Iterator[Parameter]:
    """Yield declared options as parameters of a command, by panel.

    They take texts, which `OptionModel.read` reads like the values of Python.
    """
    order = ("Argument", *PANELS)
    declared = model.declared()
    shown = [f for f in fields(model) if f.name in names]
    for field in sorted(shown, key=lambda field: order.index(declared[field.name].panel)):
        kind = model.types()[field.name]
        hint: Any = (list[str] if get_origin(kind) is Sequence else str) | None
        hint, default = (bool, False) if kind is bool else (hint, None)
        info = declare(field.name, declared[field.name], kind, field.default)
        annotation = Annotated[hint, info]
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def declare(name: str, option: DeclaredOption, kind: Any, default: Any) -> Any:
    """Return a declared option as an option or argument of a command: flags, help and panel."""
    if option.panel == "Argument":
        return Argument(metavar=option.metavar, help=option.help)
    words = "|".join(map(str, get_args(kind))) if get_origin(kind) is Literal else ""
    states_default = default not in (None, False, ())
    stated = "required" if default is MISSING else f"default: {default}"
    return Option(
        *(flag for flag in option.flags if not flag.startswith("--")),
        f"--{name.replace('_', '-')}",
        *(flag for flag in option.flags if flag.startswith("--")),
        help=option.help + (f" ({stated})" if states_default else ""),
        metavar=option.metavar or words or METAVARS.get(get_args(kind)[:1] or kind) or None,
        rich_help_panel=option.panel,
    )


def takes(
    model: type[OptionModel], *only: str, without: Collection[str] = (), config: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator: the declared options of a model become parameters of a command.

    The command receives them as one instance, its first argument; its other parameters are options
    as well. only, without: those that the command has, or lacks; config: whether a file may hold
    them (--config).
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        _, *others = signature(function).parameters.values()
        more = [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[p.name]) for p in others]
        shown = (name for name, option in model.declared().items() if option.panel)
        names = [name for name in shown if name not in without and (not only or name in only)]

        @wraps(function)
        def command(config: Path | None = None, **values: Any) -> None:
            options = {name: values.pop(name) for name in names if name in values}
            stated = {n: v for n, v in options.items() if v not in (None, [], False)}
            of_file = read_config(expand_path(config), model, names) if config else {}
            function(model.read(of_file | stated), **values)

        file = Parameter("config", Parameter.KEYWORD_ONLY, default=None, annotation=Config)
        parameters = [*declare_all(model, names), *more, *([file] if config else [])]
        command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return command

    return decorate


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
        raise error.within(path) from None


Config = Annotated[
    Path | None,
    Option(
        *("-C", "--config"),
        metavar="FILE",
        help="YAML, TOML or JSON file of option values; the command line overrides it.",
        rich_help_panel="Advanced",
    ),
]
Output = Annotated[Path, Option("-o", "--output", help="Folder for the results.")]
Json = Annotated[
    bool,
    Option("--json", help="Print JSON on stdout instead of a table.", rich_help_panel="Output"),
]
Board = Annotated[Path, Option(help="Folder of the leaderboard.")]


def split(values: list[str] | None, name: str = "heads") -> list[Any]:
    """Return repeated and comma-separated values as one list; name: the option that they are of."""
    return [*EvaluationOptions.read_value(name, values or [])]
