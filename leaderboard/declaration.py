"""What a submitter declares: from options, or a JSON, TOML or YAML file, options first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsbench.errors import UsageError, ValidationFailed
from fsbench.results.files import parse_record, read_json
from fsbench.schema import Declaration

NAMES = ("declaration.json", "declaration.toml", "declaration.yaml", "declaration.yml")
MAX_TEXT = 64 * 2**10
"""Bytes of a TOML or YAML file: their parsers are slow."""
MAX_DEPTH = 8
OPTIONS = {
    "name": "--name",
    "authors": "--authors",
    "link": "--link",
    "license": "--licence",
    "pretraining_data": "--pretraining-data",
    "targets_seen": "--targets-seen",
    "statement": "--statement",
}


def find(folder: Path) -> Path | None:
    """The declaration that lies in a submitted folder, at its top or one level below."""
    places = [folder, *(sub for sub in sorted(folder.iterdir()) if sub.is_dir())]
    return next((f / n for f in places for n in NAMES if (f / n).is_file()), None)


def declare(file: Path | None, options: Mapping[str, Any]) -> Declaration:
    """The declaration; an option that is None leaves the file's value.

    Raises UsageError naming what is missing, ValidationFailed for a file that cannot be read.
    """
    values: dict[str, Any] = dict(parse(file)) if file else {}
    values |= {name: value for name, value in options.items() if value is not None}
    missing = [option for name, option in OPTIONS.items() if name not in values]
    if missing:
        raise UsageError(
            f"the declaration lacks {', '.join(missing)}",
            fix=f"give the options, or a file {NAMES[0]} with --declaration (targets seen: 'none')",
        )
    for name in ("pretraining_data", "targets_seen"):
        values[name] = listed(values[name])
    return parse_record(values, Declaration, file or Path("the declaration"))


def listed(value: Any) -> Any:
    """A list of names; the word none, alone, is the empty list."""
    names = [value] if isinstance(value, str) else value
    return () if names in (["none"], [], ()) else names


def parse(file: Path) -> Mapping[str, Any]:
    """The file as a mapping, by its suffix. Raises ValidationFailed naming it."""
    data = read_json(file) if file.suffix == ".json" else parse_text(file)
    if not isinstance(data, dict):
        raise ValidationFailed(
            f"{file} is no mapping of fields", fix=f"fields: {', '.join(OPTIONS)}"
        )
    return data


def parse_text(file: Path) -> Any:
    """TOML or YAML, without tags that build objects, aliases, or a key that stands there twice."""
    import tomllib

    import yaml

    try:
        if file.stat().st_size > MAX_TEXT:
            raise ValueError(f"it is larger than {MAX_TEXT} bytes")
        text = file.read_text(encoding="utf8")
        return tomllib.loads(text) if file.suffix == ".toml" else plain_yaml(text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValidationFailed(
            f"{file} cannot be read: {error}", fix="write it as JSON, TOML or YAML in UTF-8"
        ) from error


def plain_yaml(text: str) -> Any:
    """Raises ValueError for aliases and depth, which can grow without end, and repeated keys."""
    import yaml

    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or depth > MAX_DEPTH:
            raise ValueError(f"it holds an alias or nests deeper than {MAX_DEPTH}")
    root = yaml.compose(text, yaml.SafeLoader)
    if isinstance(root, yaml.MappingNode):
        keys = [str(key.value) for key, _ in root.value]
        if len(set(keys)) != len(keys):
            raise ValueError("a key stands there twice")
    return yaml.safe_load(text)
