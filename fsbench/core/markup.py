"""JSON, TOML and YAML of strangers as plain values: nothing in them is built or run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fsbench.core.errors import ValidationFailed
from fsbench.core.io import read_json

MAX_TEXT = 64 * 2**10
"""Bytes of a TOML or YAML file: their parsers are slow."""
MAX_DEPTH = 8


def read_mapping(file: Path, allowed: str, *, as_written: bool = False) -> dict[str, Any]:
    """The file as a mapping, by its suffix. Raises ValidationFailed naming it.

    allowed: the keys, for the message; as_written: YAML's scalars stay text, so that `010` is not
    8, `1:30` is not 90 and `no` is not false.
    """
    data = read_json(file) if file.suffix == ".json" else _read_text(file, as_written)
    if not isinstance(data, dict):
        raise ValidationFailed(f"{file} is no mapping of fields", fix=f"fields: {allowed}")
    return data


def _read_text(file: Path, as_written: bool) -> Any:
    """TOML or YAML, without tags that build objects, aliases, or a key that stands there twice."""
    import tomllib

    import yaml

    try:
        if file.stat().st_size > MAX_TEXT:
            raise ValueError(f"it is larger than {MAX_TEXT} bytes")
        text = file.read_text(encoding="utf-8-sig")
        return tomllib.loads(text) if file.suffix == ".toml" else plain_yaml(text, as_written)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValidationFailed(
            f"{file} cannot be read: {error}", fix="write it as JSON, TOML or YAML in UTF-8"
        ) from error


def plain_yaml(text: str, as_written: bool = False) -> Any:
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
    data = yaml.safe_load(text)  # refuses tags, which a loader of bare text would pass over
    return yaml.load(text, yaml.BaseLoader) if as_written else data
