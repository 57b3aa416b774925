"""Options of the commands, made from the declared options of the Python API."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import MISSING, fields
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from annotated_types import Interval
from typer import Option

from fsbench.api.options import EvaluationOptions
from fsbench.core.options import OptionModel

PANELS = ("Model", "Images", "Task", "Head", "Machine", "Output", "Advanced")
"""Panels of the help of an evaluation, in this order."""
METAVARS: dict[Any, str] = {int: "N", float: "X", str | Path: "PATH", bool: "", str: "TEXT"}


def declare(name: str, model: type[OptionModel] = EvaluationOptions) -> Any:
    """Return a declared option as an option of a command: its flags, help, panel and limits."""
    declared, kind = model.declared()[name], model.types()[name]
    limits: Any = next((p for p in get_args(kind)[1:] if isinstance(p, Interval)), Interval())
    words = "|".join(map(str, get_args(kind))) if get_origin(kind) is Literal else ""
    return Option(
        *(flag for flag in declared.flags if not flag.startswith("--")),
        f"--{name.replace('_', '-')}",
        *(flag for flag in declared.flags if flag.startswith("--")),
        help=declared.help,
        metavar=declared.metavar or words or METAVARS.get(get_args(kind)[:1] or kind) or None,
        rich_help_panel=declared.panel,
        min=limits.ge,
        max=limits.le,
    )


def declare_all(model: type[OptionModel], without: Collection[str] = ()) -> Iterator[Parameter]:
    """Yield the declared options as parameters of a command, by panel.

    They take texts, which `OptionModel.read` reads like the values of Python.
    """
    declared = model.declared()
    shown = [f for f in fields(model) if f.name not in without and declared[f.name].panel]
    for field in sorted(shown, key=lambda field: PANELS.index(declared[field.name].panel)):
        kind = model.types()[field.name]
        info, is_required = declare(field.name, model), field.default is MISSING
        info.min = info.max = None
        if field.default not in (None, False, (), MISSING):
            info.help += f" (default: {field.default})"
        text: Any = list[str] if get_origin(kind) is Sequence else str
        yield Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if is_required else False if kind is bool else None,
            annotation=Annotated[
                bool if kind is bool else text if is_required else text | None, info
            ],
        )


def config_option(model: type[OptionModel] | None = None) -> Any:
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


def read_config(
    context: typer.Context, path: Path, model: type[OptionModel] | None
) -> dict[str, Any]:
    """Return option -> its text or texts in a file.

    Raise UsageError for a file that cannot be read, UnknownName for a key that is no option.
    """
    from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
    from fsbench.core.io import read_mapping

    parameters = {
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
        defaults[str(option.name)] = check_value(context, option, str(key), value, path)
    if model is not None:
        options = defaults.keys() & model.declared()
        try:
            model.read_values({name: defaults[name] for name in options})
        except UsageError as error:
            raise error.within(path) from None
    return defaults


def check_value(context: typer.Context, option: Any, key: str, value: Any, path: Path) -> Any:
    """Return the value of an option as text, or a list of texts, as on the command line.

    Raise UsageError for a value that the option does not take, and for code to run: a file may come
    from others, so py: references are allowed on the command line only.
    """
    from fsbench.core.errors import UsageError
    from fsbench.core.schema import find_code

    repeats = getattr(option, "multiple", False)
    values = value if repeats and isinstance(value, list) else [value]
    texts = [as_text(part) for part in values]
    parts = [part.strip() for text in texts for part in re.split("[,+]", text or "")]
    if code := find_code(parts):
        raise UsageError(
            f"{path} names code to run: {code}", fix="pass py: references on the command line"
        )
    try:
        if None in texts:
            raise typer.BadParameter("use a text, a number, true or false")
        option.process_value(context, texts if repeats else texts[0])
    except typer.BadParameter as error:
        raise UsageError(
            f"{path}: {key}: {error.message}", fix=f"see fsbench {context.info_name} --help"
        ) from error
    return texts if repeats else texts[0]


def as_text(value: Any) -> str | None:
    """Return a scalar of JSON, TOML or YAML as it would be typed; None for any other value."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        return None
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in str(value))
    return None if has_surrogates else str(value)


Model = Annotated[list[str], declare("model")]
Arch = Annotated[str | None, declare("arch")]
RandomInit = Annotated[int | None, declare("random_init")]
Tasks = Annotated[list[str] | None, declare("tasks")]
Shots = Annotated[list[str] | None, declare("shots")]
Data = Annotated[list[str] | None, declare("data")]
Cache = Annotated[Path | None, declare("cache")]
Output = Annotated[Path, Option("-o", "--output", help="Folder for the results.")]
Device = Annotated[str, declare("device")]
Threads = Annotated[int | None, declare("threads")]
BatchSize = Annotated[int | None, declare("batch_size")]
Workers = Annotated[int, declare("workers")]
Seed = Annotated[int, declare("seed")]
Json = Annotated[
    bool,
    Option("--json", help="Print JSON on stdout instead of a table.", rich_help_panel="Output"),
]
Yes = Annotated[bool, declare("yes")]
Overwrite = Annotated[bool, declare("overwrite")]
Config = Annotated[Path | None, config_option()]
Board = Annotated[Path, Option(help="Folder of the leaderboard.")]


def split(values: list[str] | None, name: str = "heads") -> list[Any]:
    """Return repeated and comma-separated values as one list; name: the option that they are of."""
    return [*EvaluationOptions.read_value(name, values or [])]
