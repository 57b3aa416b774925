"""Evaluation protocols: episodic heads, found by file name, and probes of whole data sets."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, cast

from fsbench.core.registry import HEADS, Registry

if TYPE_CHECKING:
    from protocols.base import EpisodicProtocol


def _module(module: ModuleType) -> EpisodicProtocol:
    """Return the module if it defines the interface of an episodic head."""
    missing = {"ADAPTATION", "block_size", "evaluate_block"} - set(vars(module))
    if missing:
        raise LookupError(f"it must define {', '.join(sorted(missing))}")
    return cast("EpisodicProtocol", module)


def needs_features(protocol: EpisodicProtocol) -> bool:
    """Return whether the head needs features of all images before it runs."""
    return bool(getattr(protocol, "FEATURES", True))


EPISODIC: Registry[EpisodicProtocol] = Registry(
    "adaptation", "protocols.episodic", _module, group=HEADS
)
