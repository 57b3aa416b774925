"""Source and target data sets: loaders and registries, usable without torch."""

from fsbench.data.base import TargetDataset
from fsbench.data.catalog import SOURCES, TARGETS, DataRoots, dataset_groups, resolve_alias
from fsbench.data.loading import describe_dataset, load_source, load_target
from fsbench.data.source import SourceDataset, Split

__all__ = [
    "SOURCES",
    "TARGETS",
    "DataRoots",
    "SourceDataset",
    "Split",
    "TargetDataset",
    "dataset_groups",
    "describe_dataset",
    "load_source",
    "load_target",
    "resolve_alias",
]
