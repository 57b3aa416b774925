"""A method board as CSV: fractions, empty where nothing is known, no text that a sheet would run
(downloads/csv.py).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import get_args

from leaderboard.methods.record import Cell, Kind, MethodBoard, Row
from leaderboard.reports.csv import guarded

KINDS: tuple[Kind, ...] = get_args(Kind)
SHARED = ("row", "method", "recipe", "plan", "schedule", "restarts", "architecture", "n_seeds")
CELL = ("mean", "ci95", "ci95_seeds", "n")
SPREAD = ("seeds", "episodes", "residual")
GAIN = ("gap", "ci95", "p", "p_holm", "n", "covers")
COST = ("steps", "samples", "flops", "hours", "peak_memory_bytes", "device")


def as_csv(boards: Sequence[MethodBoard]) -> str:
    """A line a row and column, and one overall, of every board."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    control = [f"{kind}_{name}" for kind in KINDS for name in ("control", *GAIN)]
    spread = [f"variance_{name}" for name in SPREAD]
    writer.writerow(["track", *SHARED, "column", *CELL, *spread, *control, *COST, "front"])
    for board in boards:
        for row in board.rows:
            cells = {**row.cells, **({"overall": row.overall} if row.overall else {})}
            for column, cell in cells.items():
                shown = (board.track, *line(row, column, cell))
                writer.writerow([guarded(v) if isinstance(v, str) else v for v in shown])
    return out.getvalue()


def line(row: Row, column: str, cell: Cell) -> Iterator[object]:
    yield row.name
    yield from (getattr(row, name) for name in SHARED[1:])
    yield column
    yield from (getattr(cell, name) for name in CELL)
    yield from (getattr(cell.spread, name) for name in SPREAD)
    for kind in KINDS:
        found = cell.gains.get(kind)
        yield row.controls[kind].row if kind in row.controls else None
        yield from (getattr(found, name) if found else None for name in GAIN)
    yield from (getattr(row.costs, name) for name in COST)
    yield " ".join(row.front)
