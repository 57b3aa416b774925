"""Results on disk: written once, verified whenever they are read, merged from shards."""

from fsbench.results.merge import merge
from fsbench.results.reading import episode_records, probe_records, read
from fsbench.results.store import Cell, ResultStore

__all__ = ["Cell", "ResultStore", "episode_records", "merge", "probe_records", "read"]
