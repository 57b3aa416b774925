"""Sources of backbones, one file each, chosen by the prefix of a reference.

A file defines FORM, the reference with capitals for what varies, e.g. `timm/NAME`; PREFIX, with
which such references start; and `load(request) -> LoadedNetwork`. Initial weights come from torch's
global generator, which `fsbench.backbones.load_backbone` seeds for the call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol

from torch import nn

from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import Triple

IMAGENET_MEAN: Triple = (0.485, 0.456, 0.406)
IMAGENET_STD: Triple = (0.229, 0.224, 0.225)
"""Default for networks whose source states no normalisation."""


@dataclass(frozen=True)
class BackboneRequest:
    """A parsed reference. name: the part after the prefix; random_init: seed of random weights."""

    ref: str
    name: str
    arch: str | None = None
    random_init: int | None = None
    trusted: bool = True
    report: Reporter = SILENT


@dataclass(frozen=True, eq=False)
class LoadedNetwork:
    """A head-free module and the facts that its source states.

    features: how they are computed; input_size: training side (px); more: further fields of
    BackboneFacts (recipe, steps, ...); blocks: names of the modules that end its blocks, where the
    source has them and the module has no `forward_intermediates`.
    """

    module: nn.Module
    architecture: str
    features: str
    input_size: int = 224
    mean: Triple = IMAGENET_MEAN
    std: Triple = IMAGENET_STD
    more: dict[str, Any] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()


class BackboneSource(Protocol):
    """Interface of a file of this package."""

    __doc__: str | None
    FORM: str
    PREFIX: str

    def load(self, request: BackboneRequest) -> LoadedNetwork:
        """Load the network of a reference."""


def unknown_name_error(kind: str, name: str, names: list[str]) -> UsageError:
    """Return the error for an unknown name, with the three nearest of many names."""
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "no similar name"
    return UsageError(f"unknown {kind} '{name}'", fix=f"{hint} ({len(names)} names are known)")


def to_triple(values: object) -> Triple:
    """Convert a sequence to three floats."""
    r, g, b = (float(v) for v in values)  # type: ignore[attr-defined]
    return r, g, b
