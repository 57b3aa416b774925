"""How the score of a linear probe is chosen among its learning rates (protocol.md 4).

Two rules, both recorded where a part of train was held out: the paper's, on the test images, and
one that sees none of them. The spec says which one is the score; the other stands beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fsbench.core import statistics
from fsbench.core.records import ProbeRecords
from fsbench.core.specs import ProbeSpec, Select

Details = dict[str, float | int | str]

RULES: dict[Select, str] = {
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


def choose(records: ProbeRecords, rule: Select) -> Choice:
    """The first of equally good learning rates and epochs."""
    if rule == "held_out" and records.held_out is not None:
        row = int(np.argmax(records.held_out))
        return Choice(row, records.curve.shape[1], records.last[row])
    row = int(np.argmax(records.best.mean(axis=1)))
    return Choice(row, int(np.argmax(records.curve[row])) + 1, records.best[row])


def details(records: ProbeRecords, spec: ProbeSpec) -> Details:
    """Last and best accuracy of each learning rate, which one is the score, and the other rule."""
    score = choose(records, spec.select)
    found: Details = {
        "score": RULES[spec.select],
        "lr": float(records.lr[score.row]),
        "epoch": score.epoch,
    }
    for lr, last, best in zip(records.lr, records.last, records.best, strict=True):
        found[f"last@{lr:g}"] = float(last.mean())
        found[f"best@{lr:g}"] = float(best.mean())
    return found if records.held_out is None else found | _beside(records, other(spec.select))


def other(rule: Select) -> Select:
    return "held_out" if rule == "test" else "test"


def _beside(records: ProbeRecords, rule: Select) -> Details:
    choice = choose(records, rule)
    mean, ci95, _ = statistics.score(choice.right.astype(np.float64))
    found: Details = {
        "beside": RULES[rule],
        "beside_mean": mean,
        "beside_lr": float(records.lr[choice.row]),
        "beside_epoch": choice.epoch,
    }
    if not math.isnan(ci95):
        found["beside_ci95"] = ci95
    tried = [] if records.held_out is None else zip(records.lr, records.held_out, strict=True)
    return found | {f"held_out@{lr:g}": float(accuracy) for lr, accuracy in tried}
