"""From what a checkpoint file holds to one state dict: wrappers and prefixes met in the wild.

Source: peers.md D ("Checkpoint formats met in the wild") and protocol.md 2 for SEAL's
`model_state_dict`. Two candidates (a model and its moving average, a student and a teacher) are
never chosen between: the user names one as `FILE::KEY`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from fsbench.core.errors import CheckpointError

Tree = Mapping[str, Any]

MAX_DEPTH = 8
"""Wrappers in wrappers; a file can hold a mapping that holds itself."""

WRAPPERS = (
    "state_dict",
    "model",
    "model_state_dict",
    "state_dict_ema",
    "model_ema",
    "teacher",
    "student",
    "state",
)
PREFIXES = (
    "module.",
    "_orig_mod.",
    "teacher.backbone.",
    "momentum_encoder.",
    "backbone.",
    "encoder.",
    "model.",
    "feature.",
)
LONGEST = 100
"""Characters of a name in a message."""
HEADS = ("fc", "head", "heads", "classifier", "head_dist")
"""Modules that are classifiers wherever they stand outside the trunk."""


def state_of(tree: Tree, key: str | None, where: str) -> dict[str, Any]:
    """The one state dict in `tree`, or the one below `key`.

    Raises CheckpointError naming `where` if there is none or more than one.
    """
    chosen = select(tree, key) if key else tree
    if chosen is None:
        raise CheckpointError(
            f"{where} has no part '{key}'; it holds {shorten(tree)}",
            fix="name one of its parts after '::'",
        )
    depth = 0
    while inner := [name for name in WRAPPERS if holds_tensors(chosen.get(name))]:
        if len(inner) > 1:
            raise CheckpointError(
                f"{where} holds several sets of weights: {', '.join(inner)}",
                fix="choose one: " + " or ".join(f"{where}::{name}" for name in inner),
            )
        chosen, depth = chosen[inner[0]], depth + 1
        if depth > MAX_DEPTH:
            raise CheckpointError(
                f"{where} wraps its weights more than {MAX_DEPTH} times, or in themselves",
                fix="save its state dict alone",
            )
    if not any(isinstance(value, Tensor) for value in chosen.values()):
        raise CheckpointError(
            f"{where} has no weights where they are looked for; it holds {shorten(chosen)}",
            fix=f"name the part that holds them: {where}::KEY",
        )
    return {str(name): value for name, value in chosen.items()}


def select(tree: Tree, key: str) -> Tree | None:
    """The part called `key`: nested, dotted, or all flat names that start with it."""
    if isinstance(tree.get(key), Mapping):
        part: Tree = tree[key]
        return part
    named = {str(n): v for n, v in tree.items()}
    flat = {n.removeprefix(key + "."): v for n, v in named.items() if n.startswith(key + ".")}
    if flat:
        return flat
    outer = next(
        (n for n, v in named.items() if key.startswith(f"{n}.") and isinstance(v, Mapping)), ""
    )
    return select(named[outer], key.removeprefix(f"{outer}.")) if outer else None


def holds_tensors(value: object) -> bool:
    """Whether it is a mapping with a tensor in it, at most one level down."""
    if not isinstance(value, Mapping):
        return False
    inner = [v for part in value.values() if isinstance(part, Mapping) for v in part.values()]
    return any(isinstance(v, Tensor) for v in (*value.values(), *inner))


def shorten(tree: Tree) -> str:
    """The first names of a mapping, for messages."""
    names = [str(name)[:LONGEST] for name in tree]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def strip_prefixes(
    state: dict[str, Any], expected: set[str]
) -> tuple[str, dict[str, Any], list[str]]:
    """(prefix taken away, the state without it, heads that stood outside it).

    A prefix goes only while every name carries it, classifier heads beside it excepted, and only
    until the names cover `expected`.
    """
    taken, outside = "", []
    while not expected <= state.keys() and (prefix := shared_prefix(state)):
        outside += [taken + name for name in state if not name.startswith(prefix)]
        state = {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}
        taken += prefix
    return taken, state, outside


def shared_prefix(state: Tree) -> str:
    """The known prefix of all names but the heads beside it; '' if there is none."""
    return next((p for p in PREFIXES if _shared(state, p)), "")


def _shared(state: Tree, prefix: str) -> bool:
    parent = prefix[: prefix.rfind(".", 0, -1) + 1]
    others = [name for name in state if not name.startswith(prefix)]
    heads = [n for n in others if n.startswith(parent) and n[len(parent) :].split(".")[0] in HEADS]
    return len(others) < len(state) and len(heads) == len(others)
