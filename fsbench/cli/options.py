"""Options of the commands, made from the declared options of the Python API."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer import Argument, Option

from fsbench.api.options import EvaluationOptions
from fsbench.core.options import Option as DeclaredOption
from fsbench.core.options import OptionModel

PANELS = ("Model", "Images", "Task", "Head", "Machine", "Output", "Advanced")
"""Panels of the help of an evaluation, in this order."""
METAVARS: dict[Any, str] = {int: "N", float: "X", str | Path: "PATH", bool: "", str: "TEXT"}


def declare_all(model: type[OptionModel], names: Collection[str]) -> Iterator[Parameter]:
    """Yield declared options as parameters of a command, by panel.

    They take texts, which `OptionModel.read` reads like the values of Python.
    """
    order = ("Argument", *PANELS)
    declared = model.declared()
    shown = [f for f in fields(model) if f.name in names and declared[f.name].panel]
    for field in sorted(shown, key=lambda field: order.index(declared[field.name].panel)):
        kind, is_required = model.types()[field.name], field.default is MISSING
        text: Any = list[str] if get_origin(kind) is Sequence else str
        hint: Any = bool if kind is bool else text if is_required else text | None
        default = Parameter.empty if is_required else False if kind is bool else None
        info = declare(field.name, declared[field.name], kind, field.default)
        annotation = Annotated[hint, info]
        yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def declare(name: str, option: DeclaredOption, kind: Any, default: Any) -> Any:
    """Return a declared option as an option or argument of a command: flags, help and panel."""
    if option.panel == "Argument":
        return Argument(metavar=option.metavar, help=option.help)
    words = "|".join(map(str, get_args(kind))) if get_origin(kind) is Literal else ""
    states_default = default not in (None, False, (), MISSING)
    return Option(
        *(flag for flag in option.flags if not flag.startswith("--")),
        f"--{name.replace('_', '-')}",
        *(flag for flag in option.flags if flag.startswith("--")),
        help=option.help + (f" (default: {default})" if states_default else ""),
        metavar=option.metavar or words or METAVARS.get(get_args(kind)[:1] or kind) or None,
        rich_help_panel=option.panel,
    )


def takes(
    model: type[OptionModel], *only: str, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator: the declared options of a model become parameters of a command.

    The command receives them as one instance, its first argument; its other parameters are options
    as well. only, without: those that the command has, or lacks.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(function, include_extras=True)
        _, *others = signature(function).parameters.values()
        more = [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[p.name]) for p in others]
        names = [n for n in model.declared() if n not in without and (not only or n in only)]

        @wraps(function)
        def command(**values: Any) -> None:
            options = {name: values.pop(name) for name in names if name in values}
            stated = {n: v for n, v in options.items() if v not in (None, [], False)}
            function(model.read(stated), **values)

        command.__signature__ = Signature([*declare_all(model, names), *more])  # type: ignore[attr-defined]
        return command

    return decorate


def config_option(model: type[OptionModel]) -> Any:
    """Return the option --config of a command whose declared options are of `model`."""

    def read(context: typer.Context, path: Path | None) -> Path | None:
        if path is not None:
            defaults = read_config(context, path, model)
            context.default_map = {**(context.default_map or {}), **defaults}
        return path

    return Option(
        *("-C", "--config"),
        callback=read,
        is_eager=True,
        metavar="FILE",
        help="YAML, TOML or JSON file of option values; the command line overrides it.",
        rich_help_panel="Advanced",
    )


def read_config(context: typer.Context, path: Path, model: type[OptionModel]) -> dict[str, Any]:
    """Return option -> its text or texts in a file.

    Raise UsageError for a file that cannot be read, a value that does not fit, and code to run: a
    file may come from others, so py: references are allowed on the command line only. Raise
    UnknownName for a key that is no option.
    """
    from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
    from fsbench.core.io import read_mapping
    from fsbench.core.schema import find_code

    parameters: dict[str, Any] = {
        flag.lstrip("-").replace("-", "_"): parameter
        for parameter in context.command.params
        for flag in (*parameter.opts, parameter.name or "")
        if parameter.name not in {None, "config"}
    }
    names = sorted(name for name in parameters if len(name) > 1)
    try:
        values = read_mapping(path, ", ".join(names), as_written=True)
    except ValidationFailed as error:
        raise UsageError(error.message, fix=error.fix) from error
    defaults: dict[str, Any] = {}
    for key, value in values.items():
        option = parameters.get(str(key).replace("-", "_"))
        if option is None:
            raise UnknownName(f"option in {path}", str(key), names)
        if option.name in defaults:
            raise UsageError(f"{path} sets {key} twice", fix="set every option once")
        repeats = getattr(option, "multiple", False) and isinstance(value, list)
        texts = [as_text(part) for part in (value if repeats else [value])]
        if None in texts:
            raise UsageError(f"{path}: {key}", fix="write a text, a number, true or false")
        if code := find_code([p.strip() for t in texts for p in re.split("[,+]", t or "")]):
            raise UsageError(
                f"{path} names code to run: {code}", fix="pass py: references on the command line"
            )
        defaults[option.name] = texts if getattr(option, "multiple", False) else texts[0]
    try:
        model.read_values({name: defaults[name] for name in defaults.keys() & model.declared()})
    except UsageError as error:
        raise error.within(path) from None
    return defaults


def as_text(value: Any) -> str | None:
    """Return a scalar of JSON, TOML or YAML as it would be typed; None for any other value."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        return None
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in str(value))
    return None if has_surrogates else str(value)


Output = Annotated[Path, Option("-o", "--output", help="Folder for the results.")]
Json = Annotated[
    bool,
    Option("--json", help="Print JSON on stdout instead of a table.", rich_help_panel="Output"),
]
Board = Annotated[Path, Option(help="Folder of the leaderboard.")]


def split(values: list[str] | None, name: str = "heads") -> list[Any]:
    """Return repeated and comma-separated values as one list; name: the option that they are of."""
    return [*EvaluationOptions.read_value(name, values or [])]
