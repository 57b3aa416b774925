"""What every round of a run took and reached, read from the epochs of its log.

The log is cut back to the checkpoint when a run is resumed, so a resumed run gives the same rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

Row = Mapping[str, Any]


def rounds(log: Iterable[Row]) -> list[dict[str, Any]]:
    """log: the lines of log.jsonl in order. Accuracies are fractions, of the round's last epoch.

    steps_to_fit: steps of the round until the end of its first epoch with 100 % training accuracy
    (of the batches as they were trained on); null when none had it.
    """
    found, start = [], 0
    for number, lines in groupby(log, key=lambda row: row["round"]):
        epochs = list(lines)
        last = epochs[-1]
        fitting = (row["step"] - start for row in epochs if row["train_accuracy"] == 1)
        found.append(
            {
                "stage": last["stage"],
                "round": number,
                "epochs": len(epochs),
                "steps": last["step"] - start,
                "steps_to_fit": next(fitting, None),
                "train_accuracy": last["train_accuracy"],
                "val_accuracy": last["val_accuracy"],
            }
        )
        start = last["step"]
    return found


def stage_accuracies(rounds: Iterable[Row]) -> list[float]:
    """Validation accuracy (fraction) at the end of every stage."""
    return list({r["stage"]: r["val_accuracy"] for r in rounds}.values())
