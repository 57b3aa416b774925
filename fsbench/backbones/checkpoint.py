"""Checkpoint files of others, opened without running code.

Formats: safetensors, torch's zip and legacy formats, and TorchScript archives, whole or in shards.
Files of other kinds are named by their first bytes (file_kinds.yaml). Objects beside the weights
are read as inert values; see `fsbench.backbones.pickles`.
"""

import glob
import pickle
import re
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from fsbench.backbones import pickles
from fsbench.backbones.pickles import MAGIC, MAGIC_NUMBER, InertValue
from fsbench.core import io
from fsbench.core.errors import UNREADABLE, CheckpointError

SUFFIXES = (".safetensors", ".pth", ".pt", ".ckpt", ".bin", ".tar")
KINDS = io.read_table(Path(__file__).with_name("file_kinds.yaml"))
FIXES: dict[str, str] = KINDS["fixes"]
BROKEN = (*UNREADABLE, pickle.UnpicklingError, zipfile.BadZipFile, SafetensorError)
"""Exceptions of the readers for truncated, damaged or foreign files."""

SHARD = re.compile(r"(.+)-\d{5}-of-(\d{5})(\.\w+)")
"""Name of one shard of several: stem, count, suffix."""
INDEX = ".index.json"
"""End of the name of the list of shards that lies beside them."""
ROOT = "."
"""PART of a reference that stands for the names of a file that have no prefix."""


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

    def inside(self, part: str) -> "FileReference":
        """Return the reference to a part of what the user named."""
        names = [name for name in (self.part, part) if name not in {"", ROOT}]
        return replace(self, part=".".join(names) or ROOT)

    def __str__(self) -> str:
        part, arch = self.part and f"::{self.part}", self.arch and f"@{self.arch}"
        return f"{self.path}{part}{arch}"


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Read a file, or all shards of one: tensors by name, possibly nested in wrappers.

    Raises CheckpointError naming the file if it is damaged or is not a checkpoint, and the shards
    that are missing.
    """
    readers: dict[str, Callable[[Path], Any]]
    readers = {"safetensors": load_file, "zip": pickles.read_zip, "legacy": pickles.read_legacy}
    tree: dict[str, Any] = {}
    shard = path
    try:
        for shard in list_shards(path):
            part = readers[find_format(shard)](shard)
            if not isinstance(part, dict):
                raise TypeError(f"it holds a {type(part).__name__}, no dictionary of tensors")
            tree |= {str(name): value for name, value in part.items()}
        return tree
    except BROKEN as error:
        reason = f"{type(error).__name__} {error}".split(". ")[0].strip()
        raise CheckpointError(
            f"{shard} is not a readable checkpoint: {reason}",
            fix=f"fetch or save it again; known formats: {', '.join(SUFFIXES)}",
        ) from error


def list_shards(path: Path) -> list[Path]:
    """Return all shards of the model that a shard or their index belongs to, else the file alone.

    Raises CheckpointError for shards that are missing.
    """
    name = path.name
    if name.endswith(INDEX):
        weights = Path(name.removesuffix(INDEX))
        shards = path.parent.glob(f"{glob.escape(weights.stem)}-*-of-*{weights.suffix}")
        name = next((shard.name for shard in shards), name)
    match = SHARD.fullmatch(name)
    if match is None:
        return [path]
    stem, count, suffix = match.groups()
    names = [f"{stem}-{i:05d}-of-{count}{suffix}" for i in range(1, int(count) + 1)]
    if missing := [name for name in names if not path.with_name(name).is_file()]:
        raise CheckpointError(
            f"{path} is one of {len(names)} shards; missing beside it: {', '.join(missing[:10])}",
            fix=f"put all of them into {path.parent}",
        )
    return [path.with_name(name) for name in names]


def find_format(path: Path) -> str:
    """Return how weights are stored: safetensors, zip, legacy. Raise CheckpointError."""
    with path.open("rb") as file:
        head = file.read(1024)
    members: list[str] = []
    if head.startswith(b"PK\x03\x04"):
        with suppress(*BROKEN), zipfile.ZipFile(path) as archive:
            members = archive.namelist()
    if any(name.split("/")[1:] == ["data.pkl"] for name in members):
        return "zip"
    if head[8:9] == b"{" and not any(head[5:8]):
        return "safetensors"
    if MAGIC in head[:32] or head.startswith(b"L%dL" % MAGIC_NUMBER):
        return "legacy"
    if not head or (head.startswith(b"PK") and not members):
        raise CheckpointError(f"{path} is cut: its end is missing", fix="fetch or save it again")
    kinds = [row[1:] for row in KINDS["bytes"] if re.match(row[0].encode(), head, re.DOTALL)]
    for by, names in (("zip", members), ("name", [path.name])):
        kinds += [row[1:] for row in KINDS[by] if any(re.fullmatch(row[0], n) for n in names)]
    kind, fix = kinds[0]
    raise CheckpointError(f"{path} is {kind}, not a file of weights", fix=FIXES.get(fix, fix))


SETTINGS = ("args", "hyper_parameters", "hparams", "config", "cfg", "opt")
ARCHITECTURE_KEYS = ("model", "arch", "architecture", "model_name", "backbone")


def named_architecture(tree: Mapping[str, Any]) -> str:
    """Return the timm architecture that a file states, in itself or in its settings; '' if none."""
    import timm

    settings = [tree, *(tree.get(name) for name in SETTINGS)]
    fields = [part.fields if isinstance(part, InertValue) else part for part in settings]
    names = [f.get(key) for f in fields if isinstance(f, Mapping) for key in ARCHITECTURE_KEYS]
    return next((n for n in names if isinstance(n, str) and timm.is_model(n)), "")
