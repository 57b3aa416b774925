"""Published layouts of checkpoint files: what the names in a file tell about its network.

A file of weights states no number of heads, activation, padding or normalisation. Where its names
show whose code wrote it, that code states them. An entry of layouts.yaml holds what the cited code
fixes for every file of a layout, and nothing else; `libraries` there only tells whose names they
are.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor

from fsbench.backbones.sources import Argument
from fsbench.core import io
from fsbench.core.specs import Triple

States = Iterable[tuple[str, Mapping[str, Any]]]
"""(dotted path, names and values) of the mappings of a checkpoint that hold tensors."""
LONGEST = 1000
"""Most letters of a name that are looked at."""

TABLES = io.read_table(Path(__file__).with_suffix(".yaml"))
WRAPPERS: list[str] = TABLES["wrappers"]


def drop_wrappers(name: str, modules: Collection[str] = ()) -> str:
    """Return a dotted name without the wrappers in it, except those that are in `modules`."""
    return ".".join(p for p in name.split(".") if p not in WRAPPERS or p in modules)


@dataclass(frozen=True)
class Layout:
    """A published layout, and what the code of its authors fixes.

    source: paper and code; patterns: each finds a name, with wrappers dropped; statistics: mean and
    std of images in [0, 1]; absent: pattern that finds no name; arguments: pattern of timm's names
    -> arguments of `timm.create_model`; renames: (pattern, replacement) pairs that give today's
    names; tf: whether its EfficientNets are those that timm calls `tf_`.
    """

    name: str
    source: str
    patterns: tuple[str, ...]
    statistics: tuple[Triple, Triple] | None = None
    absent: str = ""
    arguments: Mapping[str, Mapping[str, Argument]] = field(default_factory=dict)
    renames: tuple[tuple[str, str], ...] = ()
    tf: bool = False

    def fits(self, names: str) -> bool:
        """Return whether a file with these names, one a line, has this layout."""
        return all(re.search(pattern, names, re.M) for pattern in self.patterns) and not (
            self.absent and re.search(self.absent, names, re.M)
        )

    def arguments_for(self, architecture: str) -> dict[str, Argument]:
        rows = (row for pattern, row in self.arguments.items() if re.match(pattern, architecture))
        return dict(next(rows, {}))

    def rename(self, names: Iterable[str], target: Iterable[str]) -> dict[str, str]:
        """Return names of a file -> names as the network `target` has them."""
        renamed = {name: name for name in names}
        for pattern, replacement in self.renames:
            renamed = {name: re.sub(pattern, replacement, new) for name, new in renamed.items()}
        return rename_efficientnet(renamed, target) if self.tf else renamed


LAYOUTS = TypeAdapter(tuple[Layout, ...]).validate_python(TABLES["layouts"])


def rename_efficientnet(names: Mapping[str, str], target: Iterable[str]) -> dict[str, str]:
    """Return names of EfficientNet-PyTorch as timm's, which count blocks by stage."""
    prefixes = list(
        dict.fromkeys(m[0] for n in target if (m := re.match(r"blocks\.\d+\.\d+\.", n)))
    )
    expanded = {m[1] for n in names.values() if (m := re.search(r"_blocks\.(\d+)\._expand", n))}

    def rename(parts: re.Match[str]) -> str:
        i, layer = parts["block"], parts["layer"]
        separable = i is not None and i not in expanded
        prefix = "" if i is None else prefixes[int(i)] if int(i) < len(prefixes) else f"blocks.{i}."
        if layer.startswith("_bn"):
            return f"{prefix}bn{int(layer[3:]) + (not separable)}."
        short = separable and layer == "_project_conv"
        return f"{prefix}{'conv_pw' if short else TABLES['efficientnet'].get(layer, layer)}."

    pattern = r"\b(_blocks\.(?P<block>\d{1,3})\.)?(?P<layer>_(bn\d|[a-z][a-z_]+))\."
    return {name: re.sub(pattern, rename, new, count=1) for name, new in names.items()}


def has_moco_positions(tensor: Tensor) -> bool:
    """Return whether positions (1, 1 + N, D) are the fixed ones of MoCo v3, and not of MAE.

    Those of the first row of patches are 0 in their first half, of the row, up to its cosines.
    """
    plain = tensor.layout == torch.strided and tensor.is_floating_point() and not tensor.is_meta
    if not plain or tensor.ndim != 3 or tensor.shape[1] < 5 or tensor.shape[2] % 4:
        return False
    n = tensor.shape[2] // 4
    angles = 10000.0 ** -(torch.arange(n) / n)
    second = torch.cat([torch.zeros(n), torch.ones(n), angles.sin(), angles.cos()])
    first, _, patch = tensor[0, :3].float()
    return torch.allclose(patch, second, atol=1e-3) and not first.any()


def write_names(states: States) -> str:
    """Return the dotted names of all tensors, one a line, without wrappers, and marks of values."""
    lines = []
    for where, state in states:
        for name, value in state.items():
            if isinstance(value, Tensor):
                lines.append(drop_wrappers(f"{where}.{name}".removeprefix("."))[:LONGEST])
                if name.endswith("pos_embed") and has_moco_positions(value):
                    lines.append("moco-v3-positions")
    return "\n".join(lines)


def recognise_layouts(states: States) -> list[Layout]:
    names = write_names(states)
    return [layout for layout in LAYOUTS if layout.fits(names)]


def recognise_library(states: States) -> tuple[str, str]:
    """Return whose names a checkpoint has, and what to do; empty texts if nobody's is known."""
    names = write_names(states)
    rows = TABLES["libraries"]
    return next(((name, fix) for name, mark, fix in rows if re.search(mark, names, re.M)), ("", ""))
