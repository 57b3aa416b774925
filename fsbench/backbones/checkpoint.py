"""Checkpoint files of others: opened without running code, and reduced to one state dict.

Formats: safetensors, and torch's zip and legacy formats through `torch.load(weights_only=True)`.
Wrappers and prefixes are those of common training code, e.g. SEAL's `model_state_dict`. If a file
has two candidates (model and moving average, student and teacher), the user picks one: `FILE::KEY`.
"""

from __future__ import annotations

import os
import pickle
import pickletools
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from torch import Tensor

from fsbench.core.errors import CheckpointError

SUFFIXES = (".safetensors", ".pth", ".pt", ".ckpt", ".bin", ".tar")

BROKEN = (
    pickle.UnpicklingError,
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    AttributeError,
    TypeError,
    ArithmeticError,
    AssertionError,
    MemoryError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
    NotImplementedError,
)
"""Exceptions of torch for truncated, damaged or foreign files."""

CHUNK = 1 << 20
LEGACY_PICKLES = 5
"""Pickles in torch's legacy format before the bytes of the tensors."""
LONGEST_WORD = 1 << 14
"""Longest text without a space in a pickle of tensors, in bytes.

torch searches the message of its refusal with patterns that take quadratic time for long words,
which a damaged length field produces easily.
"""

FORCED = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""Environment variable that overrides the argument of torch.load."""

NAMED = re.compile(r"GLOBAL ([\w.]+)|unrecognized function (.+)|but got (.+)")
"""Names of refused objects in messages of torch's restricted unpickler."""


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a file: tensors by name, possibly nested in wrappers.

    Raises CheckpointError naming the file if it is damaged, is not a checkpoint, or contains
    pickled objects other than tensors.
    """
    try:
        tree = _safetensors(path) if path.suffix == ".safetensors" else _torch(path)
    except pickle.UnpicklingError as error:
        name = _in_the_way(path, str(error))
        raise _refusal(path, name) if name else _damaged(path, NO_PICKLE) from error
    except BROKEN as error:
        raise _damaged(path, f"{type(error).__name__} {error}".split(". ")[0]) from error
    if not isinstance(tree, dict):
        raise _damaged(path, f"it holds a {type(tree).__name__}, no dictionary of tensors")
    return {str(name): value for name, value in tree.items()}


def _in_the_way(path: Path, message: str) -> str:
    """Return the first class or function that the file would import; '' if it is no pickle."""
    if named := NAMED.search(message):
        return next(text for text in named.groups() if text)
    texts: list[str] = []
    try:
        with path.open("rb") as file:
            for opcode, argument, _ in pickletools.genops(file):
                if opcode.name == "STACK_GLOBAL":
                    return ".".join(texts[-2:])
                if isinstance(argument, str):
                    texts.append(argument)
    except (ValueError, LookupError, OSError):
        return ""
    return ""


NO_PICKLE = "its bytes are no pickle of tensors"


def _safetensors(path: Path) -> object:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"(no complete safetensors file: {error})") from error


def _torch(path: Path) -> object:
    import torch

    if zipfile.is_zipfile(path):
        _require_whole(path)
    else:
        with path.open("rb") as file:
            _require_words(file, path.stat().st_size, LEGACY_PICKLES)
    return torch.load(path, map_location="cpu", weights_only=True)


@contextmanager
def only_tensors() -> Iterator[None]:
    """Restrict torch.load to tensors inside; torch.hub would unpickle any object."""
    before = os.environ.get(FORCED)
    os.environ[FORCED] = "1"
    try:
        yield
    finally:
        del os.environ[FORCED]
        if before is not None:
            os.environ[FORCED] = before


def _require_words(stream: IO[bytes], size: int, pickles: int) -> None:
    """Raise ValueError if pickled text is longer than any name, or a pickle does not end.

    torch would take hours. Short data that is no pickle is left to torch.
    """
    at, longest, broken = 0, 0, False
    try:
        for _ in range(pickles):
            for _, argument, position in pickletools.genops(stream):
                at = position or at
                if isinstance(argument, str | bytes):
                    longest = max(longest, *map(len, argument.split()), 0)
    except (ValueError, LookupError):
        broken = True
    if longest > LONGEST_WORD or (broken and size - at > LONGEST_WORD):
        raise ValueError(NO_PICKLE)


def _require_whole(path: Path) -> None:
    """Raise ValueError or BadZipFile if a zip unpacks to more than its size, or was modified.

    torch writes uncompressed members and ignores checksums when it reads. A checksum of zero means
    none: torch.serialization.set_crc32_options(False).
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        if unpacked > path.stat().st_size:
            raise ValueError(f"it unpacks to {unpacked} bytes, more than it holds")
        for member in members:
            if member.filename.endswith(".pkl"):
                with archive.open(member) as file:
                    _require_words(file, member.file_size, 1)
            if member.CRC:
                with archive.open(member) as file:
                    while file.read(CHUNK):
                        pass


