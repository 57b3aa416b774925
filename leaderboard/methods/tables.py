"""A method board as text tables, Markdown and CSV.

Text shows percent and points; CSV has fractions, empty fields for unknown values, and no text that
a spreadsheet would run as a formula (reports/csv.py).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import get_args

from leaderboard.methods.record import ControlKind, Gain, MethodBoard, MethodRow, MethodScore
from leaderboard.reports.csv import guard_formula
from leaderboard.reports.render import (
    SELF_MARK,
    SELF_NOTE,
    TextTable,
    render_table,
    shorten_columns,
    to_percent,
)

KINDS: tuple[ControlKind, ...] = get_args(ControlKind)
ROW_FIELDS = ("row", "method", "recipe", "plan", "schedule", "restarts", "architecture", "n_seeds")
SCORE_FIELDS = ("mean", "ci95", "ci95_seeds", "n")
VARIANCE_FIELDS = ("seeds", "episodes", "residual")
GAIN_FIELDS = ("gap", "ci95", "p", "p_holm", "n", "covers")
COST_FIELDS = ("steps", "samples", "flops", "hours", "peak_memory_bytes", "device")
HEADINGS: dict[ControlKind, str] = {
    "normal": "over normal",
    "other_schedule": "over normal, other schedule",
    "random_init": "over random init",
}
GAIN_NOTE = (
    "Percent; ± is the 95 % interval over shared episodes or test images; sd seeds: standard "
    "deviation over pretraining seeds. Gains in points over the control of equal plan, steps and "
    "images (other schedule: with restarts for a row without, and vice versa), paired; the "
    "interval covers seeds and episodes (s) if both sides have two seeds; below that episodes and "
    "the pooled seed spread of the rows with several seeds (p) if there are three such rows, else "
    "episodes only. *: significant after Holm over the rows, alpha {alpha:g}; not below two seeds."
)
COVERED = {"episodes": "", "seeds and episodes": " s", "pooled seeds and episodes": " p"}
"""Marks of intervals of gains, by what they cover."""
COST_NOTE = (
    "Costs of one run, mean over its seeds. front: on the Pareto front of overall accuracy against "
    "that cost; hours are compared on one kind of device only."
)
TARGET_NOTE = "Accuracy (gain over normal) by column."
NO_ROWS = "No fsbench runs yet: fsbench pretrain, fsbench benchmark -m run:DIR, fsbench submit."


def make_tables(board: MethodBoard) -> list[TextTable]:
    """Return the tables of gains, gains by column, and costs."""
    if not board.rows:
        note = " ".join([NO_ROWS, *list_left_out(board)])
        return [TextTable(make_title(board), ("method",), (), note)]
    return [make_gain_table(board), make_target_table(board), make_cost_table(board)]


def make_title(board: MethodBoard) -> str:
    return f"{board.board}: methods" + (f", {board.track}" if board.track else "")


def make_gain_table(board: MethodBoard) -> TextTable:
    """Return the table of overall scores and gains; the note explains missing controls."""
    kinds = list_compared_kinds(board)
    headings = [HEADINGS[kind] for kind in kinds]
    head = ("method", "plan", "seeds", "overall", "sd seeds", *headings, "in-domain")
    variances = [row.overall.spread.seeds if row.overall else None for row in board.rows]
    rows = [
        (
            *(
                row.name,
                row.plan or "-",
                str(row.n_seeds),
                mark_self_reported(row, format_accuracy(row.overall)),
            ),
            "-" if variance is None else to_percent(variance**0.5),
            *(format_gain(row.overall, kind, board.alpha) for kind in kinds),
            "-"
            if row.source_accuracy is None
            else mark_self_reported(row, to_percent(row.source_accuracy)),
        )
        for row, variance in zip(board.rows, variances, strict=True)
    ]
    note = "\n".join(
        [
            GAIN_NOTE.format(alpha=board.alpha),
            *([SELF_NOTE] if any(row.self_reported for row in board.rows) else []),
            *list_missing_controls(board),
            *list_left_out(board),
        ]
    )
    return TextTable(make_title(board), head, tuple(rows), note)


def list_compared_kinds(board: MethodBoard) -> list[ControlKind]:
    """Return the kinds of control on the board; plain training in any case."""
    there = {k for row in board.rows for k, control in row.controls.items() if control.row}
    return [kind for kind in HEADINGS if kind in there or kind == "normal"]


def make_target_table(board: MethodBoard) -> TextTable:
    """Return the table of methods by columns."""
    short, common = shorten_columns(board.columns)
    rows = [
        (
            row.name,
            *(
                mark_self_reported(row, format_target(row.cells.get(c), board.alpha))
                for c in board.columns
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
            "-" if (size := row.costs.peak_memory_bytes) is None else f"{size / 1e9:.2f}",
            row.costs.device or "-",
            ", ".join(row.front) or "-",
        )
        for row in board.rows
    ]
    return TextTable("costs", head, tuple(rows), COST_NOTE)


def mark_self_reported(row: MethodRow, text: str) -> str:
    """Mark a number of a row without signed badges."""
    return text + SELF_MARK if row.self_reported and text != "-" else text


def format_accuracy(cell: MethodScore | None) -> str:
    """Return e.g. 57.75 ± 0.88."""
    if cell is None:
        return "-"
    half = "" if cell.ci95 is None else f" ± {to_percent(cell.ci95)}"
    return to_percent(cell.mean) + half


def format_gain(cell: MethodScore | None, kind: ControlKind, alpha: float) -> str:
    """Return e.g. +1.20 ± 0.45 s*."""
    gain = cell and cell.gains.get(kind)
    if not gain:
        return "-"
    half = "" if gain.ci95 is None else f" ± {to_percent(gain.ci95)}"
    seeds = COVERED[gain.covers]
    return to_percent(gain.gap, "+") + half + seeds + mark_significance(gain, alpha)


def format_target(cell: MethodScore | None, alpha: float) -> str:
    """Return e.g. 57.75 (+1.20*)."""
    if cell is None:
        return "-"
    gain = cell.gains.get("normal")
    suffix = f" ({to_percent(gain.gap, '+')}{mark_significance(gain, alpha)})" if gain else ""
    return to_percent(cell.mean) + suffix


def mark_significance(gain: Gain, alpha: float) -> str:
    return "*" if gain.is_significant(alpha) else ""


def list_missing_controls(board: MethodBoard) -> Iterator[str]:
    """Yield why rows have no control, one sentence per reason; plain training needs none."""
    rows_by_reason: dict[tuple[ControlKind, str], list[str]] = {}
    for row in board.rows:
        for kind, control in row.controls.items():
            plain = kind == "normal" and row.method == "normal"
            if control.reason and kind in list_compared_kinds(board) and not plain:
                rows_by_reason.setdefault((kind, control.reason), []).append(row.name)
    for (kind, reason), names in rows_by_reason.items():
        yield f"{HEADINGS[kind].capitalize()}, {', '.join(names)}: {reason}."


def list_left_out(board: MethodBoard) -> list[str]:
    why: dict[str, list[str]] = {}
    for entry, reason in board.left_out.items():
        why.setdefault(reason, []).append(entry)
    return [f"Left out, {', '.join(names)}: {reason}." for reason, names in why.items()]


def render_markdown(board: MethodBoard) -> str:
    """Return GitHub Markdown; every text is escaped."""
    return "\n\n".join(render_table(table) for table in make_tables(board)) + "\n"


def render_csv(boards: Sequence[MethodBoard]) -> str:
    """Return one line per row and column, and one for the overall score, of every board."""
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
                shown = (board.track, *iterate_csv_values(row, column, cell))
                writer.writerow([guard_formula(v) if isinstance(v, str) else v for v in shown])
    return out.getvalue()


def iterate_csv_values(row: MethodRow, column: str, cell: MethodScore) -> Iterator[object]:
    yield row.name
    yield from (getattr(row, name) for name in ROW_FIELDS[1:])
    yield column
    yield from (getattr(cell, name) for name in SCORE_FIELDS)
    yield from (getattr(cell.spread, name) for name in VARIANCE_FIELDS)
    for kind in KINDS:
        gain = cell.gains.get(kind)
        yield row.controls[kind].row if kind in row.controls else None
        yield from (getattr(gain, name) if gain else None for name in GAIN_FIELDS)
    yield from (getattr(row.costs, name) for name in COST_FIELDS)
    yield " ".join(row.front)
