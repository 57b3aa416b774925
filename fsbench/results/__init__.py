"""Results on disk: written once, verified whenever they are read, merged from shards."""

from fsbench.results.assembly import merge
from fsbench.results.store import ResultStore
from fsbench.results.verification import episode_records, probe_records, read

__all__ = ["ResultStore", "episode_records", "merge", "probe_records", "read"]
