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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

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


def read(path: Path) -> dict[str, Any]:
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
    if found := NAMED.search(message):
        return next(text for text in found.groups() if text)
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
