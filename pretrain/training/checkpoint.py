"""Checkpoints of a run that survive a kill at any moment: a tensor file and a JSON sidecar.

`checkpoint-<n>.safetensors` is written first, then `checkpoint.json` is replaced, then the older
tensor file is removed; whichever moment the process dies at, the sidecar names a complete file.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, empty_like

from fsbench.core.errors import CheckpointError, FsbenchError
from fsbench.core.io import replacing, write_atomic
from pretrain.training.context import Context
from pretrain.training.validation import freeze_modules, frozen_modules

FORMAT = "fsbench-pretrain-2"
SIDECAR = "checkpoint.json"


def save_checkpoint(folder: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Replace the folder's checkpoint."""
    number = state["saves"] = state.get("saves", 0) + 1
    path = folder / f"checkpoint-{number}.safetensors"
    write_tensors(path, tensors)
    sidecar = {"format": FORMAT, "tensors": path.name, "sha256": file_digest(path), "state": state}
    write_atomic(folder / SIDECAR, json.dumps(sidecar, indent=1).encode())
    for old in folder.glob("checkpoint-*.safetensors"):
        if old != path:
            old.unlink()


def load_checkpoint(folder: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """Return tensors and state, None without a checkpoint. Raises CheckpointError if unusable."""
    sidecar = folder / SIDECAR
    if not sidecar.exists():
        return None
    try:
        record = json.loads(sidecar.read_text(encoding="utf8"))
        name, expected, state = record["tensors"], record["sha256"], record["state"]
        is_ours = record["format"] == FORMAT and Path(name).name == name
    except (ValueError, KeyError, TypeError) as error:
        raise _unusable(sidecar, f"is no checkpoint of fsbench ({error})", folder) from error
    if not is_ours:
        raise _unusable(sidecar, f"is of format '{record['format']}', not '{FORMAT}'", folder)
    path = folder / name
    if not path.is_file() or file_digest(path) != expected:
        raise _unusable(path, "is missing or corrupt (its sha-256 differs)", folder)
    try:
        return load_file(path), state
    except (SafetensorError, OSError) as error:
        raise _unusable(path, f"cannot be read ({error})", folder) from error


def _unusable(path: Path, why: str, folder: Path) -> CheckpointError:
    return CheckpointError(
        f"{path} {why}", fix=f"restore the file, or delete {folder} and run the command again"
    )


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write a safetensors file that is visible only when it is complete. Raises FsbenchError."""
    on_cpu = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    try:
        with replacing(path) as part:
            save_file(on_cpu, part)
    except SafetensorError as error:
        raise FsbenchError(
            f"{path} cannot be written: {error}",
            fix="free disk space and run the command again; it continues where it stopped",
        ) from error


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pack_state(ctx: Context) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return a run's weights, optimizer buffers and memories as tensors, the rest as JSON."""
    tensors = {f"model/{name}": value for name, value in ctx.model.state_dict().items()}
    for name, buffers in ctx.optimizer_state().items():
        tensors |= {f"optimizer/{name}/{key}": value for key, value in buffers.items()}
    values: dict[str, dict[str, Any]] = {}
    for method, memory in ctx.memories.items():
        for key, value in memory.items():
            if isinstance(value, Tensor):
                tensors[f"memory/{method}/{key}"] = value
            else:
                values.setdefault(method, {})[key] = value
    state = {
        "clock": ctx.clock.state(),
        "memory": values,
        "touched": sorted(ctx.touched),
        "frozen_modules": frozen_modules(ctx.model),
    }
    return {name: value.detach().clone() for name, value in tensors.items()}, state


def unpack_state(ctx: Context, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Restore a packed state in a context whose methods are set up; the optimizer comes later.

    Raises CheckpointError if the weights are those of another network.
    """
    weights = {n.removeprefix("model/"): t for n, t in tensors.items() if n.startswith("model/")}
    expected = ctx.model.state_dict()
    differing = sorted(expected.keys() ^ weights.keys()) or sorted(
        name for name in expected if expected[name].shape != weights[name].shape
    )
    if differing:
        raise CheckpointError(
            f"the checkpoint is of another network; differing: {', '.join(differing[:5])}",
            fix="delete the run folder and run the command again",
        )
    ctx.model.load_state_dict(weights)
    parameters = dict(ctx.model.named_parameters())
    for name, value in tensors.items():
        kind, _, rest = name.partition("/")
        owner, _, key = rest.rpartition("/")
        if kind == "optimizer":
            # in another layout than its parameter's, the optimizer needs a kernel for every tensor
            buffer = empty_like(parameters.get(owner, value), device=ctx.device)
            ctx.carried.setdefault(owner, {})[key] = value if key == "step" else buffer.copy_(value)
        elif kind == "memory":
            ctx.memories[owner][key] = value.to(ctx.device)
    for method, values in state["memory"].items():
        ctx.memories[method] |= values
    for counter, value in state["clock"].items():
        setattr(ctx.clock, counter, value)
    ctx.touched = set(state["touched"])
    freeze_modules(ctx.model, state["frozen_modules"])
