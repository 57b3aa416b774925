"""Checkpoint files of others, opened without running anything that they contain.

safetensors, and torch's zip and legacy formats through `torch.load(weights_only=True)`.
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
"""What torch raises for cut, damaged or foreign files."""

CHUNK = 1 << 20
LEGACY_PICKLES = 5
"""Of torch's legacy format, before the bytes of the tensors."""
LONGEST_WORD = 1 << 14
"""Bytes without a space in a pickle of tensors. torch looks through the message of its refusal with
patterns that take quadratic time for a long word, which a damaged length easily makes."""

FORCED = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""What torch.load obeys before its own argument."""

NAMED = re.compile(r"GLOBAL ([\w.]+)|unrecognized function (.+)|but got (.+)")
"""Where the messages of torch's restricted unpickler name what it met."""


def read_checkpoint(path: Path) -> dict[str, Any]:
    """What the file holds: tensors by name, maybe nested in wrappers.

    Raises CheckpointError naming the file: damaged, no checkpoint, or holding classes that only
    run on trust.
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
    """The first class or function that the file would import; '' for no pickle at all."""
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
    """Inside, torch.load opens nothing but tensors, whoever calls it: torch.hub asks for more."""
    before = os.environ.get(FORCED)
    os.environ[FORCED] = "1"
    try:
        yield
    finally:
        del os.environ[FORCED]
        if before is not None:
            os.environ[FORCED] = before


def _require_words(stream: IO[bytes], size: int, pickles: int) -> None:
    """Raises ValueError where pickled text is longer than any name, or pickles end nowhere.

    torch would be busy for hours. What is no pickle, but short, is left to torch.
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
    """Raises ValueError or BadZipFile where a zip unpacks to more than it holds, or was changed.

    torch stores what it writes unpacked, and does not look at the checksums when it reads. A zero
    is none: torch.serialization.set_crc32_options(False).
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
        f"{path} is no readable checkpoint: {reason.strip()}",
        fix=f"fetch or save it again; known formats: {', '.join(SUFFIXES)}",
    )


def _refusal(path: Path, name: str) -> CheckpointError:
    """The file names a class or function that a state dict has no use for."""
    return CheckpointError(
        f"{path} holds more than tensors: {name} is in the way, and opening it could run foreign "
        "code",
        fix="where you trust its author, convert it once, with torch and safetensors.torch "
        "imported, and pass the new file:\n"
        f'    tree = torch.load("{path}", map_location="cpu", weights_only=False)\n'
        "    safetensors.torch.save_file({k: v.clone() for k, v in tree['state_dict'].items()}, "
        f'"{path.with_suffix(".safetensors")}")',
    )


Tree = Mapping[str, Any]

MAX_DEPTH = 8
"""Wrappers in wrappers; a file can hold a mapping that holds itself."""

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
"""Characters of a name in a message."""
HEADS = ("fc", "head", "heads", "classifier", "head_dist")
"""Modules that are classifiers wherever they stand outside the trunk."""


def select_state(tree: Tree, key: str | None, where: str) -> dict[str, Any]:
    """The one state dict in `tree`, or the one below `key`.

    Raises CheckpointError naming `where` if there is none or more than one.
    """
    chosen = select_part(tree, key) if key else tree
    if chosen is None:
        raise CheckpointError(
            f"{where} has no part '{key}'; it holds {shorten(tree)}",
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
    """The part called `key`: nested, dotted, or all flat names that start with it."""
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
    """Whether it is a mapping with a tensor in it, at most one level down."""
    if not isinstance(value, Mapping):
        return False
    inner = [v for part in value.values() if isinstance(part, Mapping) for v in part.values()]
    return any(isinstance(v, Tensor) for v in (*value.values(), *inner))


def shorten(tree: Tree) -> str:
    """The first names of a mapping, for messages."""
    names = [str(name)[:LONGEST] for name in tree]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def strip_prefixes(
    state: dict[str, Any], expected: set[str]
) -> tuple[str, dict[str, Any], list[str]]:
    """(prefix taken away, the state without it, heads that stood outside it).

    A prefix goes only while every name carries it, classifier heads beside it excepted, and only
    until the names cover `expected`.
    """
    taken, outside = "", []
    while not expected <= state.keys() and (prefix := shared_prefix(state)):
        outside += [taken + name for name in state if not name.startswith(prefix)]
        state = {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}
        taken += prefix
    return taken, state, outside


def shared_prefix(state: Tree) -> str:
    """The known prefix of all names but the heads beside it; '' if there is none."""
    return next((p for p in PREFIXES if _shared(state, p)), "")


def _shared(state: Tree, prefix: str) -> bool:
    parent = prefix[: prefix.rfind(".", 0, -1) + 1]
    others = [name for name in state if not name.startswith(prefix)]
    heads = [n for n in others if n.startswith(parent) and n[len(parent) :].split(".")[0] in HEADS]
    return len(others) < len(state) and len(heads) == len(others)
