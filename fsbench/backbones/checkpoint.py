"""Checkpoint files of others, opened without running code.

Formats: safetensors, torch's zip and legacy formats, and TorchScript archives, whole or in shards.
Objects beside the weights are read as inert values; see `fsbench.backbones.pickles`.
"""

import os
import pickle
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from fsbench.backbones import pickles
from fsbench.backbones.file_kinds import SUFFIXES, find_format
from fsbench.backbones.pickles import InertValue
from fsbench.backbones.preprocessing import read_json_beside
from fsbench.backbones.weight_parts import merge_parts
from fsbench.core.errors import CheckpointError

BROKEN = (
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError),
    *(RuntimeError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError),
    *(AssertionError, MemoryError, SafetensorError),
)
"""Exceptions of the readers for truncated, damaged or foreign files."""

FORCED = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""Environment variable that overrides the argument of torch.load."""

SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.\w+)")
"""Name of one shard of several: stem, number, count, suffix."""
INDEX = ".index.json"
"""End of the name of a file that says which shard holds which weight."""


@dataclass(frozen=True)
class FileReference:
    """A checkpoint file, the part of it that the user named, and its architecture."""

    path: str
    part: str = ""
    arch: str = ""

    @classmethod
    def parse(cls, text: str) -> "FileReference | None":
        """Read FILE[::PART][@ARCH] or FILE@ARCH::PART; None if there is no such file or folder.

        A path may hold an @ itself.
        """
        path, _, part = text.partition("::")
        for end in (len(path), *(i for i, letter in enumerate(path) if letter == "@")):
            file, arch = Path(path[:end]), path[end + 1 :]
            if end and (file.is_file() or file.is_dir()):  # no device is opened
                if end == len(path):
                    part, _, arch = part.partition("@")
                return cls(path[:end], part, arch)
        return None

    def __str__(self) -> str:
        part, arch = self.part and f"::{self.part}", self.arch and f"@{self.arch}"
        return f"{self.path}{part}{arch}"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a file, and the other shards of one: tensors by name, possibly nested in wrappers.

    Raises CheckpointError naming the file if it is damaged or is not a checkpoint, and the shards
    that are missing.
    """
    shards = list_shards(path)
    tree = {name: value for shard in shards for name, value in read_file(shard).items()}
    try:
        joined: dict[str, Any] = merge_parts(tree, path)
        return joined
    except RuntimeError as error:
        raise damage_error(path, str(error)) from error


def read_file(path: Path) -> dict[str, Any]:
    """Read one file. Raise CheckpointError."""
    readers: dict[str, Callable[[Path], object]]
    readers = {"safetensors": load_file, "zip": pickles.read_zip, "legacy": pickles.read_legacy}
    try:
        tree = readers[find_format(path)](path)
    except BROKEN as error:
        raise damage_error(path, f"{type(error).__name__} {error}".split(". ")[0]) from error
    if not isinstance(tree, dict):
        raise damage_error(path, f"it holds a {type(tree).__name__}, no dictionary of tensors")
    return {str(name): value for name, value in tree.items()}


def list_shards(path: Path) -> list[Path]:
    """Return the files that hold the weights of a shard or of an index; else the file alone.

    Raises CheckpointError for missing shards, and for an index of files elsewhere.
    """
    if path.name.endswith(INDEX):
        content = read_json_beside(path).get("weight_map")
        names = sorted(set(content.values())) if isinstance(content, dict) else []
        if not names or any(Path(str(name)).name != name for name in names):
            raise CheckpointError(f"{path} lists no shards", fix="pass the file of weights")
    elif match := SHARD.fullmatch(path.name):
        stem, _, count, suffix = match.groups()
        names = [f"{stem}-{i:05d}-of-{count}{suffix}" for i in range(1, int(count) + 1)]
    else:
        return [path]
    if missing := [name for name in names if not path.with_name(name).is_file()]:
        raise CheckpointError(
            f"{path} is one of {len(names)} shards; missing beside it: {', '.join(missing[:10])}",
            fix=f"put all of them into {path.parent}",
        )
    return [path.with_name(name) for name in names]


@contextmanager
def only_tensors() -> Iterator[None]:
    """Restrict torch.load to tensors inside; torch.hub would unpickle any object.

    Raises RuntimeError for files with other objects, without torch's proposal to run them.
    """
    before = os.environ.get(FORCED)
    os.environ[FORCED] = "1"
    try:
        yield
    except (pickle.UnpicklingError, RuntimeError) as error:
        if "weights_only" not in str(error):
            raise
        raise RuntimeError(
            "its file holds objects beside its tensors; download it and pass FILE@ARCH, which "
            "reads the tensors alone"
        ) from error
    finally:
        del os.environ[FORCED]
        if before is not None:
            os.environ[FORCED] = before


def damage_error(path: Path, reason: str) -> CheckpointError:
    """Return the error for a file that begins as a checkpoint and is none."""
    return CheckpointError(
        f"{path} is not a readable checkpoint: {reason.strip()}",
        fix=f"fetch or save it again; known formats: {', '.join(SUFFIXES)}",
    )


SETTINGS = ("args", "hyper_parameters", "hparams", "config", "cfg", "opt")
ARCHITECTURE_KEYS = ("model", "arch", "architecture", "model_name", "backbone")


def named_architecture(tree: Mapping[str, Any]) -> str:
    """Return the timm architecture that a file states, in itself or in its settings; '' if none."""
    import timm

    places = [tree, *(tree.get(name) for name in SETTINGS)]
    fields = [place.fields if isinstance(place, InertValue) else place for place in places]
    names = [f.get(key) for f in fields if isinstance(f, Mapping) for key in ARCHITECTURE_KEYS]
    return next((n for n in names if isinstance(n, str) and timm.is_model(n)), "")
