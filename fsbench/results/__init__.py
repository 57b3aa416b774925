"""Results on disk: written once, verified whenever they are read, merged from shards."""

from fsbench.results.assembly import merge
from fsbench.results.store import ResultPlace, ResultStore
from fsbench.results.verification import episode_records, probe_records, read

__all__ = ["ResultPlace", "ResultStore", "episode_records", "merge", "probe_records", "read"]
