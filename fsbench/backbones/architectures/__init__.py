"""Networks of this project, one file each, addressed as `fsbench/NAME` by file name.

A recipe may also name a network of timm: `timm/NAME`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from fsbench.backbones.normalization import insert_normalizers
from fsbench.backbones.roles import Architecture, RoleMap
from fsbench.core.registry import Registry, attribute

__all__ = ["ARCHITECTURES", "Architecture", "RoleMap", "load_architecture", "register_in_timm"]

TIMM_NAME = "fsbench_"
"""Prefix of this project's networks where they are registered with timm."""

ARCHITECTURES: Registry[Architecture] = Registry(
    "architecture", "fsbench.backbones.architectures", attribute("ARCHITECTURE")
)


def load_architecture(name: str) -> Architecture:
    """Load an architecture, of timm too. Raise UnknownName, or UsageError for timm's."""
    from fsbench.backbones.architectures import _timm

    if name.startswith(_timm.PREFIX):
        return _timm.timm_architecture(name.removeprefix(_timm.PREFIX))
    return ARCHITECTURES.load(name)


def register_in_timm() -> None:
    """Register every network of this project with timm as fsbench_NAME.

    `timm.create_model("local-dir:DIR", pretrained=True)` then loads the folders that `fsbench
    export` writes of runs whose networks timm lacks.
    """
    import timm
    from timm.models import register_model

    for name in ARCHITECTURES.names():
        if not timm.is_model(TIMM_NAME + name):
            register_model(_make_entrypoint(name))


def _make_entrypoint(name: str) -> Callable[..., nn.Module]:
    """Return the function that timm calls to build a network of this project."""
    from timm.models import build_model_with_cfg

    def build(
        num_classes: int,
        width: int | None,
        side: int,
        normalizers: dict[str, list[int]],
        **unused: Any,  # e.g. in_chans, a default of timm
    ) -> nn.Module:
        model = load_architecture(name).at(side).build(num_classes, width)
        insert_normalizers(model, {key: tuple(shape) for key, shape in normalizers.items()})
        return model

    def entrypoint(pretrained: bool = False, **options: Any) -> nn.Module:
        model: nn.Module = build_model_with_cfg(build, TIMM_NAME + name, pretrained, **options)
        return model

    entrypoint.__name__ = TIMM_NAME + name
    return entrypoint
