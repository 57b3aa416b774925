"""What a result says about its records, recomputed from them by everyone who reads it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from fsbench.core.records import EpisodeRecords, ImageRecords, ProbeRecords, columns
from fsbench.core.schema import ScoreRecord
from fsbench.core.specs import ProbeSpec, Spec
from fsbench.results import choices

Records = EpisodeRecords | ProbeRecords | ImageRecords


def records_digest(records: Records) -> str:
    """sha-256 over names, types, shapes and values: independent of the Parquet writer."""
    digest = hashlib.sha256(type(records).__name__.encode())
    for name, column in columns(records).items():
        values = np.ascontiguousarray(column)
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        digest.update(f"\n{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def outcomes(records: Records, spec: Spec) -> NDArray[np.float64]:
    """What is averaged: accuracy of every episode (E,), or 0/1 of every test image (N,)."""
    if isinstance(records, EpisodeRecords):
        return records.accuracy
    if isinstance(records, ImageRecords):
        return np.asarray(records.correct, np.float64)
    rule = spec.select if isinstance(spec, ProbeSpec) else "test"
    return np.asarray(choices.choose(records, rule).right, np.float64)


@dataclass(frozen=True)
class Summary:
    """Every derived field of a Result."""

    score: ScoreRecord
    collapsed: int
    non_finite: int
    details: dict[str, float | int | str]
    dense: ScoreRecord | None = None


def summarise(records: Records, spec: Spec) -> Summary:
    """Raises UsageError without any outcome."""
    score = score_of(outcomes(records, spec))
    if isinstance(records, ProbeRecords) and isinstance(spec, ProbeSpec):
        return Summary(score, 0, 0, choices.details(records, spec))
    if not isinstance(records, EpisodeRecords):
        return Summary(score, 0, 0, {})
    collapsed, non_finite = int(records.collapsed.sum()), int((~records.finite).sum())
    dense = records.dense_accuracy
    return Summary(score, collapsed, non_finite, {}, None if dense is None else score_of(dense))


def score_of(values: NDArray[np.float64]) -> ScoreRecord:
    """Mean and interval of outcomes (n,)."""
    mean, ci95, n = statistics.score(values)
    return ScoreRecord(mean=mean, ci95=None if math.isnan(ci95) else ci95, n=n)
