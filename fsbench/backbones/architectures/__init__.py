"""Networks of this project, one file each, addressed as `fsbench/NAME` by file name.

A recipe may also name a network of timm: `timm/NAME`.
"""

from __future__ import annotations

from fsbench.backbones.roles import Architecture, RoleMap
from fsbench.core.registry import Registry, attribute

__all__ = ["ARCHITECTURES", "Architecture", "RoleMap", "load_architecture"]

ARCHITECTURES: Registry[Architecture] = Registry(
    "architecture", "fsbench.backbones.architectures", attribute("ARCHITECTURE")
)


def load_architecture(name: str) -> Architecture:
    """Load an architecture, of timm too. Raise UnknownName, or UsageError for timm's."""
    from fsbench.backbones.architectures import _timm

    if name.startswith(_timm.PREFIX):
        return _timm.timm_architecture(name.removeprefix(_timm.PREFIX))
    return ARCHITECTURES.load(name)
