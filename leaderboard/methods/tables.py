"""A method board as CSV: fractions, empty where nothing is known, no text that a sheet would run
(downloads/csv.py).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import get_args

from leaderboard.methods.record import ControlKind, Gain, MethodBoard, MethodRow, MethodScore
from leaderboard.reports.csv import guard_formula
from leaderboard.reports.render import TextTable, render_table, shorten_columns

KINDS: tuple[ControlKind, ...] = get_args(ControlKind)
ROW_FIELDS = ("row", "method", "recipe", "plan", "schedule", "restarts", "architecture", "n_seeds")
SCORE_FIELDS = ("mean", "ci95", "ci95_seeds", "n")
VARIANCE_FIELDS = ("seeds", "episodes", "residual")
GAIN_FIELDS = ("gap", "ci95", "p", "p_holm", "n", "covers")
COST_FIELDS = ("steps", "samples", "flops", "hours", "peak_memory_bytes", "device")


def render_csv(boards: Sequence[MethodBoard]) -> str:
    """A line a row and column, and one overall, of every board."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    control = [f"{kind}_{name}" for kind in KINDS for name in ("control", *GAIN_FIELDS)]
    spread = [f"variance_{name}" for name in VARIANCE_FIELDS]
    writer.writerow(
        ["track", *ROW_FIELDS, "column", *SCORE_FIELDS, *spread, *control, *COST_FIELDS, "front"]
    )
    for board in boards:
        for row in board.rows:
            cells = {**row.cells, **({"overall": row.overall} if row.overall else {})}
            for column, cell in cells.items():
                shown = (board.track, *csv_values(row, column, cell))
                writer.writerow([guard_formula(v) if isinstance(v, str) else v for v in shown])
    return out.getvalue()


def csv_values(row: MethodRow, column: str, cell: MethodScore) -> Iterator[object]:
    yield row.name
    yield from (getattr(row, name) for name in ROW_FIELDS[1:])
    yield column
    yield from (getattr(cell, name) for name in SCORE_FIELDS)
    yield from (getattr(cell.spread, name) for name in VARIANCE_FIELDS)
    for kind in KINDS:
        found = cell.gains.get(kind)
        yield row.controls[kind].row if kind in row.controls else None
        yield from (getattr(found, name) if found else None for name in GAIN_FIELDS)
    yield from (getattr(row.costs, name) for name in COST_FIELDS)
    yield " ".join(row.front)


HEADINGS: dict[ControlKind, str] = {
    "normal": "over normal",
    "other_schedule": "over normal, other schedule",
    "random_init": "over random init",
}
GAIN_NOTE = (
    "Percent; ± is the 95 % interval over shared episodes or test images; sd seeds: of the "
    "pretraining seeds alone. Gains in points over the control of equal plan, steps and images "
    "(other schedule: with restarts for a row without, and the other way round), paired; their "
    "interval covers seeds and episodes (s) where both sides have two seeds, else episodes only. "
    "*: significant after Holm over the rows, alpha {alpha:g}."
)
COST_NOTE = (
    "Of one run, mean over its seeds. front: on the Pareto front of overall accuracy against that "
    "cost; hours are compared on one kind of device."
)
TARGET_NOTE = "Accuracy (gain over normal) by column."
NO_ROWS = "No runs of our own yet: fsbench pretrain, fsbench benchmark -m run:DIR, fsbench submit."


def make_tables(board: MethodBoard) -> list[TextTable]:
    """Gains, gains by column, costs."""
    if not board.rows:
        note = " ".join([NO_ROWS, *list_left_out(board)])
        return [TextTable(make_title(board), ("method",), (), note)]
    return [make_gain_table(board), make_target_table(board), make_cost_table(board)]


def make_title(board: MethodBoard) -> str:
    return f"{board.board}: methods" + (f", {board.track}" if board.track else "")


def make_gain_table(board: MethodBoard) -> TextTable:
    """Overall, and what each row has over its controls; '-' with the reason in the note."""
    kinds = compared_kinds(board)
    headings = [HEADINGS[kind] for kind in kinds]
    head = ("method", "plan", "seeds", "overall", "sd seeds", *headings, "in-domain")
    rows = [
        (
            *(row.name, row.plan or "-", str(row.n_seeds), format_accuracy(row.overall)),
            format_seed_sd(row.overall),
            *(format_gain(row.overall, kind, board.alpha) for kind in kinds),
            "-" if row.source_accuracy is None else format_percent(row.source_accuracy),
        )
        for row in board.rows
    ]
    note = "\n".join(
        [GAIN_NOTE.format(alpha=board.alpha), *list_missing_controls(board), *list_left_out(board)]
    )
    return TextTable(make_title(board), head, tuple(rows), note)


