"""Verified results without their records, and records without the rest."""

from pathlib import Path

from fsbench.core.records import EpisodeRecords, ProbeRecords
from fsbench.core.schema import Result
from fsbench.results.verification import read_loaded, read_one_result


def read(path: Path) -> list[Result]:
    return [loaded.result for loaded in read_loaded(path)]


def episode_records(reference: str | Path) -> EpisodeRecords:
    records = read_one_result(reference).records
    assert isinstance(records, EpisodeRecords)
    return records


def probe_records(reference: str | Path) -> ProbeRecords:
    records = read_one_result(reference).records
    assert isinstance(records, ProbeRecords)
    return records
