"""What a result says about its records, recomputed from them by everyone who reads it."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsbench import stats
from fsbench.records import EpisodeRecords, ProbeRecords, columns
from fsbench.schema import ScoreRecord

Records = EpisodeRecords | ProbeRecords

SELECTION = "best learning rate and epoch, picked on the test images as SEAL reports"
"""How the one score of a probe is chosen among its learning rates (protocol.md 4); the accuracy
after the last epoch of every learning rate stands beside it."""


def records_digest(records: Records) -> str:
    """sha-256 over names, types, shapes and values: independent of the Parquet writer."""
    digest = hashlib.sha256(type(records).__name__.encode())
    for name, column in columns(records).items():
        values = np.ascontiguousarray(column)
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        digest.update(f"\n{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def outcomes(records: Records) -> NDArray[np.float64]:
    """What is averaged: accuracy of every episode (E,), or 0/1 of every test image (N,)."""
    if isinstance(records, EpisodeRecords):
        return records.accuracy
    return np.asarray(records.best[chosen(records)], np.float64)


def chosen(records: ProbeRecords) -> int:
    """Row of the learning rate with the highest best accuracy; the first one on ties."""
    return int(np.argmax(records.best.mean(axis=1)))


@dataclass(frozen=True)
class Summary:
    """Every derived field of a Result."""

    score: ScoreRecord
    collapsed: int
    non_finite: int
    details: dict[str, float | int | str]
    dense: ScoreRecord | None = None


def summarise(records: Records) -> Summary:
    """Raises UsageError without any outcome."""
    score = score_of(outcomes(records))
    if isinstance(records, ProbeRecords):
        return Summary(score, 0, 0, probe_details(records))
    collapsed, non_finite = int(records.collapsed.sum()), int((~records.finite).sum())
    dense = records.dense_accuracy
    return Summary(score, collapsed, non_finite, {}, None if dense is None else score_of(dense))


def score_of(values: NDArray[np.float64]) -> ScoreRecord:
    """Mean and interval of outcomes (n,)."""
    mean, ci95, n = stats.score(values)
    return ScoreRecord(mean=mean, ci95=None if math.isnan(ci95) else ci95, n=n)


def probe_details(records: ProbeRecords) -> dict[str, float | int | str]:
    """Last and best accuracy of each learning rate, and which one is the score."""
    row = chosen(records)
    details: dict[str, float | int | str] = {
        "score": SELECTION,
        "lr": float(records.lr[row]),
        "epoch": int(np.argmax(records.curve[row])) + 1,
    }
    for lr, last, best in zip(records.lr, records.last, records.best, strict=True):
        details[f"last@{lr:g}"] = float(last.mean())
        details[f"best@{lr:g}"] = float(best.mean())
    return details
