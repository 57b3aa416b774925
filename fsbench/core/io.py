"""Files: written whole or not at all, and text from strangers read strictly as plain values."""

import atexit
import json
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from fsbench.core.errors import FsbenchError, UsageError, ValidationFailed, nearest_names
from fsbench.core.options import expand_path
from fsbench.core.progress import console_reporter
from fsbench.core.specs import Frozen, digest

MAX_JSON = 4 * 2**20
"""Bytes of a JSON file; a Result takes about 4 kB, one with a thousand classes 60 kB."""
MAX_TEXT = 64 * 2**10
"""Bytes of a TOML or YAML file: their parsers are slow."""
MAX_NUMBER = 1e30
"""Size of a number in a JSON file; the largest real ones are FLOPs of a pretraining."""
TEMPORARY = ".fsbench.tmp"
"""End of the name of a file that is being written."""

Model = TypeVar("Model", bound=Frozen)


def cache_folder(folder: str | Path | None = None) -> Path:
    """Return the cache folder: the given one, else FSBENCH_CACHE, else the user's."""
    if name := folder or os.environ.get("FSBENCH_CACHE"):
        return expand_path(name)
    import platformdirs

    return platformdirs.user_cache_path("fsbench")


@cache
def open_cache(folder: Path) -> Path:
    """Return a cache folder that can be written: this one, or one that ends with the process."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        temporary = Path(tempfile.mkdtemp(prefix="fsbench-cache-"))
        atexit.register(shutil.rmtree, temporary, ignore_errors=True)
        console_reporter().log(
            f"{folder} cannot be written ({error.strerror}): works without keeping features and "
            "images; --cache DIR or FSBENCH_CACHE chooses another folder"
        )
        return temporary
    return folder


def limit_cache(folder: Path, gigabytes: float | None) -> float:
    """Return the most bytes of features and images in a cache, by default a tenth of its disk."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).total / 10 if gigabytes is None else gigabytes * 1e9


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary file that replaces `path` if the block ends without an error.

    Several processes may write `path`. What killed ones left is deleted a day later.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for other in path.parent.glob(f".*{TEMPORARY}"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > 24 * 3600:
                other.unlink()
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{TEMPORARY}")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def lock_exclusively(folder: Path, doing: str) -> AbstractContextManager[object]:
    """Lock a folder, made if missing. Raise FsbenchError if another process is `doing` there."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    try:
        return FileLock(folder / ".lock").acquire(timeout=0)
    except Timeout as error:
        message = f"another process is {doing} in {folder}"
        raise FsbenchError(message, fix="wait for it, or give another -o") from error


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a file; a reader sees the old content or the new one, never a part."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON of a cache with its checksum, by which a reader notices damage."""
    write_atomic(path, json.dumps({**content, "checksum": digest(content)}).encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what `write_sealed` wrote. Raise OSError, ValueError for another file."""
    content = json.loads(path.read_bytes())
    if not isinstance(content, dict) or content.pop("checksum", None) != digest(content):
        raise ValueError(f"{path} is damaged")
    return content


def read_table(path: Path) -> Any:
    """Read a YAML file of this package."""
    import yaml

    text = path.read_text(encoding="utf-8")
    fast = yaml.__with_libyaml__
    return yaml.load(text, yaml.CSafeLoader) if fast else yaml.load(text, yaml.SafeLoader)


def write_record(path: Path, record: Frozen) -> None:
    """Write one record as indented JSON."""
    write_atomic(path, f"{record.model_dump_json(indent=1)}\n".encode())


def read_record(path: Path, kind: type[Model]) -> Model:
    """Read a record. Raise ValidationFailed naming the file and every wrong field."""
    fix = "correct these fields; restore a file that fsbench wrote instead of editing it"
    data, about = read_json(path), f"{path} is not a valid {kind.__name__}"
    with refuse_invalid(ValidationFailed, about, fix, kind.model_fields):
        return kind.model_validate(data)


@contextmanager
def refuse_invalid(
    kind: type[FsbenchError], about: str, fix: str, allowed: Iterable[str] = ()
) -> Iterator[None]:
    """Raise an error of this kind for values that pydantic refuses inside; see `explain_errors`."""
    try:
        yield
    except ValidationError as error:
        raise kind(f"{about}: {explain_errors(error, allowed)}", fix=fix) from error


def explain_errors(error: ValidationError, allowed: Iterable[str] = ()) -> str:
    """Return up to eight wrong fields, without values; allowed: names to propose."""
    errors = error.errors(include_input=False, include_url=False, include_context=False)
    texts = []
    for details in errors[:8]:
        field = ".".join(map(str, details["loc"]))
        text = f"{field}: {details['msg']}" if field else details["msg"]
        if details["type"] == "extra_forbidden":
            near = [f", use '{name}'" for name in nearest_names(field, allowed)]
            text = "".join([f"unknown key '{field}'", *near])
        texts.append(text[:200])
    return "; ".join([*texts, *([f"and {len(errors) - 8} more"] if len(errors) > 8 else [])])


def split_assignments(texts: Iterable[str], form: str) -> list[tuple[str, str]]:
    """Return name and value of every `name=value`. Raise UsageError that shows the form."""
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"'{text}' sets nothing", fix=f"write {form}")
        pairs.append((name.strip(), value.strip()))
    return pairs


def read_bytes(path: Path, most: int) -> bytes:
    """Read a regular file of at most `most` bytes. Raise OSError for any other, as a pipe."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("it is no regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(f"it is larger than {most} bytes")
    return content


def read_json(path: Path) -> Any:
    """Read JSON without NaN, duplicate keys, absurd size or numbers. Raise ValidationFailed."""
    try:
        text = read_bytes(path, MAX_JSON).decode()
        data = DECODER.decode(text)
        if "\\ud" in text.lower():  # an escaped half of a character is no text (UnicodeEncodeError)
            json.dumps(data, ensure_ascii=False).encode()
        return data
    except (OSError, ValueError, RecursionError) as error:
        raise ValidationFailed(
            f"{path} is no readable JSON: {error}", fix="restore the file or make it again"
        ) from error


def parse_number(kind: type[int | float], digits: str) -> int | float:
    """Return the number. Raise ValueError if sums and plots of such numbers could overflow."""
    number = kind(digits)
    if -MAX_NUMBER <= number <= MAX_NUMBER:
        return number
    raise ValueError(f"the number {digits[:40]} is not finite, or larger than {MAX_NUMBER:g}")


def build_unique_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping. Raise ValueError for a duplicate key."""
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("duplicate key")
    return data


DECODER = json.JSONDecoder(
    parse_constant=partial(parse_number, float),
    parse_int=partial(parse_number, int),
    parse_float=partial(parse_number, float),
    object_pairs_hook=build_unique_dict,
)


def flatten_mapping(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one with dotted names: {"a": {"b": 1}} gives {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        is_nested = isinstance(value, dict)
        flat |= flatten_mapping(value, f"{prefix}{key}.") if is_nested else {prefix + key: value}
    return flat


def read_mapping(file: Path, allowed: str, *, as_written: bool = False) -> dict[str, Any]:
    """Read JSON, TOML or YAML, by suffix, as a mapping. Raise ValidationFailed naming the file.

    allowed: keys, for the message; as_written: scalars of YAML stay text: `010` is not 8.
    """
    data = read_json(file) if file.suffix == ".json" else _read_text(file, as_written)
    if not isinstance(data, dict):
        raise ValidationFailed(f"{file} is no mapping of fields", fix=f"fields: {allowed}")
    return data


def _read_text(file: Path, as_written: bool) -> Any:
    """Read TOML, or YAML without aliases (they grow without end), tags and duplicate keys."""
    import tomllib

    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {} if as_written else yaml.SafeLoader.yaml_implicit_resolvers

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise ValueError("it holds an alias")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            return build_unique_dict(self.construct_pairs(node, deep=True))

    try:
        text = read_bytes(file, MAX_TEXT).decode("utf-8-sig")
        return tomllib.loads(text) if file.suffix == ".toml" else Loader(text).get_single_data()
    except (OSError, TypeError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ValidationFailed(
            f"{file} cannot be read: {error}", fix="write it as JSON, TOML or YAML in UTF-8"
        ) from error
