"""Pretraining: one loop, many methods that only differ from plain training by hooks."""

from __future__ import annotations

from fsbench.core.registry import Registry, only_subclass
from pretrain.method import Method

METHODS: Registry[type[Method]] = Registry("method", "pretrain.methods", only_subclass(Method))
"""All methods; the file name in pretrain/methods is the public name."""
