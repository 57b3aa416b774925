"""Where backbones come from, one file each; the prefix of a reference names the file."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Protocol

from torch import nn

from fsbench.core.errors import UsageError
from fsbench.core.progress import SILENT, Reporter

Triple = tuple[float, float, float]

IMAGENET_MEAN: Triple = (0.485, 0.456, 0.406)
IMAGENET_STD: Triple = (0.229, 0.224, 0.225)
"""Used where nothing is known of the weights: networks of our own with random weights."""


@dataclass(frozen=True)
class BackboneRequest:
    """A reference taken apart. name: what follows the prefix; random_init: seed of the control."""

    ref: str
    name: str
    arch: str | None = None
    random_init: int | None = None
    trusted: bool = True
    report: Reporter = SILENT


@dataclass(frozen=True, eq=False)
class LoadedNetwork:
    """A head-free module and what its source knows of it.

    features: how they are taken; input_size: side (px) it was trained at; more: further fields of
    BackboneFacts (recipe, steps, ...).
    """

    module: nn.Module
    architecture: str
    features: str
    input_size: int = 224
    mean: Triple = IMAGENET_MEAN
    std: Triple = IMAGENET_STD
    more: dict[str, Any] = field(default_factory=dict)


class BackboneSource(Protocol):
    """A module of this package."""

    __doc__: str | None
    FORM: str
    PREFIX: str

    def load(self, request: BackboneRequest) -> LoadedNetwork:
        """The module that the reference names."""


def unknown_name_error(kind: str, name: str, names: list[str]) -> UsageError:
    """A name outside a list that is too long to print: the three nearest names."""
    near = get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "none of its names is near"
    return UsageError(f"unknown {kind} '{name}'", fix=f"{hint} ({len(names)} names are known)")


def to_triple(values: object) -> Triple:
    """Three floats of a sequence."""
    r, g, b = (float(v) for v in values)  # type: ignore[attr-defined]
    return r, g, b
