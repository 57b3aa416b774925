"""Networks of timm as architectures: `timm/NAME`, roles found automatically.

Networks whose weights depend on the size of the images (transformers) are built for the recipe's
input_size where timm can, and refused elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from torch import nn

from fsbench.backbones.architectures._automatic import SIDE, roles_of
from fsbench.backbones.architectures._base import Architecture
from fsbench.core.errors import UsageError

PREFIX = "timm/"
OWN_WIDTH = 1
"""What stands for a width: a network of timm has its own."""


class FixedSize(Architecture):
    """A network for images of one size: its roles are found on an image of that size."""

    def at(self, input_size: int) -> Architecture:
        roles = partial(roles_of, name=self.name, side=input_size)
        return replace(self, input_size=input_size, roles=roles)


def architecture(name: str) -> Architecture:
    """Random weights are timm's own. Raises UsageError for a name that timm does not have."""
    import timm

    if not timm.is_model(name):
        raise UsageError(
            f"timm has no network '{name}'", fix="see timm.list_models() for its names"
        )
    config: Any = timm.get_pretrained_cfg(name)
    fixed = bool(config and config.fixed_input_size)
    side = config.input_size[-1] if fixed else 224
    return (FixedSize if fixed else Architecture)(
        name=PREFIX + name,
        factory=partial(create, name),
        roles=partial(roles_of, name=PREFIX + name, side=side if fixed else SIDE),
        default_width=OWN_WIDTH,
        input_size=side,
        summary=f"{name} of timm",
        fixed_input=fixed,
    )


def create(name: str, num_classes: int, width: int, side: int | None = None) -> nn.Module:
    """side: px, for a network of fixed size. Raises UsageError for a width or another size."""
    import timm

    if width != OWN_WIDTH:
        raise UsageError(
            f"{PREFIX}{name} has its own width, {width} was given", fix="use --set width=null"
        )
    config: Any = timm.get_pretrained_cfg(name) if side else None
    own = config and config.input_size[-1]
    sized: dict[str, Any] = {} if side == own else {"img_size": side}
    try:
        model: Any = timm.create_model(name, num_classes=num_classes, **sized)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(
            f"{PREFIX}{name}, made for {own} px, cannot be built for {side} px images: {error}",
            fix=f"use --set input_size={own}",
        ) from error
    return model  # type: ignore[no-any-return]
