"""Declared options: what a command and a Python function take, how it is read, and its help.

A dataclass whose fields are made by `option` is the one model of the options of a job: keywords of
Python, the command line, `--config` and sweep files are all read by `OptionModel.read`.
"""

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache, reduce, wraps
from operator import or_
from pathlib import Path
from textwrap import fill, indent
from types import NoneType
from typing import Any, Literal, ParamSpec, Self, TypeVar, get_args, get_origin, get_type_hints

from fsbench.core.errors import UnknownName, UsageError

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def expand_path(path: str | Path) -> Path:
    """Return a path as a user wrote it, with `~` and environment variables replaced."""
    return Path(os.path.expandvars(os.path.expanduser(path)))  # noqa: PTH111


def expand_reference(text: str) -> str:
    """Return a text that may hold paths, e.g. run:~/DIR or NAME=$DATA/DIR, expanded alike."""
    home = re.sub(r"(?:^|(?<=[:=,]))~[^/:=,@]*", lambda m: str(expand_path(m[0])), text)
    return os.path.expandvars(home)


@dataclass(frozen=True)
class Option:
    """What is declared of an option, beside its name, type and default.

    panel: its panel of --help, empty for an option of Python and files alone; flags: its other
    names; fix: what to write in place of a wrong value; is_split: whether a comma ends a value.
    """

    panel: str
    help: str
    flags: tuple[str, ...] = ()
    metavar: str = ""
    fix: str = ""
    is_split: bool = True


def option(default: Any, panel: str, description: str, *flags: str, **details: Any) -> Any:
    """Declare an option of an `OptionModel`; the arguments are the fields of `Option`."""
    return field(default=default, metadata={"": Option(panel, description, flags, **details)})


@dataclass(frozen=True)
class OptionModel:
    """Options of a job, each made by `option`; None stands for a default that depends on others."""

    @staticmethod
    def separates(before: str, after: str) -> bool:
        """Return whether a comma between two texts ends a value of those that are split."""
        return True

    @classmethod
    @cache
    def declared(cls) -> dict[str, Option]:
        return {f.name: f.metadata[""] for f in fields(cls)}

    @classmethod
    @cache
    def types(cls) -> dict[str, Any]:
        """Return the type of every option that is not None, or of each value of several."""
        types = dict[str, Any]()
        for name, hint in get_type_hints(cls, include_extras=True).items():
            kinds = tuple(kind for kind in get_args(hint) if kind is not NoneType)
            types[name] = reduce(or_, kinds) if NoneType in get_args(hint) else hint
        return types

    @classmethod
    @cache
    def names(cls) -> dict[str, str]:
        """Return every name of an option, with those of its flags, and the option's own name."""
        return {
            name.lstrip("-").replace("-", "_"): option_name
            for option_name, declared in cls.declared().items()
            for name in (option_name, *declared.flags)
            if not re.fullmatch("-.", name)
        }

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Return the options of these values. Raise as `read_values`, and for one that lacks."""
        read = cls.read_values(values)
        for lacking in (f.name for f in fields(cls) if f.default is MISSING and f.name not in read):
            fix = f"give one: {cls.declared()[lacking].help}"
            raise UsageError(f"{lacking} is missing", fix=fix)
        return cls(**read)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            lambda value: value if isinstance(value, cls) else cls.read(value)
        )

    @classmethod
    def read_values(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return option -> value of those that are not None. Raise UsageError, and UnknownName."""
        if not isinstance(values, Mapping):
            raise UsageError(f"'{values}' names no options", fix="write NAME: VALUE")
        names, read = cls.names(), dict[str, Any]()
        for key, value in values.items():
            name = names.get(str(key).replace("-", "_"))
            if name is None:
                raise UnknownName("option", str(key), names)
            if name in read:
                raise UsageError(f"{name} is set twice", fix="set every option once")
            if value is not None:
                read[name] = cls.read_value(name, value)
        return read

    @classmethod
    def read_value(cls, name: str, value: Any) -> Any:
        """Return the value of one option, for one of several values a tuple."""
        kind, declared = cls.types()[name], cls.declared()[name]
        plain = value.tolist() if hasattr(value, "tolist") else value  # NumPy and torch
        if get_origin(kind) is not Sequence:
            return read_item(kind, plain, name, declared.fix)
        parts = split_values(plain, cls.separates if declared.is_split else None)
        return tuple(read_item(get_args(kind)[0], part, name, declared.fix) for part in parts)


def split_values(value: Any, separates: Callable[[str, str], bool] | None = None) -> list[Any]:
    """Return values that are no text, and the parts of texts between commas that separate."""
    if isinstance(value, list | tuple):
        return [part for each in value for part in split_values(each, separates)]
    if not isinstance(value, str) or separates is None:
        return [value]
    parts: list[str] = []
    for text in value.split(","):
        if not parts or separates(parts[-1], text.strip()):
            parts.append(text)
        else:
            parts[-1] += f",{text}"
    return [part.strip() for part in parts if part.strip()]


def read_item(kind: Any, value: Any, name: str, fix: str) -> Any:
    """Return one value of a type: paths are expanded. Raise UsageError, or UnknownName."""
    if kind in (Path, str | Path):
        return expand_path(value)
    if isinstance(value, str) and kind in (Any, str):
        return expand_reference(value)
    if kind is Any:
        return expand_path(value) if isinstance(value, Path) else value
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        text, label = str(value)[:100], name.replace("_", " ")
        if get_origin(kind) is Literal:
            raise UnknownName(label, text, get_args(kind)) from error
        raise UsageError(f"{label} '{text}'", fix=fix or error.errors()[0]["msg"]) from error


def takes_options(
    model: Callable[P, T], others: str = ""
) -> Callable[[Callable[[T], R]], Callable[P, R]]:
    """Return a decorator: a function of a model's instance becomes one of the model's keywords.

    Editors and type checkers see the options as its signature, and its docstring lists them in
    place of the line `{options}`. others: the option that takes all other keywords as a mapping.
    """
    options: Any = model
    signature = inspect.signature(options)
    helps = {name: fill(options.declared()[name].help, 92) for name in signature.parameters}
    lines = [f"    {name}\n{indent(text, ' ' * 8)}" for name, text in helps.items()]

    def decorate(function: Callable[[T], R]) -> Callable[P, R]:
        @wraps(function)
        def call(*positional: P.args, **keywords: P.kwargs) -> R:
            values = keywords | signature.bind_partial(*positional).arguments
            if others:
                more = {name: values.pop(name) for name in keywords.keys() - options.names().keys()}
                collected: Any = values.get(others) or {}
                values[others] = {**collected, **more}
            return function(options.read(values))

        returned = function.__annotations__["return"]
        call.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
        call.__doc__ = (function.__doc__ or "").replace("    {options}", "\n".join(lines))
        return call

    return decorate
