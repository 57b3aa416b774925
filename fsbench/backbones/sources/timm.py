"""A network of timm with its pretrained weights, e.g. timm/resnet18.a1_in1k."""

from __future__ import annotations

from fsbench.backbones.sources import _timm
from fsbench.backbones.sources._base import Loaded, Request, unknown

FORM = "timm/NAME"
PREFIX = "timm/"


def load(request: Request) -> Loaded:
    """Raises UsageError for an unknown name, CheckpointError without a copy of the weights."""
    check(request.name)
    return _timm.build(request.name, pretrained=request.random_init is None)


def check(name: str) -> None:
    """Raises UsageError with the nearest names if timm has no such network or tag."""
    import timm

    if not timm.is_model(name):
        raise unknown("timm network", name, timm.list_models())
    if "." in name and name not in (known := timm.list_pretrained(f"{name.split('.')[0]}.*")):
        raise unknown("timm weights", name, known)
