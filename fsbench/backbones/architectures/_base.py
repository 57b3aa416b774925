"""What a file of this package defines: an Architecture, built by name at any width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import nn

from fsbench.backbones.architectures._roles import RoleMap
from fsbench.core.errors import UsageError


@dataclass(frozen=True)
class Architecture:
    """One network of our own, addressed as `fsbench/NAME`.

    factory: (num_classes, width) -> module, with torch's global generator as the source of its
    initial weights (fsbench.core.seeding.stream around it decides them); num_classes = 0 gives the
    head-free trunk, (B, 3, H, W) -> (B, D). roles: of any model that the factory built.
    default_width: channels of the first stage; input_size: side (px) it is meant for; summary: one
    line for listings. fixed_input: the shapes of the weights depend on the side, which the factory
    then takes as a third argument; `at` chooses it.
    """

    name: str
    factory: Callable[..., nn.Module]
    roles: Callable[[nn.Module], RoleMap]
    default_width: int
    input_size: int
    summary: str
    features: str = "global average pooling"
    fixed_input: bool = False

    def at(self, input_size: int) -> Architecture:
        """The same network, meant for images of this side (px)."""
        return replace(self, input_size=input_size)

    def build(self, num_classes: int, width: int | None = None) -> nn.Module:
        """A freshly initialised model. Raises UsageError for impossible sizes."""
        chosen = self.default_width if width is None else width
        if chosen < 1 or num_classes < 0:
            raise UsageError(
                f"fsbench/{self.name} cannot have width {chosen} and {num_classes} classes",
                fix="give a width of at least 1 and a number of classes of at least 0",
            )
        side = (self.input_size,) if self.fixed_input else ()
        return self.factory(num_classes, chosen, *side)
