"""Data sets: `load_target`, `load_source`, and the registries of their FACTS (torch-free)."""

from __future__ import annotations

from fsbench.data.base import TargetDataset
from fsbench.data.catalog import SOURCES, TARGETS, groups, resolve
from fsbench.data.loading import load_source, load_target, record
from fsbench.data.roots import DataRoots
from fsbench.data.source import SourceDataset, Split

__all__ = [
    "SOURCES",
    "TARGETS",
    "DataRoots",
    "SourceDataset",
    "Split",
    "TargetDataset",
    "groups",
    "load_source",
    "load_target",
    "record",
    "resolve",
]
