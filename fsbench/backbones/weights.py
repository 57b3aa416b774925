"""Weights of a network: hash, check for finite values, and strict loading from state dicts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fsbench.backbones.checkpoint import HEADS, LONGEST, strip_prefixes
from fsbench.backbones.roles import below
from fsbench.core.errors import CheckpointError
from fsbench.core.progress import SILENT, Reporter

COUNTER = "num_batches_tracked"
"""A BatchNorm buffer without effect in eval mode, which old files lack."""


def weights_hash(state_dict: Mapping[str, Tensor], head: tuple[str, ...] = ()) -> str:
    """Return the sha-256 over the tensors outside `head` (module prefixes), 64 hex digits.

    It covers name, dtype, shape and bytes in order of name, without batch counters.
    """
    digest = hashlib.sha256()
    for name in sorted(state_dict):
        if name.endswith(COUNTER) or below(name, head):
            continue
        tensor = state_dict[name].detach().cpu().contiguous()
        dtype = str(tensor.dtype).removeprefix("torch.")
        digest.update(f"{name}\0{dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def check_finite(state_dict: Mapping[str, Tensor], where: str) -> None:
    """Raise CheckpointError naming `where` and the tensors with NaN or infinity."""
    bad = [n for n, t in state_dict.items() if t.is_floating_point() and not t.isfinite().all()]
    if bad:
        raise CheckpointError(
            f"{where}: NaN or infinity in {len(bad)} of {len(state_dict)} tensors: "
            f"{', '.join(bad[:10])}",
            fix="the training diverged or the file is damaged; take an earlier checkpoint",
        )


FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COUNTS = (torch.int16, torch.int32, torch.int64, torch.uint8)
"""Types that convert to those of a network; quantised, packed and complex ones do not."""
SHOWN = 10
"""Maximum number of names of each kind in a message."""


@dataclass(frozen=True)
class WeightMatch:
    """Comparison of a state dict with a network.

    Names of the file are matched, dropped, unexpected or misfit; names of the network may be
    missing.
    """

    prefix: str
    matched: dict[str, Tensor]
    dropped: list[str]
    missing: list[str]
    unexpected: list[str]
    misfit: list[str]

    @property
    def complete(self) -> bool:
        """Return whether nothing is missing, unexpected or misfit."""
        return not (self.missing or self.unexpected or self.misfit)

    def lines(self) -> list[str]:
        """Return the comparison as text, one line per kind that occurs."""
        prefix = f", prefix '{self.prefix}' stripped" if self.prefix else ""
        kinds = {
            "dropped head": self.dropped,
            "missing": self.missing,
            "unexpected": self.unexpected,
            "wrong shape or type": self.misfit,
        }
        listed = [f"{what} {len(n)}: {join_names(n)}" for what, n in kinds.items() if n]
        return [f"matched {len(self.matched)} tensors{prefix}", *listed]


def join_names(names: list[str]) -> str:
    """Return the first names and the number of further ones."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(name[:LONGEST] for name in names[:SHOWN]) + more


def match_weights(
    state: Mapping[str, Any], module: nn.Module, heads: Iterable[str] = HEADS
) -> WeightMatch:
    """Compare a state dict with the head-free `module`; only names below `heads` may be dropped."""
    target = module.state_dict()
    needed = {name for name in target if not name.endswith(COUNTER)}
    prefix, inner, dropped = strip_prefixes(dict(state), needed)
    extra = [name for name in inner if name not in target]
    dropped += [name for name in extra if below(name, heads)]
    misfit = [
        m for name in inner if name in target and (m := describe_misfit(name, inner[name], target))
    ]
    matched = {n: v for n, v in inner.items() if n in target and isinstance(v, Tensor)}
    return WeightMatch(
        prefix=prefix,
        matched=matched,
        dropped=dropped,
        missing=sorted(needed - inner.keys()),
        unexpected=[name for name in extra if not below(name, heads)],
        misfit=misfit,
    )


def describe_misfit(name: str, value: object, target: Mapping[str, Tensor]) -> str:
    """Return why `value` cannot be the tensor `name`; '' if it can."""
    if not isinstance(value, Tensor):
        return f"{name} is a {type(value).__name__}"
    want = target[name]
    if value.shape != want.shape:
        return f"{name} is {tuple(value.shape)}, not {tuple(want.shape)}"
    kinds = FLOATS if want.is_floating_point() else COUNTS
    if value.dtype not in kinds or value.layout != want.layout:
        return f"{name} is {value.dtype} {value.layout}, not {want.dtype} {want.layout}"
    return f"{name} is a shape without values" if value.is_meta else ""


def load_weights(
    module: nn.Module,
    state: Mapping[str, Any],
    where: str,
    architecture: str,
    report: Reporter = SILENT,
    heads: Iterable[str] = HEADS,
) -> None:
    """Copy all weights of the head-free `module` from `state`, and report the comparison.

    A full match or an error, never `strict=False`.

    Raises CheckpointError naming `where`, with the names, if anything is left over or missing.
    """
    comparison = match_weights(state, module, heads)
    for line in comparison.lines():
        report.log(f"{where}: {line}")
    if not comparison.complete:
        raise CheckpointError(
            f"{where} does not fit {architecture}: {'; '.join(comparison.lines())}",
            fix=suggest_fix(comparison),
        )
    counters = {n: v for n, v in module.state_dict().items() if n.endswith(COUNTER)}
    module.load_state_dict({**counters, **comparison.matched}, strict=True)


def suggest_fix(comparison: WeightMatch) -> str:
    """Return what to do about an incomplete match."""
    parts = sorted({name.split(".")[0] for name in comparison.unexpected})
    if comparison.missing and len(parts) > 1:
        return (
            f"name the part that holds the backbone as FILE::PART; parts: {', '.join(parts[:10])}"
        )
    return "give the architecture that the weights were trained with (--arch)"
