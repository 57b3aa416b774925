"""Networks of this project, one file each, addressed as `fsbench/NAME` by file name.

A recipe may also name a network of timm: `timm/NAME`.
"""

from __future__ import annotations

from fsbench.backbones.roles import Architecture, RoleMap
from fsbench.core.registry import Registry, attribute

__all__ = ["ARCHITECTURES", "Architecture", "RoleMap"]


class Architectures(Registry[Architecture]):
    """Registry of the files of this package; `timm/NAME` loads too but is not listed."""

    def load(self, name: str) -> Architecture:
        """Load an architecture. Raise UnknownName, or UsageError for an unknown timm name."""
        from fsbench.backbones.architectures import _timm

        if name.startswith(_timm.PREFIX):
            return _timm.timm_architecture(name.removeprefix(_timm.PREFIX))
        return super().load(name)


ARCHITECTURES = Architectures(
    "architecture", "fsbench.backbones.architectures", attribute("ARCHITECTURE")
)
