"""Files that appear whole or not at all, and JSON from strangers read strictly."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from fsbench.core.errors import ValidationFailed
from fsbench.core.specs import Frozen

MAX_JSON = 4 * 2**20
"""Bytes of a JSON file; a Result takes about 4 kB, one with a thousand classes 60 kB."""

Model = TypeVar("Model", bound=Frozen)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file; readers see the old content or the new one, never a part."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_record(path: Path, record: Frozen) -> None:
    """One record as readable JSON, by rename."""
    with replacing(path) as temporary:
        temporary.write_text(record.model_dump_json(indent=1) + "\n", encoding="utf8")


def read_record(path: Path, kind: type[Model]) -> Model:
    """A record of the given kind. Raises ValidationFailed naming the file and every wrong field."""
    return parse_record(read_json(path), kind, path)


def parse_record(data: Any, kind: type[Model], path: Path) -> Model:
    """Parsed data as a record; `path` is for the message only."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise ValidationFailed(
            f"{path} is no valid {kind.__name__}: {wrong_fields(error)}",
            fix="write it with the fsbench version that reads it, and do not edit it by hand",
        ) from error


def wrong_fields(error: ValidationError) -> str:
    """At most eight of the fields that pydantic found wrong, without their values."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    shown = [f"{'.'.join(map(str, e['loc'])) or 'it'}: {e['msg']}"[:200] for e in found[:8]]
    return "; ".join(shown) + (f"; and {len(found) - 8} more" if len(found) > 8 else "")


def read_json(path: Path) -> Any:
    """JSON without NaN, duplicate keys or absurd size. Raises ValidationFailed naming the file."""
    try:
        if path.stat().st_size > MAX_JSON:
            raise ValueError(f"it is larger than {MAX_JSON} bytes")
        text = path.read_text(encoding="utf8")
        data = json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
        if "\\ud" in text.lower():  # an escaped half of a character is no text (UnicodeEncodeError)
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except (OSError, ValueError, RecursionError) as error:
        raise ValidationFailed(
            f"{path} is no readable JSON: {error}", fix="restore the file or make it again"
        ) from error


def refuse(constant: str) -> NoReturn:
    raise ValueError(f"the number {constant} is not finite")


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands there twice")
    return found
