"""Foreign weights into a network of ours: a full match or an error, never `strict=False`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fsbench.backbones.architectures._roles import below
from fsbench.backbones.unwrap import HEADS, LONGEST, strip_prefixes
from fsbench.backbones.weights import COUNTER
from fsbench.core.errors import CheckpointError
from fsbench.core.progress import SILENT, Reporter

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
COUNTS = (torch.int16, torch.int32, torch.int64, torch.uint8)
"""Types that turn into a network's own; quantised, packed and complex numbers do not."""
SHOWN = 10
"""Names that a message lists at most, of each kind."""


@dataclass(frozen=True)
class Plan:
    """What would happen to every name: of the file (matched, dropped, unexpected, misfit) and of
    the network (missing)."""

    prefix: str
    matched: dict[str, Tensor]
    dropped: list[str]
    missing: list[str]
    unexpected: list[str]
    misfit: list[str]

    @property
    def complete(self) -> bool:
        return not (self.missing or self.unexpected or self.misfit)

    def lines(self) -> list[str]:
        """The plan as text, one line a kind that occurs."""
        prefix = f", prefix '{self.prefix}' stripped" if self.prefix else ""
        kinds = {
            "dropped head": self.dropped,
            "missing": self.missing,
            "unexpected": self.unexpected,
            "wrong shape or type": self.misfit,
        }
        listed = [f"{what} {len(n)}: {first(n)}" for what, n in kinds.items() if n]
        return [f"matched {len(self.matched)} tensors{prefix}", *listed]


def first(names: list[str]) -> str:
    """The first names and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(name[:LONGEST] for name in names[:SHOWN]) + more


def match(state: Mapping[str, Any], module: nn.Module, heads: Iterable[str] = HEADS) -> Plan:
    """Compare a state dict with the head-free `module`; only names below `heads` may be dropped."""
    target = module.state_dict()
    needed = {name for name in target if not name.endswith(COUNTER)}
    prefix, inner, dropped = strip_prefixes(dict(state), needed)
    extra = [name for name in inner if name not in target]
    dropped += [name for name in extra if below(name, heads)]
    misfit = [m for name in inner if name in target and (m := misfits(name, inner[name], target))]
    matched = {n: v for n, v in inner.items() if n in target and isinstance(v, Tensor)}
    return Plan(
        prefix=prefix,
        matched=matched,
        dropped=dropped,
        missing=sorted(needed - inner.keys()),
        unexpected=[name for name in extra if not below(name, heads)],
        misfit=misfit,
    )


def misfits(name: str, value: object, target: Mapping[str, Tensor]) -> str:
    """Why `value` cannot be the tensor `name`; '' if it can."""
    if not isinstance(value, Tensor):
        return f"{name} is a {type(value).__name__}"
    want = target[name]
    if value.shape != want.shape:
        return f"{name} is {tuple(value.shape)}, not {tuple(want.shape)}"
    kinds = FLOATS if want.is_floating_point() else COUNTS
    if value.dtype not in kinds or value.layout != want.layout:
        return f"{name} is {value.dtype} {value.layout}, not {want.dtype} {want.layout}"
    return f"{name} is a shape without values" if value.is_meta else ""


def load_into(
    module: nn.Module,
    state: Mapping[str, Any],
    where: str,
    architecture: str,
    report: Reporter = SILENT,
    heads: Iterable[str] = HEADS,
) -> None:
    """Copy all weights of the head-free `module` from `state`, and report the plan.

    Raises CheckpointError naming `where`, with the names, if anything is left over or missing.
    """
    plan = match(state, module, heads)
    for line in plan.lines():
        report.log(f"{where}: {line}")
    if not plan.complete:
        raise CheckpointError(
            f"{where} does not fit {architecture}: {'; '.join(plan.lines())}", fix=advice(plan)
        )
    counters = {n: v for n, v in module.state_dict().items() if n.endswith(COUNTER)}
    module.load_state_dict({**counters, **plan.matched}, strict=True)


def advice(plan: Plan) -> str:
    """What to do about a plan that is not complete."""
    parts = sorted({name.split(".")[0] for name in plan.unexpected})
    if plan.missing and len(parts) > 1:
        return (
            f"name the part that holds the backbone as FILE::PART; parts: {', '.join(parts[:10])}"
        )
    return "give the architecture that the weights were trained with (--arch)"
