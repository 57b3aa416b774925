"""Checkpoint files of others, opened without running code.

Formats: safetensors, torch's zip and legacy formats, and TorchScript archives, whole or in shards.
Files of other kinds are named by their first bytes (file_kinds.yaml). Objects beside the weights
are read as inert values; see `fsbench.backbones.pickles`.
"""

import pickle
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from fsbench.backbones import pickles
from fsbench.backbones.pickles import MAGIC, MAGIC_NUMBER, InertValue
from fsbench.core import io
from fsbench.core.errors import CheckpointError

SUFFIXES = (".safetensors", ".pth", ".pt", ".ckpt", ".bin", ".tar")
KINDS = io.read_table(Path(__file__).with_name("file_kinds.yaml"))
FIXES: dict[str, str] = KINDS["fixes"]
BROKEN = (
    *(pickle.UnpicklingError, zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError),
    *(RuntimeError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError),
    *(AssertionError, MemoryError, SafetensorError),
)
"""Exceptions of the readers for truncated, damaged or foreign files."""

SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})(\.\w+)")
"""Name of one shard of several: stem, number, count, suffix."""
INDEX = ".index.json"
"""End of the name of a file that lies beside the shards."""
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
    """Read a file, and the other shards of one: tensors by name, possibly nested in wrappers.

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
        return merge_parts(tree, path)  # type: ignore[no-any-return]
    except BROKEN as error:
        reason = f"{type(error).__name__} {error}".split(". ")[0].strip()
        raise CheckpointError(
            f"{shard} is not a readable checkpoint: {reason}",
            fix=f"fetch or save it again; known formats: {', '.join(SUFFIXES)}",
        ) from error


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


def list_shards(path: Path) -> list[Path]:
    """Return all shards of a shard, or of the index beside them; else the file alone.

    Raises CheckpointError for missing shards.
    """
    name, files = path.name, sorted(file.name for file in path.parent.iterdir())
    if name.endswith(INDEX):
        start = Path(name.removesuffix(INDEX)).stem
        name = next((n for n in files if (m := SHARD.fullmatch(n)) and m[1] == start), name)
    match = SHARD.fullmatch(name)
    if match is None:
        return [path]
    stem, _, count, suffix = match.groups()
    names = [f"{stem}-{i:05d}-of-{count}{suffix}" for i in range(1, int(count) + 1)]
    if missing := [name for name in names if name not in files]:
        raise CheckpointError(
            f"{path} is one of {len(names)} shards; missing beside it: {', '.join(missing[:10])}",
            fix=f"put all of them into {path.parent}",
        )
    return [path.with_name(name) for name in names]


def scale_direction(length: Tensor, direction: Tensor) -> Tensor:
    """Return the weight of torch.nn.utils.weight_norm, g v / |v|."""
    dims = [d for d in range(direction.ndim) if length.ndim == 0 or length.shape[d] == 1]
    norm: Tensor = torch.linalg.vector_norm(direction, dim=dims, keepdim=True)
    return direction * (length / norm)


PARAMETRIZED = "parametrizations.weight.original"
PARTS: tuple[tuple[str, str, str, Callable[[Tensor, Tensor], Tensor]], ...] = (
    ("_orig", "_mask", "", torch.mul),
    ("weight_g", "weight_v", "weight", scale_direction),
    (f"{PARAMETRIZED}0", f"{PARAMETRIZED}1", "weight", scale_direction),
)
"""Ends of the names of two parts and of the weight, and how a network computes it: pruning, and
both forms of weight norm."""


def merge_parts(tree: Any, path: Path, done: dict[int, Any] | None = None) -> Any:
    """Return the tree of a file with whole weights where it stores two parts of them (PARTS).

    done: mapping by its id -> the same with whole weights. Raises CheckpointError if most weights
    of a mapping are empty.
    """
    done = {} if done is None else done
    if not isinstance(tree, dict) or id(tree) in done:
        return done.get(id(tree), tree)
    done[id(tree)] = whole = {**tree}
    for first, second, end, compute in PARTS:
        for stem in [str(n).removesuffix(first) for n in whole if str(n).endswith(first)]:
            one, other = whole[stem + first], whole.get(stem + second)
            if isinstance(one, Tensor) and isinstance(other, Tensor):
                whole[stem + end] = compute(one, other)
                del whole[stem + first], whole[stem + second]
    names = [n for n, v in tree.items() if str(n).endswith("weight") and isinstance(v, Tensor)]
    empty = [name for name in names if tree[name].shape == (0,)]
    if len(empty) > 1 and 2 * len(empty) > len(names):
        raise CheckpointError(
            f"{path} holds empty placeholders for {len(empty)} of {len(names)} weights, as "
            "DeepSpeed ZeRO-3 saves them",
            fix="pass the output of zero_to_fp32.py, which DeepSpeed wrote beside the checkpoint",
        )
    whole |= {name: merge_parts(value, path, done) for name, value in whole.items()}
    return whole


SETTINGS = ("args", "hyper_parameters", "hparams", "config", "cfg", "opt")
ARCHITECTURE_KEYS = ("model", "arch", "architecture", "model_name", "backbone")


def named_architecture(tree: Mapping[str, Any]) -> str:
    """Return the timm architecture that a file states, in itself or in its settings; '' if none."""
    import timm

    settings = [tree, *(tree.get(name) for name in SETTINGS)]
    fields = [part.fields if isinstance(part, InertValue) else part for part in settings]
    names = [f.get(key) for f in fields if isinstance(f, Mapping) for key in ARCHITECTURE_KEYS]
    return next((n for n in names if isinstance(n, str) and timm.is_model(n)), "")
