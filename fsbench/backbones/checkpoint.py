"""Checkpoint files of others, opened without running code, and their preprocessing.

Formats: safetensors, and torch's zip and legacy formats through `torch.load(weights_only=True)`.
InertValue and numbers that training programs store beside the weights are read as inert values; any
other object is refused, with a command that converts the file.

Normalisation and size are those of the first JSON file beside FILE that states them: FILE's name
with .json (mean, std, input_size); run.json of `fsbench pretrain`; config.json of timm
(pretrained_cfg); preprocessor_config.json of transformers (image_mean, image_std, crop_size or
size). A value that no file states is the architecture's.
"""

import json
import os
import pickle
import pickletools
import re
import shlex
import struct
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel, Field, PositiveFloat, ValidationError

from fsbench.backbones.sources import LoadedNetwork
from fsbench.core.errors import CheckpointError, ValidationFailed
from fsbench.core.io import explain_errors, read_json
from fsbench.core.progress import Reporter
from fsbench.core.specs import Triple

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


@dataclass(frozen=True)
class FileReference:
    """A checkpoint file, the part of it that the user named, and its architecture."""

    path: str
    part: str = ""
    arch: str = ""

    @classmethod
    def parse(cls, text: str) -> "FileReference | None":
        """Read FILE[::PART][@ARCH]; None if there is no such file. A path may hold an @ itself."""
        path, _, part = text.partition("::")
        if Path(path).is_file():
            part, _, arch = part.partition("@")
            return cls(path, part, arch)
        for at in [i for i, letter in enumerate(path) if letter == "@"]:
            if Path(path[:at]).is_file():
                return cls(path[:at], part, path[at + 1 :])
        return None

    def __str__(self) -> str:
        part, arch = self.part and f"::{self.part}", self.arch and f"@{self.arch}"
        return f"{self.path}{part}{arch}"


class InertValue:
    """Inert stand-in for a settings object, path or number that is pickled beside the weights."""

    def __init__(self, *values: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)


PLAIN = (
    "argparse.Namespace",
    "types.SimpleNamespace",
    "pathlib.Path",
    "pathlib.PosixPath",
    "pathlib.PurePosixPath",
    "pathlib.WindowsPath",
    "pathlib._local.PosixPath",
    "datetime.datetime",
    "datetime.timedelta",
    "numpy.dtype",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
)
PLAIN_MAPPINGS = (
    "yacs.config.CfgNode",
    "easydict.EasyDict",
    "pytorch_lightning.utilities.parsing.AttributeDict",
    "lightning.pytorch.utilities.parsing.AttributeDict",
    "lightning.fabric.utilities.data.AttributeDict",
)
"""Classes without behaviour that training programs store; none of them is imported."""


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
    plain: list[Any] = [(InertValue, name) for name in PLAIN]
    plain += [(OrderedDict, name) for name in PLAIN_MAPPINGS]
    with torch.serialization.safe_globals(plain):
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


CONVERSION = (
    "import torch; f = lambda x: x if torch.is_tensor(x) else {{str(k): f(v) for k, v in "
    '(x.state_dict() if hasattr(x, "state_dict") else x if isinstance(x, dict) else {{}})'
    '.items()}}; torch.save(f(torch.load({old}, "cpu", weights_only=False)), {new})'
)
"""Program that keeps the tensors of a file, those of pickled modules too, and nothing else."""


def _refusal(path: Path, name: str) -> CheckpointError:
    """Return the error for a file that pickles a class or function."""
    new = str(path.with_suffix(".weights.pth"))
    command = shlex.quote(CONVERSION.format(old=json.dumps(str(path)), new=json.dumps(new)))
    return CheckpointError(
        f"{path} contains a pickled {name}; fsbench does not unpickle arbitrary objects",
        fix="if you trust its author, keep its weights alone, where its classes can be imported, "
        f"and pass {new}:\n    python -c {command}",
    )


SETTINGS = ("args", "hyper_parameters", "hparams", "config", "cfg", "opt")
ARCHITECTURE_KEYS = ("model", "arch", "architecture", "model_name", "backbone")


def named_architecture(tree: Mapping[str, Any]) -> str:
    """Return the timm architecture that a file states, in itself or in its settings; '' if none."""
    import timm

    places = [tree, *(tree.get(name) for name in SETTINGS)]
    fields = [vars(place) if isinstance(place, InertValue) else place for place in places]
    names = [f.get(key) for f in fields if isinstance(f, Mapping) for key in ARCHITECTURE_KEYS]
    return next((n for n in names if isinstance(n, str) and timm.is_model(n)), "")


class Preprocessing(BaseModel):
    """Preprocessing that a file states; None where it states nothing."""

    mean: Triple | None = None
    std: tuple[PositiveFloat, PositiveFloat, PositiveFloat] | None = None
    input_size: int | None = Field(None, ge=8, le=1024)


def with_stated_preprocessing(loaded: LoadedNetwork, path: Path, report: Reporter) -> LoadedNetwork:
    """Return the network with the values that a JSON file beside `path` states, and log them.

    Raises CheckpointError for values that no image can be normalised by.
    """
    for name in (f"{path.stem}.json", "run.json", "config.json", "preprocessor_config.json"):
        beside = path.with_name(name)
        if not beside.is_file():
            continue
        try:
            stated = Preprocessing.model_validate(stated_values(read_json(beside)))
        except ValidationFailed as error:
            raise CheckpointError(error.message, fix=f"mend {beside}, or move it away") from error
        except ValidationError as error:
            raise CheckpointError(
                f"{beside}: {explain_errors(error)}", fix="mend it, or move it away"
            ) from error
        values = {field: value for field, value in stated if value is not None}
        if values:
            report.log(f"{path}: {', '.join(values)} from {name}")
            return replace(loaded, **values)
    return loaded


def stated_values(content: Any) -> dict[str, Any]:
    """Return mean, std and input_size of any of the known files, as far as they are there."""
    if not isinstance(content, dict):
        return {}
    timm_config = "architecture" in content and "pretrained_cfg" in content
    config = content["pretrained_cfg"] if timm_config else content
    config = config if isinstance(config, dict) else {}
    size: Any = config.get("input_size", config.get("crop_size", config.get("size")))
    if isinstance(size, dict):
        size = size.get("height", size.get("shortest_edge"))
    return {
        "mean": config.get("mean", config.get("image_mean")),
        "std": config.get("std", config.get("image_std")),
        "input_size": size[-1] if isinstance(size, list) and size else size,
    }
