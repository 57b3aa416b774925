"""A run's state as tensors and JSON: what a checkpoint holds, and putting it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from fsbench.core.errors import CheckpointError
from pretrain.training.validation import freeze_modules, frozen_modules

if TYPE_CHECKING:
    from pretrain.training.context import Context


def pack(ctx: Context) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights, optimizer buffers and memories, and the rest as JSON values."""
    tensors = {f"model/{name}": value for name, value in ctx.model.state_dict().items()}
    for name, held in ctx.optimizer_state().items():
        tensors |= {f"optimizer/{name}/{key}": value for key, value in held.items()}
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


def unpack(ctx: Context, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Put a packed state into a context whose methods are set up; the optimizer comes later.

    Raises CheckpointError when the weights are those of another network.
    """
    weights = {n.removeprefix("model/"): t for n, t in tensors.items() if n.startswith("model/")}
    own = ctx.model.state_dict()
    differing = sorted(own.keys() ^ weights.keys()) or sorted(
        name for name in own if own[name].shape != weights[name].shape
    )
    if differing:
        raise CheckpointError(
            f"the checkpoint holds another network; differing: {', '.join(differing[:5])}",
            fix="delete the run folder and run the command again",
        )
    ctx.model.load_state_dict(weights)
    for name, value in tensors.items():
        kind, _, rest = name.partition("/")
        owner, _, key = rest.rpartition("/")
        if kind == "optimizer":
            on_cpu = key == "step"
            ctx.carried.setdefault(owner, {})[key] = value if on_cpu else value.to(ctx.device)
        elif kind == "memory":
            ctx.memories[owner][key] = value.to(ctx.device)
    for method, values in state["memory"].items():
        ctx.memories[method] |= values
    for counter, value in state["clock"].items():
        setattr(ctx.clock, counter, value)
    ctx.touched = set(state["touched"])
    freeze_modules(ctx.model, state["frozen_modules"])
