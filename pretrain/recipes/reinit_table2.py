"""Table 2 of the reinitialization study: 432 accuracies of six methods (methods.md I)."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple

TABLE = "reinit_table2.json"


class Row(NamedTuple):
    """One setting on one data set and network; accuracies (%) and standard errors by method.

    setting: plain, augmentation or augmentation+dropout (rate 0.25).
    """

    setting: str
    dataset: str
    network: str
    accuracy: dict[str, float]
    error: dict[str, float]
    train_images: int
    classes: int


@cache
def table2() -> tuple[Row, ...]:
    """The 72 rows in the order of the paper."""
    data = json.loads((files(__package__) / TABLE).read_text(encoding="utf8"))
    return tuple(_row(data, *row) for row in data["rows"])


def methods() -> tuple[str, ...]:
    """BL, WELSR, DSD, WELS, FC, LW."""
    return tuple(table2()[0].accuracy)


def networks() -> tuple[str, ...]:
    """The four networks in the order of the paper."""
    return tuple(dict.fromkeys(row.network for row in table2()))


def _row(
    data: dict[str, dict[str, dict[str, int]]],
    setting: str,
    dataset: str,
    network: str,
    values: list[list[float]],
) -> Row:
    accuracy, error = (
        dict(zip(data["methods"], column, strict=True)) for column in zip(*values, strict=True)
    )
    return Row(setting, dataset, network, accuracy, error, **data["datasets"][dataset])
