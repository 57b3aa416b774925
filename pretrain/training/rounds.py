"""What every round of a run took and reached, read from the epochs of its log.

The log is cut back to the checkpoint when a run is resumed, so a resumed run gives the same rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pretrain.recipes.plan import Clock

Row = Mapping[str, Any]
MEASURED = ("val_accuracy", "episodic_accuracy")
"""The columns of validation; only meta-learners have the second one."""


def row(clock: Clock, lr: float, loss: float, learned: float | None) -> dict[str, float | None]:
    """An epoch's line of log.jsonl; accuracies are fractions, null where not measured.

    A meta-learner has `episodic_accuracy` instead of `val_accuracy`, which is null then.
    """
    return {
        "step": clock.step,
        "stage": clock.stage,
        "round": clock.round,
        "epoch": clock.epoch,
        "lr": lr,
        "train_loss": loss,
        "train_accuracy": learned,
        "val_accuracy": None,
    }


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
                **{name: last[name] for name in MEASURED if name in last},
            }
        )
        start = last["step"]
    return found


def stage_accuracies(rounds: Iterable[Row]) -> list[float | None]:
    """Validation accuracy (fraction) at the end of every stage; None where it is not measured."""
    return list({r["stage"]: r["val_accuracy"] for r in rounds}.values())
