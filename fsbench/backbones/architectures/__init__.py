"""Networks of our own, one file each, addressed as `fsbench/NAME`; the file name is the name."""

from __future__ import annotations

from fsbench.backbones.architectures._base import Architecture
from fsbench.backbones.architectures._roles import RoleMap
from fsbench.registry import Registry, attribute

__all__ = ["ARCHITECTURES", "Architecture", "RoleMap"]

ARCHITECTURES: Registry[Architecture] = Registry(
    "architecture", "fsbench.backbones.architectures", attribute("ARCHITECTURE")
)
