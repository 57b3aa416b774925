"""Evaluation protocols: episodic heads, found by file name, and probes of whole data sets."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, cast

from fsbench.core.registry import Registry

if TYPE_CHECKING:
    from protocols.base import EpisodicProtocol


def _module(module: ModuleType) -> EpisodicProtocol:
    """The module itself, if it defines what an episodic protocol must."""
    missing = {"ADAPTATION", "block_size", "evaluate_block"} - set(vars(module))
    if missing:
        raise LookupError(f"it must define {', '.join(sorted(missing))}")
    return cast("EpisodicProtocol", module)


def needs_features(protocol: EpisodicProtocol) -> bool:
    """Whether features must be extracted before it runs."""
    return bool(getattr(protocol, "FEATURES", True))


EPISODIC: Registry[EpisodicProtocol] = Registry("adaptation", "protocols.episodic", _module)