def _damaged(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"{path} is not a readable checkpoint: {reason.strip()}",
        fix=f"fetch or save it again; known formats: {', '.join(SUFFIXES)}",
    )


def _refusal(path: Path, name: str) -> CheckpointError:
    """Return the error for a file that pickles a class or function."""
    return CheckpointError(
        f"{path} contains a pickled {name}; fsbench does not unpickle arbitrary objects",
        fix="if you trust its author, convert it once, with torch and safetensors.torch "
        "imported, and pass the new file:\n"
        f'    tree = torch.load("{path}", map_location="cpu", weights_only=False)\n'
        "    safetensors.torch.save_file({k: v.clone() for k, v in tree['state_dict'].items()}, "
        f'"{path.with_suffix(".safetensors")}")',
    )


Tree = Mapping[str, Any]

MAX_DEPTH = 8
"""Limit of nested wrappers; a mapping in a file may contain itself."""

WRAPPERS = (
    "state_dict",
    "model",
    "model_state_dict",
    "state_dict_ema",
    "model_ema",
    "teacher",
    "student",
    "state",
)
PREFIXES = (
    "module.",
    "_orig_mod.",
    "teacher.backbone.",
    "momentum_encoder.",
    "backbone.",
    "encoder.",
    "model.",
    "feature.",
)
LONGEST = 100
"""Longest name in a message, in characters."""
HEADS = ("fc", "head", "heads", "classifier", "head_dist")
"""Names of classifiers beside the trunk."""


def select_state(tree: Tree, key: str | None, where: str) -> dict[str, Any]:
    """Return the only state dict in `tree`, or the one below `key`.

    Raises CheckpointError naming `where` if there is none or more than one.
    """
    chosen = select_part(tree, key) if key else tree
    if chosen is None:
        raise CheckpointError(
            f"{where} has no part '{key}'; it contains {shorten(tree)}",
            fix="name one of its parts after '::'",
        )
    depth = 0
    while inner := [name for name in WRAPPERS if holds_tensors(chosen.get(name))]:
        if len(inner) > 1:
            raise CheckpointError(
                f"{where} holds several sets of weights: {', '.join(inner)}",
                fix="choose one: " + " or ".join(f"{where}::{name}" for name in inner),
            )
        chosen, depth = chosen[inner[0]], depth + 1
        if depth > MAX_DEPTH:
            raise CheckpointError(
                f"{where} wraps its weights more than {MAX_DEPTH} times, or in themselves",
                fix="save its state dict alone",
            )
    if not any(isinstance(value, Tensor) for value in chosen.values()):
        raise CheckpointError(
            f"{where} has no weights where they are looked for; it holds {shorten(chosen)}",
            fix=f"name the part that holds them: {where}::KEY",
        )
    return {str(name): value for name, value in chosen.items()}


def select_part(tree: Tree, key: str) -> Tree | None:
    """Return the part called `key`: nested, dotted, or a prefix of flat names."""
    if isinstance(tree.get(key), Mapping):
        part: Tree = tree[key]
        return part
    named = {str(n): v for n, v in tree.items()}
    flat = {n.removeprefix(key + "."): v for n, v in named.items() if n.startswith(key + ".")}
    if flat:
        return flat
    outer = next(
        (n for n, v in named.items() if key.startswith(f"{n}.") and isinstance(v, Mapping)), ""
    )
    return select_part(named[outer], key.removeprefix(f"{outer}.")) if outer else None


def holds_tensors(value: object) -> bool:
    """Return whether a value is a mapping with a tensor, at most one level down."""
    if not isinstance(value, Mapping):
        return False
    inner = [v for part in value.values() if isinstance(part, Mapping) for v in part.values()]
    return any(isinstance(v, Tensor) for v in (*value.values(), *inner))


def shorten(tree: Tree) -> str:
    """Return the first names of a mapping, for messages."""
    names = [str(name)[:LONGEST] for name in tree]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def strip_prefixes(
    state: dict[str, Any], expected: set[str]
) -> tuple[str, dict[str, Any], list[str]]:
    """Strip known prefixes: return (prefix, state without it, names of heads beside it).

    A prefix is stripped only if every name except classifier heads has it, and only until the names
    cover `expected`.
    """
    taken, outside = "", []
    while not expected <= state.keys() and (prefix := shared_prefix(state)):
        outside += [taken + name for name in state if not name.startswith(prefix)]
        state = {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}
        taken += prefix
    return taken, state, outside


def shared_prefix(state: Tree) -> str:
    """Return the known prefix of all names except heads beside it; '' if there is none."""
    return next((p for p in PREFIXES if _shared(state, p)), "")


def _shared(state: Tree, prefix: str) -> bool:
    parent = prefix[: prefix.rfind(".", 0, -1) + 1]
    others = [name for name in state if not name.startswith(prefix)]
    heads = [n for n in others if n.startswith(parent) and n[len(parent) :].split(".")[0] in HEADS]
    return len(others) < len(state) and len(heads) == len(others)
