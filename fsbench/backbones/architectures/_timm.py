"""Convolutional networks of timm as architectures: `timm/NAME`, roles found automatically."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import nn

from fsbench.backbones.architectures._automatic import roles_of
from fsbench.backbones.architectures._base import Architecture
from fsbench.errors import UsageError

PREFIX = "timm/"
OWN_WIDTH = 1
"""What stands for a width: a network of timm has its own."""


def architecture(name: str) -> Architecture:
    """Random weights are timm's own. Raises UsageError for a name that timm does not have."""
    import timm

    if not timm.is_model(name):
        raise UsageError(
            f"timm has no network '{name}'", fix="see timm.list_models() for its names"
        )
    return Architecture(
        name=PREFIX + name,
        factory=partial(create, name),
        roles=partial(roles_of, name=PREFIX + name),
        default_width=OWN_WIDTH,
        input_size=224,
        summary=f"{name} of timm",
    )


def create(name: str, num_classes: int, width: int) -> nn.Module:
    """Raises UsageError for a width."""
    import timm

    if width != OWN_WIDTH:
        raise UsageError(
            f"{PREFIX}{name} has its own width, {width} was given", fix="use --set width=null"
        )
    model: Any = timm.create_model(name, num_classes=num_classes)
    return model  # type: ignore[no-any-return]
