"""Summary of the records of a result, recomputed by every reader."""

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from fsbench.core.records import EpisodeRecords, ImageRecords, ProbeRecords, columns
from fsbench.core.schema import ScoreRecord
from fsbench.core.specs import ProbeSpec, Select, Spec

Details = dict[str, float | int | str]

CHOICE_RULES: dict[Select, str] = {
    "test": "best learning rate and epoch, picked on the test images as SEAL reports",
    "held_out": "learning rate picked on a held-out part of train, last epoch",
}
BESIDE: dict[Select, str] = {"test": "best on test", "held_out": "lr held out"}
"""Ends the row of the other rule in a table."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A learning rate (row of the records), an epoch from 1, right (N,) of every test image."""

    row: int
    epoch: int
    right: NDArray[np.bool_]


def choose_rate(records: ProbeRecords, rule: Select) -> Choice:
    """Return the best learning rate and epoch, the first of equally good ones."""
    if rule == "held_out" and records.held_out is not None:
        row = int(np.argmax(records.held_out))
        return Choice(row, records.curve.shape[1], records.last[row])
    row = int(np.argmax(records.best.mean(axis=1)))
    return Choice(row, int(np.argmax(records.curve[row])) + 1, records.best[row])


def describe_choices(records: ProbeRecords, spec: ProbeSpec) -> Details:
    """Return last and best accuracy by learning rate, which is the score, and the other rule."""
    score = choose_rate(records, spec.select)
    details: Details = {
        "score": CHOICE_RULES[spec.select],
        "lr": float(records.lr[score.row]),
        "epoch": score.epoch,
    }
    for lr, last, best in zip(records.lr, records.last, records.best, strict=True):
        details[f"last@{lr:g}"] = float(last.mean())
        details[f"best@{lr:g}"] = float(best.mean())
    return (
        details if records.held_out is None else details | _beside(records, other_rule(spec.select))
    )


def other_rule(rule: Select) -> Select:
    return "held_out" if rule == "test" else "test"


def _beside(records: ProbeRecords, rule: Select) -> Details:
    choice = choose_rate(records, rule)
    mean, ci95, _ = statistics.score(choice.right.astype(np.float64))
    details: Details = {
        "beside": CHOICE_RULES[rule],
        "beside_mean": mean,
        "beside_lr": float(records.lr[choice.row]),
        "beside_epoch": choice.epoch,
    }
    if not math.isnan(ci95):
        details["beside_ci95"] = ci95
    tried = [] if records.held_out is None else zip(records.lr, records.held_out, strict=True)
    return details | {f"held_out@{lr:g}": float(accuracy) for lr, accuracy in tried}


Records = EpisodeRecords | ProbeRecords | ImageRecords


def digest_records(records: Records) -> str:
    """Return the sha-256 over names, types, shapes and values: the Parquet writer has no part."""
    digest = hashlib.sha256(type(records).__name__.encode())
    for name, column in columns(records).items():
        values = np.ascontiguousarray(column)
        values = values.astype(values.dtype.newbyteorder("<"), copy=False)
        digest.update(f"\n{name} {values.dtype.str} {values.shape}\n".encode())
        digest.update(values.reshape(-1).data)
    return digest.hexdigest()


def scored_outcomes(records: Records, spec: Spec) -> NDArray[np.float64]:
    """Return the averaged values: accuracy per episode (E,), or 0/1 per test image (N,)."""
    if isinstance(records, EpisodeRecords):
        return records.accuracy
    if isinstance(records, ImageRecords):
        return np.asarray(records.correct, np.float64)
    rule = spec.select if isinstance(spec, ProbeSpec) else "test"
    return np.asarray(choose_rate(records, rule).right, np.float64)


@dataclass(frozen=True)
class Summary:
    """Every derived field of a Result."""

    score: ScoreRecord
    collapsed: int
    non_finite: int
    details: dict[str, float | int | str]
    dense: ScoreRecord | None = None


def summarize(records: Records, spec: Spec) -> Summary:
    """Raise UsageError without any outcome."""
    score = score_outcomes(scored_outcomes(records, spec))
    if isinstance(records, ProbeRecords) and isinstance(spec, ProbeSpec):
        return Summary(score, 0, 0, describe_choices(records, spec))
    if not isinstance(records, EpisodeRecords):
        return Summary(score, 0, 0, {})
    collapsed, non_finite = int(records.collapsed.sum()), int((~records.finite).sum())
    dense = records.dense_accuracy
    return Summary(
        score, collapsed, non_finite, {}, None if dense is None else score_outcomes(dense)
    )


def score_outcomes(values: NDArray[np.float64]) -> ScoreRecord:
    """Return mean and interval of outcomes (n,)."""
    mean, ci95, n = statistics.score(values)
    return ScoreRecord(mean=mean, ci95=None if math.isnan(ci95) else ci95, n=n)
