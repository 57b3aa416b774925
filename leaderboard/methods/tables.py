"""A method board as text tables, Markdown and CSV.

Text shows percent and points; CSV has fractions, empty fields for unknown values, and no text that
a spreadsheet would run as a formula (render/csv.py).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import mean

from fsbench.core.tables import TextTable
from fsbench.results.table import shorten_columns
from leaderboard.badges import SELF_REPORTED
from leaderboard.methods.gains import KINDS
from leaderboard.methods.record import ControlKind, Gain, MethodBoard, MethodRow
from leaderboard.render.csv import guard_formula
from leaderboard.render.md import render_table
from leaderboard.render.notes import ONE_SEED, SELF_MARK, SELF_NOTE, list_reasons, to_percent
from leaderboard.tables import group_by_dataset

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
COVERED = {"seeds and episodes": " s", "pooled seeds and episodes": " p"}
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
MOST_NAMED = 4
"""From so many rows on that lose, a sentence counts them."""
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
    single = ["one seed per row"] * all(len(row.seeds) == 1 for row in board.rows)
    return " · ".join([title, *shared, *((*reported, *single) if board.rows else ())])


def mark_row(board: MethodBoard, row: MethodRow) -> str:
    """Return the name of a row, marked if it has one seed and others have more."""
    is_single = len(row.seeds) == 1 and any(len(other.seeds) > 1 for other in board.rows)
    return f"{ONE_SEED} {row.name}" if is_single else row.name


def describe_gains(boards: Sequence[MethodBoard], by_entry: bool = False) -> str:
    """Return which gains over plain training are significant; empty where there are none.

    by_entry: as the end of a sentence on entries, not as a sentence on methods.
    """
    rows = [row for board in boards for row in board.rows if row.gain]
    gains = [(row.entry if by_entry else row.name, row.gain) for row in rows if row.gain]
    above, below = (
        [name for name, gain in gains if gain.significant and gain.gap * sign > 0]
        for sign in (1, -1)
    )
    several = sum(len(gain.seeds) > 1 for _, gain in gains)
    words = "significantly over plain training of equal compute"
    if not gains:
        return ""
    if len(gains) == 1:
        text = f"{gains[0][0]} {'gains' if above else 'does not gain'} {words}"
        text += "" if several else " (it has one seed, and this needs several)"
    else:
        of = f"of {len(gains)} entries" if by_entry else f"Of {len(gains)} methods"
        text = f"{of}, {join_words(above or ['none'])} {'gain' if above[1:] else 'gains'} {words}"
        if below:
            losers = join_words(below) if len(below) < MOST_NAMED else str(len(below))
            text += f", and {losers} {'lose' if below[1:] else 'loses'} significantly"
        text += f" ({several or 'none'} with the several seeds that this needs)"
    return text if by_entry else f"{text}."


def join_words(words: Iterable[object]) -> str:
    """Return e.g. 1, 5 and 20."""
    *first, last = map(str, words)
    return f"{', '.join(first)} and {last}" if first else last


def make_gain_table(board: MethodBoard) -> TextTable:
    """Return the table of overall scores and gains; the note explains missing controls."""
    kinds = list_compared_kinds(board)
    headings = [HEADINGS[kind] for kind in kinds]
    notes = [GAIN_NOTE.format(alpha=board.alpha)]
    notes += [SELF_NOTE] * any(row.self_reported for row in board.rows)
    finding = describe_gains([board])
    one_seed = any(len(row.seeds) == 1 for row in board.rows)
    return TextTable(
        make_title(board, "methods"),
        ("method", "plan", "seeds", "overall", "sd seeds", *headings, "in-domain"),
        tuple(format_gain_row(board, row, kinds) for row in board.rows),
        "\n".join([*notes, *list_missing_controls(board), *list_left_out(board)]),
        (*[finding] * bool(finding), *[ONE_SEED_GAIN] * one_seed),
        optional=("in-domain", "plan", "sd seeds", *reversed(headings[1:])),
    )


def format_gain_row(
    board: MethodBoard, row: MethodRow, kinds: Sequence[ControlKind]
) -> tuple[str, ...]:
    """Return the line of a row in the table of gains."""
    score = row.overall
    overall, sd = "-", "-"
    if score:
        overall = to_percent(score.mean) + format_half(score.ci95)
        sd = to_percent(score.variance_seeds**0.5) if score.variance_seeds is not None else "-"
    return (
        mark_row(board, row),
        row.plan or "-",
        str(len(row.seeds)),
        mark_self_reported(board, row, overall),
        sd,
        *(format_gain(score.gains.get(kind) if score else None) for kind in kinds),
        mark_self_reported(board, row, format_in_domain(row)),
    )


def list_compared_kinds(board: MethodBoard) -> list[ControlKind]:
    """Return the kinds of control on the board; plain training in any case."""
    return [k for k in KINDS if k == "normal" or any(k in row.controls for row in board.rows)]


def make_target_table(board: MethodBoard) -> TextTable:
    """Return the table of methods by data set; `complete` has every column."""
    short, common = shorten_columns(board.columns)
    title = make_title(board, "targets", *([common] if common else []))
    by_dataset = group_by_dataset(board.columns)

    def make_table(parts: Mapping[str, Sequence[str]], note: str) -> TextTable:
        rows = [
            [mark_self_reported(board, row, format_targets(row, part)) for part in parts.values()]
            for row in board.rows
        ]
        names = [mark_row(board, row) for row in board.rows]
        lines = tuple((name, *row) for name, row in zip(names, rows, strict=True))
        return TextTable(title, ("method", *parts), lines, note)

    columns = {label: [column] for label, column in zip(short, board.columns, strict=True)}
    table = make_table(columns, TARGET_NOTE)
    if len(by_dataset) == len(board.columns):
        return table
    return replace(make_table(by_dataset, AVERAGE_NOTE), complete=table)


def make_cost_table(board: MethodBoard) -> TextTable:
    """Return the table of costs and Pareto fronts."""
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


def format_half(half: float | None) -> str:
    return "" if half is None else f" ± {to_percent(half)}"


def format_gain(gain: Gain | None) -> str:
    """Return e.g. +1.20 ± 0.45 s*."""
    if gain is None:
        return "-"
    marks = COVERED.get(gain.covers, "") + "*" * gain.significant
    return f"{to_percent(gain.gap, '+')}{format_half(gain.ci95)}{marks}"


def format_in_domain(row: MethodRow) -> str:
    """Return e.g. 20.61 (+1.02 ± 0.40*)."""
    if row.source_accuracy is None:
        return "-"
    gain = f" ({format_gain(row.source_gain)})" if row.source_gain else ""
    return to_percent(row.source_accuracy) + gain


def format_targets(row: MethodRow, columns: Sequence[str]) -> str:
    """Return e.g. 57.75 (+1.20*); the mean of several columns, which has no test of its own."""
    scores = [row.cells[column] for column in columns if column in row.cells]
    if len(scores) < len(columns):
        return "-"
    gains = [score.gains["normal"] for score in scores if "normal" in score.gains]
    star = "*" if len(columns) == 1 and gains and gains[0].significant else ""
    gap = f" ({to_percent(mean(g.gap for g in gains), '+')}{star})" if gains else ""
    return to_percent(mean(score.mean for score in scores)) + gap


def list_missing_controls(board: MethodBoard) -> Iterator[str]:
    """Yield why rows have no control, one sentence per reason; plain training needs none."""
    rows_by_reason: dict[tuple[ControlKind, str], list[str]] = {}
    compared = list_compared_kinds(board)
    for row in board.rows:
        for kind, reason in row.missing.items():
            if kind in compared and not (kind == "normal" and row.method == "normal"):
                rows_by_reason.setdefault((kind, reason), []).append(row.name)
    for (kind, reason), names in rows_by_reason.items():
        yield f"{HEADINGS[kind].capitalize()}, {', '.join(names)}: {reason}."


def list_left_out(board: MethodBoard) -> list[str]:
    return list_reasons("Left out", board.left_out)


def render_markdown(board: MethodBoard) -> str:
    """Return GitHub Markdown; every text is escaped."""
    tables = [table.complete or table for table in make_tables(board)]
    return "\n\n".join(map(render_table, tables)) + "\n"


def render_csv(boards: Sequence[MethodBoard]) -> str:
    """Return one line per row and column, and one for the overall score, of every board.

    The fields are those of the JSON record, joined by underscores.
    """
    import pandas as pd

    of_row = {"seeds", "front", "cells", "overall", "missing", "source_gain"}
    of_score = {"gains": {"__all__": {"seeds", "by_seed"}}}
    lines = [
        {"track": board.track, "seeds": len(row.seeds), "front": " ".join(row.front)}
        | row.model_dump(exclude=of_row)
        | {"column": column, **score.model_dump(exclude=of_score)}
        for board in boards
        for row in board.rows
        for column, score in {**row.cells, "overall": row.overall}.items()
        if score
    ]
    frame = pd.json_normalize(lines, sep="_").convert_dtypes()
    guarded = frame.map(lambda value: guard_formula(value) if isinstance(value, str) else value)
    return str(guarded.to_csv(index=False, lineterminator="\n"))
