"""The papers' checkable claims, re-run by anyone: `fsbench reproduce`; one file per claim.

A claim's file defines SOURCE (paper, table), CLAIM (one line), RULE (when which verdict), SEEDS
(the usual number; 0: nothing random) and `run(seeds, report) -> Outcome`. The file name is the
public name.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from fsbench.core.registry import Registry

PARTS = ("SOURCE", "CLAIM", "RULE", "SEEDS", "run")


def _pick(module: ModuleType) -> Any:
    missing = [part for part in PARTS if not hasattr(module, part)]
    if missing:
        raise LookupError(f"it defines no {', '.join(missing)}")
    return module


CLAIMS: Registry[Any] = Registry("claim", "fsbench.reproductions", _pick)
"""Name -> module of the claim."""
