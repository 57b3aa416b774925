"""Checkpoints that survive a kill at any moment: a tensor file and a JSON sidecar that names it.

`checkpoint-<n>.safetensors` is written first, then `checkpoint.json` is replaced, then the older
tensor file is removed; whichever moment the process dies at, the sidecar names a complete file.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from fsbench.core.errors import CheckpointError, FsbenchError
from pretrain.training.files import replacing, write_atomic

FORMAT = "fsbench-pretrain-2"
SIDECAR = "checkpoint.json"


def save(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Replace the folder's checkpoint by tensors and JSON state."""
    number = state["saves"] = state.get("saves", 0) + 1
    path = folder / f"checkpoint-{number}.safetensors"
    write_tensors(path, tensors)
    sidecar = {"format": FORMAT, "tensors": path.name, "sha256": digest(path), "state": state}
    write_atomic(folder / SIDECAR, json.dumps(sidecar, indent=1).encode())
    for old in folder.glob("checkpoint-*.safetensors"):
        if old != path:
            old.unlink()


def load(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Tensors and state of the folder's checkpoint; None where there is none.

    Raises CheckpointError naming the file when it is corrupt, foreign or half missing.
    """
    sidecar = folder / SIDECAR
    if not sidecar.exists():
        return None
    try:
        found = json.loads(sidecar.read_text(encoding="utf8"))
        name, expected, state = found["tensors"], found["sha256"], found["state"]
        known = found["format"] == FORMAT and Path(name).name == name
    except (ValueError, KeyError, TypeError) as error:
        raise unusable(sidecar, f"is no checkpoint of ours ({error})", folder) from error
    if not known:
        raise unusable(sidecar, f"is of format '{found['format']}', not '{FORMAT}'", folder)
    path = folder / name
    if not path.is_file() or digest(path) != expected:
        raise unusable(path, "is missing or corrupt (its sha-256 differs)", folder)
    try:
        return load_file(path), state
    except (SafetensorError, OSError) as error:
        raise unusable(path, f"cannot be read ({error})", folder) from error


def unusable(path: Path, why: str, folder: Path) -> CheckpointError:
    return CheckpointError(
        f"{path} {why}", fix=f"restore the file, or delete {folder} and run the command again"
    )


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write a safetensors file that is visible only when it is complete. Raises FsbenchError."""
    held = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    try:
        with replacing(path) as part:
            save_file(held, part)
    except SafetensorError as error:
        raise FsbenchError(
            f"{path} cannot be written: {error}",
            fix="free some disk and run the command again: it goes on where it stopped",
        ) from error


def digest(path: Path) -> str:
    """sha-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