def compared_kinds(board: MethodBoard) -> list[ControlKind]:
    """Kinds of control that stand on the board; plain training in any case."""
    there = {k for row in board.rows for k, control in row.controls.items() if control.row}
    return [kind for kind in HEADINGS if kind in there or kind == "normal"]


def make_target_table(board: MethodBoard) -> TextTable:
    """Method x target."""
    short, common = shorten_columns(board.columns)
    rows = [
        (
            row.name,
            *(
                format_accuracy_and_gain(row.cells.get(column), board.alpha)
                for column in board.columns
            ),
        )
        for row in board.rows
    ]
    name = "targets" + (f": {common}" if common else "")
    return TextTable(name, ("method", *short), tuple(rows), TARGET_NOTE)


def make_cost_table(board: MethodBoard) -> TextTable:
    head = ("method", "steps", "images", "TFLOPs", "hours", "memory (GB)", "device", "front")
    rows = [
        (
            *(row.name, f"{row.costs.steps:.0f}", f"{row.costs.samples:.0f}"),
            *(f"{row.costs.flops / 1e12:.4g}", f"{row.costs.hours:.3g}"),
            format_gigabytes(row.costs.peak_memory_bytes),
            row.costs.device or "-",
            ", ".join(row.front) or "-",
        )
        for row in board.rows
    ]
    return TextTable("costs", head, tuple(rows), COST_NOTE)


def format_percent(fraction: float, sign: str = "") -> str:
    return f"{100 * fraction:{sign}.2f}"


def format_accuracy(cell: MethodScore | None) -> str:
    """e.g. 57.75 ± 0.88"""
    if cell is None:
        return "-"
    return format_percent(cell.mean) + (
        "" if cell.ci95 is None else f" ± {format_percent(cell.ci95)}"
    )


def format_seed_sd(cell: MethodScore | None) -> str:
    known = cell.spread.seeds if cell else None
    return "-" if known is None else format_percent(known**0.5)


def format_gain(cell: MethodScore | None, kind: ControlKind, alpha: float) -> str:
    """e.g. +1.20 ± 0.45 s*"""
    found = cell and cell.gains.get(kind)
    if not found:
        return "-"
    half = "" if found.ci95 is None else f" ± {format_percent(found.ci95)}"
    seeds = " s" if found.covers == "seeds and episodes" else ""
    return format_percent(found.gap, "+") + half + seeds + mark_significance(found, alpha)


def format_accuracy_and_gain(cell: MethodScore | None, alpha: float) -> str:
    """e.g. 57.75 (+1.20*)"""
    if cell is None:
        return "-"
    found = cell.gains.get("normal")
    shown = f" ({format_percent(found.gap, '+')}{mark_significance(found, alpha)})" if found else ""
    return format_percent(cell.mean) + shown


def mark_significance(found: Gain, alpha: float) -> str:
    return "*" if found.p_holm < alpha else ""


def format_gigabytes(size: float | None) -> str:
    return "-" if size is None else f"{size / 1e9:.2f}"


def list_missing_controls(board: MethodBoard) -> Iterator[str]:
    """Why a row has no control, rows of one reason together; plain rows are their own."""
    found: dict[tuple[ControlKind, str], list[str]] = {}
    for row in board.rows:
        for kind, control in row.controls.items():
            plain = kind == "normal" and row.method == "normal"
            if control.reason and kind in compared_kinds(board) and not plain:
                found.setdefault((kind, control.reason), []).append(row.name)
    for (kind, reason), names in found.items():
        yield f"{HEADINGS[kind].capitalize()}, {', '.join(names)}: {reason}."


def list_left_out(board: MethodBoard) -> list[str]:
    why: dict[str, list[str]] = {}
    for entry, reason in board.left_out.items():
        why.setdefault(reason, []).append(entry)
    return [f"Left out, {', '.join(names)}: {reason}." for reason, names in why.items()]


def render_markdown(board: MethodBoard) -> str:
    """GitHub Markdown; every text escaped."""
    return "\n\n".join(render_table(table) for table in make_tables(board)) + "\n"
