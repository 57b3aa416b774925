"""The declaration of a submission, from options and a JSON, TOML or YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsbench.core.errors import UsageError
from fsbench.core.io import parse_record
from fsbench.core.markup import read_mapping
from fsbench.core.schema import Declaration

NAMES = ("declaration.json", "declaration.toml", "declaration.yaml", "declaration.yml")
OPTIONS = {
    "name": "--name",
    "authors": "--authors",
    "link": "--link",
    "license": "--licence",
    "pretraining_data": "--pretraining-data",
    "targets_seen": "--targets-seen",
    "statement": "--statement",
}


def find_declaration(folder: Path) -> Path | None:
    """Return the declaration file in a submitted folder, at its top or one level below."""
    places = [folder, *(sub for sub in sorted(folder.iterdir()) if sub.is_dir())]
    return next((f / n for f in places for n in NAMES if (f / n).is_file()), None)


def read_declaration(file: Path | None, options: Mapping[str, Any]) -> Declaration:
    """Return the declaration; options replace the values of the file unless they are None.

    Raises UsageError naming missing fields, ValidationFailed for a file that cannot be read.
    """
    values: dict[str, Any] = read_mapping(file, ", ".join(OPTIONS)) if file else {}
    values |= {name: value for name, value in options.items() if value is not None}
    missing = [option for name, option in OPTIONS.items() if name not in values]
    if missing:
        raise UsageError(
            f"the declaration lacks {', '.join(missing)}",
            fix=f"give the options, or a file {NAMES[0]} with --declaration (targets seen: 'none')",
        )
    for name in ("pretraining_data", "targets_seen"):
        values[name] = parse_names(values[name])
    return parse_record(values, Declaration, file or Path("the declaration"))


def parse_names(value: Any) -> Any:
    """Return a list of names; the single word none is the empty list."""
    names = [value] if isinstance(value, str) else value
    return () if names in (["none"], [], ()) else names
