"""Checkpoint files of others, opened without running anything that they contain.

safetensors, and torch's zip and legacy formats through `torch.load(weights_only=True)`.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

from fsbench.errors import CheckpointError

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
)
"""What torch raises for cut, damaged or foreign files."""

CLASS = re.compile(r"(?:GLOBAL|class|function) ([\w.<>\- ]*[\w>])")


def read(path: Path) -> dict[str, Any]:
    """What the file holds: tensors by name, maybe nested in wrappers.

    Raises CheckpointError naming the file: damaged, no checkpoint, or holding classes that only
    run on trust.
    """
    try:
        tree = _safetensors(path) if path.suffix == ".safetensors" else _torch(path)
    except pickle.UnpicklingError as error:
        raise _refusal(path, error) from error
    except BROKEN as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(tree, dict):
        raise _damaged(path, f"it holds a {type(tree).__name__}, no dictionary of tensors")
    return {str(name): value for name, value in tree.items()}


def _safetensors(path: Path) -> object:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"no complete safetensors file ({error})") from error


def _torch(path: Path) -> object:
    import torch

    return torch.load(path, map_location="cpu", weights_only=True)


def _damaged(path: Path, reason: str) -> CheckpointError:
    what = (reason.strip() or "it is empty").splitlines()[0]
    return CheckpointError(
        f"{path} is no readable checkpoint: {what}",
        fix=f"fetch or save it again; known formats: {', '.join(SUFFIXES)}",
    )


def _refusal(path: Path, error: pickle.UnpicklingError) -> CheckpointError:
    """A pickle with more than tensors in it, or bytes that are no pickle at all."""
    text = str(error)
    found = CLASS.search(text)
    if found is None:
        return _damaged(path, text)
    return CheckpointError(
        f"{path} holds more than tensors: {found[1]} is in the way, and opening it could run "
        "foreign code",
        fix="where you trust its author, convert it once and pass the new file:\n"
        f'    tree = torch.load("{path}", map_location="cpu", weights_only=False)\n'
        "    safetensors.torch.save_file({k: v.clone() for k, v in tree['state_dict'].items()}, "
        f'"{path.with_suffix(".safetensors")}")',
    )
