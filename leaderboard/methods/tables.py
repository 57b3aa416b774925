"""A method board as text tables, Markdown and CSV.

Text shows percent and points; CSV has fractions, empty fields for unknown values, and no text that
a spreadsheet would run as a formula (reports/csv.py).
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean
from typing import get_args

from fsbench.core.tables import TextTable
from fsbench.results.table import shorten_columns, split_labels
from leaderboard.badges import SELF_REPORTED
from leaderboard.methods.record import (
    ControlKind,
    Gain,
    InDomainGain,
    MethodBoard,
    MethodRow,
    MethodScore,
)
from leaderboard.reports.csv import guard_formula
from leaderboard.reports.render import ONE_SEED, SELF_MARK, SELF_NOTE, render_table, to_percent

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
    "episodes only. *: significant after Holm over the rows, alpha {alpha:g}; not below two seeds. "
    "In-domain: accuracy on the source (gain over normal ± 95 % interval over seeds)."
)
COVERED = {"episodes": "", "seeds and episodes": " s", "pooled seeds and episodes": " p"}
"""Marks of intervals of gains, by what they cover."""
COST_NOTE = (
    "Costs of one run, mean over its seeds. front: on the Pareto front of overall accuracy against "
    "that cost; hours are compared on one kind of device only."
)
ONE_SEED_GAIN = f"{ONE_SEED} one pretraining seed: a difference of seeds passes for a gain."
AVERAGE_NOTE = (
    "Accuracy (gain over normal), mean over the columns of a data set; --wide prints the columns, "
    "with the stars of their tests."
)
TARGET_NOTE = "Accuracy (gain over normal) by column."
NO_ROWS = "No fsbench runs yet: fsbench pretrain, fsbench benchmark -m run:DIR, fsbench submit."


def make_tables(board: MethodBoard) -> list[TextTable]:
    """Return the tables of gains, gains by column, and costs."""
    if not board.rows:
        note = " ".join([NO_ROWS, *list_left_out(board)])
        return [TextTable(make_title(board, "methods"), ("method",), (), note)]
    return [make_gain_table(board), make_target_table(board), make_cost_table(board)]


def make_title(board: MethodBoard, what: str, *shared: str) -> str:
    """Return the title of a table with the marks that all its rows share."""
    title = f"{board.board}: {what}" + (f", {board.track}" if board.track else "")
    reported = [SELF_REPORTED] * all(row.self_reported for row in board.rows)
    single = ["one seed per row"] * all(row.n_seeds == 1 for row in board.rows)
    return " · ".join([title, *shared, *((*reported, *single) if board.rows else ())])


def mark_row(board: MethodBoard, row: MethodRow) -> str:
    """Return the name of a row, marked if it has one seed and others have more."""
    hollow = row.n_seeds == 1 and any(other.n_seeds > 1 for other in board.rows)
    return f"{ONE_SEED} {row.name}" if hollow else row.name


def describe_gains(board: MethodBoard) -> tuple[str, ...]:
    """Return which gains over plain training survive, in a sentence, and what one seed shows."""
    gains = {
        row.name: row.overall.gains["normal"]
        for row in board.rows
        if row.overall and "normal" in row.overall.gains
    }
    tested = [name for name, gain in gains.items() if gain.covers == "seeds and episodes"]
    survive = [name for name in tested if gains[name].is_significant(board.alpha)]
    above = [f"{n} ({to_percent(gains[n].gap, '+')})" for n in survive if gains[n].gap > 0]
    below = [f"{n} ({to_percent(gains[n].gap)})" for n in survive if gains[n].gap <= 0]
    if not tested:
        finding = "No gain over normal is tested: none has two seeds on both sides."
    elif not survive:
        finding = f"No gain over normal survives; {len(tested)} tested, on two or more seeds."
    else:
        sides = [f"above normal: {', '.join(above)}"] * bool(above)
        sides += [f"below normal: {', '.join(below)}"] * bool(below)
        finding = f"Gains that survive, of {len(tested)} tested: {'; '.join(sides)}."
    single = any(row.n_seeds == 1 for row in board.rows)
    return (finding, *([ONE_SEED_GAIN] if single else []))


def make_gain_table(board: MethodBoard) -> TextTable:
    """Return the table of overall scores and gains; the note explains missing controls."""
    kinds = list_compared_kinds(board)
    headings = [HEADINGS[kind] for kind in kinds]
    head = ("method", "plan", "seeds", "overall", "sd seeds", *headings, "in-domain")
    variances = [row.overall.spread.seeds if row.overall else None for row in board.rows]
    rows = [
        (
            *(
                mark_row(board, row),
                row.plan or "-",
                str(row.n_seeds),
                mark_self_reported(board, row, format_accuracy(row.overall)),
            ),
            "-" if variance is None else to_percent(variance**0.5),
            *(format_gain(row.overall, kind, board.alpha) for kind in kinds),
            mark_self_reported(board, row, format_in_domain(row, board.alpha)),
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
    return TextTable(
        make_title(board, "methods"),
        head,
        tuple(rows),
        note,
        describe_gains(board),
        optional=("in-domain", "plan", "sd seeds", *reversed(headings[1:])),
    )


def list_compared_kinds(board: MethodBoard) -> list[ControlKind]:
    """Return the kinds of control on the board; plain training in any case."""
    there = {k for row in board.rows for k, control in row.controls.items() if control.row}
    return [kind for kind in HEADINGS if kind in there or kind == "normal"]


def make_target_table(board: MethodBoard) -> TextTable:
    """Return the table of methods by data set; `complete` has every column."""
    short, common = shorten_columns(board.columns)
    columns_by_dataset: dict[str, list[str]] = {}
    for column, (dataset, _) in zip(board.columns, split_labels(board.columns)[0], strict=True):
        columns_by_dataset.setdefault(dataset, []).append(column)
    complete, averages = (
        tuple(
            (
                mark_row(board, row),
                *(
                    mark_self_reported(board, row, format_targets(row, group, board.alpha))
                    for group in groups
                ),
            )
            for row in board.rows
        )
        for groups in ([[column] for column in board.columns], columns_by_dataset.values())
    )
    table = TextTable(
        make_title(board, "targets", *([common] if common else [])),
        ("method", *short),
        complete,
        TARGET_NOTE,
    )
    if len(columns_by_dataset) == len(board.columns):
        return table
    return replace(
        table,
        columns=("method", *columns_by_dataset),
        rows=averages,
        note=AVERAGE_NOTE,
        complete=table,
    )


def make_cost_table(board: MethodBoard) -> TextTable:
    head = ("method", "steps", "images", "TFLOPs", "hours", "memory (GB)", "device", "front")
    rows = [
        (
            *(mark_row(board, row), f"{row.costs.steps:.0f}", f"{row.costs.samples:.0f}"),
            *(f"{row.costs.flops / 1e12:.4g}", f"{row.costs.hours:.3g}"),
            "-" if (size := row.costs.peak_memory_bytes) is None else f"{size / 1e9:.2f}",
            row.costs.device or "-",
            ", ".join(row.front) or "-",
        )
        for row in board.rows
    ]
    optional = ("memory (GB)", "device", "images", "steps")
    return TextTable(make_title(board, "costs"), head, tuple(rows), COST_NOTE, optional=optional)


def mark_self_reported(board: MethodBoard, row: MethodRow, text: str) -> str:
    """Mark a number of a row without signed badges, unless no row has them."""
    some = row.self_reported and not all(other.self_reported for other in board.rows)
    return text + SELF_MARK if some and text != "-" else text


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


def format_in_domain(row: MethodRow, alpha: float) -> str:
    """Return e.g. 20.61 (+1.02 ± 0.40*)."""
    if row.source_accuracy is None:
        return "-"
    text, gain = to_percent(row.source_accuracy), row.source_gain
    if not gain:
        return text
    half = "" if gain.ci95 is None else f" ± {to_percent(gain.ci95)}"
    return f"{text} ({to_percent(gain.gap, '+')}{half}{mark_significance(gain, alpha)})"


def format_targets(row: MethodRow, columns: Sequence[str], alpha: float) -> str:
    """Return e.g. 57.75 (+1.20*); the mean of several columns, which has no test of its own."""
    cells = [row.cells[column] for column in columns if column in row.cells]
    if len(cells) < len(columns):
        return "-"
    gains = [cell.gains["normal"] for cell in cells if "normal" in cell.gains]
    mark = mark_significance(gains[0], alpha) if len(cells) == len(gains) == 1 else ""
    gap = f" ({to_percent(mean(g.gap for g in gains), '+')}{mark})" if gains else ""
    return to_percent(mean(cell.mean for cell in cells)) + gap


def mark_significance(gain: Gain | InDomainGain, alpha: float) -> str:
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
    tables = [table.complete or table for table in make_tables(board)]
    return "\n\n".join(map(render_table, tables)) + "\n"


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
