"""The declaration of a submission: declaration.yaml of the results folder, or another file.

`write_template` starts it; YAML, JSON and TOML have the same keys.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import read_mapping, refuse_invalid, write_atomic
from fsbench.core.schema import Declaration
from fsbench.results.names import safe_name
from leaderboard.submission import common_name, group_by_recipe, read_models

DECLARATION_FILE = "declaration.yaml"
"""In a results folder, where it is read without an option."""
TEMPLATE = Path(__file__).parent / "templates" / DECLARATION_FILE
KEYS = tuple(Declaration.model_fields)
NAME_LISTS = ("pretraining_data", "targets_seen")


def find_declaration(results: Path) -> Path | None:
    """Return the declaration file of a results folder, None if there is none."""
    path = results / DECLARATION_FILE
    return path if path.is_file() else None


def read_declaration(
    source: str | Path | Declaration | Mapping[str, Any] | None, name: str | None = None
) -> Declaration:
    """Return the declaration of a file, or of its fields. name: replaces the declared one.

    A key without a value counts as missing. Raises UsageError naming missing keys, ValidationFailed
    for a file that cannot be read and for wrong keys.
    """
    where, values = "the declaration", dict[str, Any]()
    if isinstance(source, str | Path):
        where, values = str(source), read_mapping(Path(source), ", ".join(KEYS))
    elif source is not None:
        values = dict(source)
    values |= {} if name is None else {"name": name}
    missing = [key for key in KEYS if values.get(key) in (None, "")]
    if missing and values.keys() <= set(KEYS):  # else one may be misspelled
        raise UsageError(
            f"{where} lacks {', '.join(missing)}",
            fix=f"fsbench submit RESULTS --init writes a {DECLARATION_FILE} to fill in"
            if source is None
            else "fill in these keys; 'none' stands for no data set",
        )
    for key in NAME_LISTS:  # the single word none is the empty list
        if values.get(key) in ("none", ["none"]):
            values[key] = ()
        elif isinstance(values.get(key), str):
            values[key] = [values[key]]
    fix = f"correct these keys of the declaration; it has {', '.join(KEYS)}"
    with refuse_invalid(ValidationFailed, where, fix, KEYS):
        return Declaration.model_validate(values)


def write_template(results: Path) -> Path:
    """Write a commented declaration to fill in into a results folder; return the file.

    The name is filled in, and the pretraining data if every result records them. Raises UsageError
    if the file exists or there is no result.
    """
    path = results / DECLARATION_FILE
    if path.exists():
        raise UsageError(f"{path} exists", fix="edit it, or remove it first")
    models, _ = read_models([results])
    rows = group_by_recipe(models)
    name = common_name([key[0] for key in rows[0]]) if len(rows) == 1 else results.resolve().name
    backbones = [loaded[0].result.backbone for loaded in models.values()]
    values: dict[str, object] = {"name": safe_name(name)}
    if all(facts.pretraining_data or facts.random_init is not None for facts in backbones):
        data = sorted({source for facts in backbones for source in facts.pretraining_data})
        values["pretraining_data"] = data or "none"
    text = TEMPLATE.read_text(encoding="utf8")
    for key, value in values.items():
        text = text.replace(f"\n{key}:\n", f"\n{key}: {json.dumps(value)}\n")
    write_atomic(path, text.encode())
    return path
