"""Networks of our own, one file each, addressed as `fsbench/NAME`; the file name is the name.

A recipe may name a convolutional network of timm as well: `timm/NAME`.
"""

from __future__ import annotations

from fsbench.backbones.roles import Architecture, RoleMap
from fsbench.core.registry import Registry, attribute

__all__ = ["ARCHITECTURES", "Architecture", "RoleMap"]


class Architectures(Registry[Architecture]):
    """The files of this package by name; `timm/NAME` loads, and is not listed."""

    def load(self, name: str) -> Architecture:
        """Raises UnknownName; UsageError for a name that timm does not have."""
        from fsbench.backbones.architectures import _timm

        if name.startswith(_timm.PREFIX):
            return _timm.timm_architecture(name.removeprefix(_timm.PREFIX))
        return super().load(name)


ARCHITECTURES = Architectures(
    "architecture", "fsbench.backbones.architectures", attribute("ARCHITECTURE")
)
