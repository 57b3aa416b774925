"""Weights that a file stores in parts: pruned or normalised ones, and those of other processes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from fsbench.backbones.pickles import InertValue
from fsbench.core.errors import CheckpointError


def scale_direction(length: Tensor, direction: Tensor) -> Tensor:
    """Return the weight of torch.nn.utils.weight_norm, g v / |v|."""
    dims = [d for d in range(direction.ndim) if length.ndim == 0 or length.shape[d] == 1]
    norm: Tensor = torch.linalg.vector_norm(direction, dim=dims, keepdim=True)
    return direction * (length / norm)


NEW = "parametrizations.weight.original"
PARTS: tuple[tuple[str, str, str, Callable[[Tensor, Tensor], Tensor]], ...] = (
    ("weight_orig", "weight_mask", "weight", torch.mul),
    ("bias_orig", "bias_mask", "bias", torch.mul),
    ("weight_g", "weight_v", "weight", scale_direction),
    (f"{NEW}0", f"{NEW}1", "weight", scale_direction),
)
"""Ends of the names of both parts and of the weight, and how a network computes it: pruning, and
both forms of weight norm, of torch.nn.utils."""


def merge_parts(tree: dict[Any, Any], path: Path, done: dict[int, Any] | None = None) -> Any:
    """Return the tree of a file with whole weights.

    done: mapping by its id -> the same with whole weights. Raises CheckpointError for weights of
    which the file holds a part or nothing.
    """
    done = {} if done is None else done
    if id(tree) not in done:
        require_values(tree, path)
        done[id(tree)] = whole = {**tree}
        for first, second, end, compute in PARTS:
            for stem in [str(n).removesuffix(first) for n in whole if str(n).endswith(first)]:
                left, right = whole[stem + first], whole.get(stem + second)
                if isinstance(left, Tensor) and isinstance(right, Tensor):
                    whole[stem + end] = compute(left, right)
                    del whole[stem + first], whole[stem + second]
        for name, value in whole.items():
            whole[name] = merge_parts(value, path, done) if isinstance(value, dict) else value
    return done[id(tree)]


def require_values(state: dict[Any, Any], path: Path) -> None:
    """Raise CheckpointError if most weights are empty, or if one is a part of a tensor."""
    names = [n for n, v in state.items() if str(n).endswith("weight") and isinstance(v, Tensor)]
    empty = [name for name in names if state[name].shape == (0,)]
    if len(empty) > 1 and 2 * len(empty) > len(names):
        raise CheckpointError(
            f"{path} holds empty placeholders for {len(empty)} of {len(names)} weights, as "
            "DeepSpeed ZeRO-3 saves them",
            fix="pass the output of zero_to_fp32.py, which DeepSpeed wrote beside the checkpoint",
        )
    kinds = [type(value).__name__ for value in state.values() if isinstance(value, InertValue)]
    if any(kind.endswith((".DTensor", ".ShardedTensor")) for kind in kinds):
        raise CheckpointError(
            f"{path} holds the part of one process of each weight (DTensor, ShardedTensor)",
            fix="save get_model_state_dict(network, options=StateDictOptions(full_state_dict=True))"
            " of torch.distributed.checkpoint.state_dict",
        )
