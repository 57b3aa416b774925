"""A method board as text tables, Markdown and CSV.

Text shows percent and points; CSV has fractions, empty fields for unknown values, and no text that
a spreadsheet would run as a formula (render/csv.py).
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import mean

from fsbench.core.tables import TextTable
from fsbench.results.table import shorten_columns, split_labels
from leaderboard.badges import SELF_REPORTED
from leaderboard.methods.gains import KINDS
from leaderboard.methods.record import (
    ControlKind,
    Gain,
    MethodBoard,
    MethodCosts,
    MethodRow,
    MethodScore,
)
from leaderboard.render.csv import guard_formula
from leaderboard.render.md import render_table
from leaderboard.render.notes import ONE_SEED, SELF_MARK, SELF_NOTE, to_percent

ROW_FIELDS = ("name", "method", "recipe", "plan", "schedule", "architecture")
SCORE_FIELDS = ("mean", "ci95", "ci95_seeds", "n", "variance_seeds")
GAIN_FIELDS = ("gap", "ci95", "p", "p_holm", "n", "covers")
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


def describe_gains(board: MethodBoard) -> tuple[str, ...]:
    """Return which gains over plain training survive, in a sentence, and what one seed shows."""
    gains = [(row.name, row.gain) for row in board.rows if row.gain]
    tested = [(name, gain) for name, gain in gains if gain.covers == "seeds and episodes"]
    survive = [(name, gain) for name, gain in tested if gain.is_significant(board.alpha)]
    above = [f"{n} ({to_percent(gain.gap, '+')})" for n, gain in survive if gain.gap > 0]
    below = [f"{n} ({to_percent(gain.gap)})" for n, gain in survive if gain.gap <= 0]
    if not tested:
        finding = "No gain over normal is tested: none has two seeds on both sides."
    elif not survive:
        finding = f"No gain over normal survives; {len(tested)} tested, on two or more seeds."
    else:
        sides = [f"above normal: {', '.join(above)}"] * bool(above)
        sides += [f"below normal: {', '.join(below)}"] * bool(below)
        finding = f"Gains that survive, of {len(tested)} tested: {'; '.join(sides)}."
    return (finding, *[ONE_SEED_GAIN] * any(len(row.seeds) == 1 for row in board.rows))


def make_gain_table(board: MethodBoard) -> TextTable:
    """Return the table of overall scores and gains; the note explains missing controls."""
    kinds = list_compared_kinds(board)
    headings = [HEADINGS[kind] for kind in kinds]
    rows = []
    for row in board.rows:
        score = row.overall
        variance = score.variance_seeds if score else None
        mean_text = "-" if score is None else to_percent(score.mean) + format_half(score.ci95)
        rows.append(
            (
                mark_row(board, row),
                row.plan or "-",
                str(len(row.seeds)),
                mark_self_reported(board, row, mean_text),
                "-" if variance is None else to_percent(variance**0.5),
                *(format_gain(score, kind, board.alpha) for kind in kinds),
                mark_self_reported(board, row, format_in_domain(row, board.alpha)),
            )
        )
    notes = [GAIN_NOTE.format(alpha=board.alpha)]
    notes += [SELF_NOTE] * any(row.self_reported for row in board.rows)
    return TextTable(
        make_title(board, "methods"),
        ("method", "plan", "seeds", "overall", "sd seeds", *headings, "in-domain"),
        tuple(rows),
        "\n".join([*notes, *list_missing_controls(board), *list_left_out(board)]),
        describe_gains(board),
        optional=("in-domain", "plan", "sd seeds", *reversed(headings[1:])),
    )


def list_compared_kinds(board: MethodBoard) -> list[ControlKind]:
    """Return the kinds of control on the board; plain training in any case."""
    return [k for k in KINDS if k == "normal" or any(k in row.controls for row in board.rows)]


def make_target_table(board: MethodBoard) -> TextTable:
    """Return the table of methods by data set; `complete` has every column."""
    short, common = shorten_columns(board.columns)
    by_dataset: dict[str, list[str]] = {}
    for column, (dataset, _) in zip(board.columns, split_labels(board.columns)[0], strict=True):
        by_dataset.setdefault(dataset, []).append(column)

    def list_rows(groups: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
        return tuple(
            (
                mark_row(board, row),
                *(
                    mark_self_reported(board, row, format_targets(row, group, board.alpha))
                    for group in groups
                ),
            )
            for row in board.rows
        )

    table = TextTable(
        make_title(board, "targets", *([common] if common else [])),
        ("method", *short),
        list_rows([[column] for column in board.columns]),
        TARGET_NOTE,
    )
    if len(by_dataset) == len(board.columns):
        return table
    rows = list_rows([*by_dataset.values()])
    return replace(
        table, columns=("method", *by_dataset), rows=rows, note=AVERAGE_NOTE, complete=table
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


def format_half(half: float | None) -> str:
    return "" if half is None else f" ± {to_percent(half)}"


def format_gain(score: MethodScore | None, kind: ControlKind, alpha: float) -> str:
    """Return e.g. +1.20 ± 0.45 s*."""
    gain = score and score.gains.get(kind)
    if not gain:
        return "-"
    covered = COVERED.get(gain.covers, "")
    star = mark_significance(gain, alpha)
    return f"{to_percent(gain.gap, '+')}{format_half(gain.ci95)}{covered}{star}"


def format_in_domain(row: MethodRow, alpha: float) -> str:
    """Return e.g. 20.61 (+1.02 ± 0.40*)."""
    if row.source_accuracy is None:
        return "-"
    text, gain = to_percent(row.source_accuracy), row.source_gain
    if not gain:
        return text
    star = mark_significance(gain, alpha)
    return f"{text} ({to_percent(gain.gap, '+')}{format_half(gain.ci95)}{star})"


def format_targets(row: MethodRow, columns: Sequence[str], alpha: float) -> str:
    """Return e.g. 57.75 (+1.20*); the mean of several columns, which has no test of its own."""
    cells = [row.cells[column] for column in columns if column in row.cells]
    if len(cells) < len(columns):
        return "-"
    gains = [cell.gains["normal"] for cell in cells if "normal" in cell.gains]
    star = mark_significance(gains[0], alpha) if len(cells) == len(gains) == 1 else ""
    gap = f" ({to_percent(mean(g.gap for g in gains), '+')}{star})" if gains else ""
    return to_percent(mean(cell.mean for cell in cells)) + gap


def mark_significance(gain: Gain, alpha: float) -> str:
    return "*" if gain.is_significant(alpha) else ""


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
    entries_by_reason: dict[str, list[str]] = {}
    for entry, reason in board.left_out.items():
        entries_by_reason.setdefault(reason, []).append(entry)
    return [f"Left out, {', '.join(names)}: {why}." for why, names in entries_by_reason.items()]


def render_markdown(board: MethodBoard) -> str:
    """Return GitHub Markdown; every text is escaped."""
    tables = [table.complete or table for table in make_tables(board)]
    return "\n\n".join(map(render_table, tables)) + "\n"


def render_csv(boards: Sequence[MethodBoard]) -> str:
    """Return one line per row and column, and one for the overall score, of every board."""
    of_gains = [f"{kind}_{name}" for kind in KINDS for name in ("control", *GAIN_FIELDS)]
    fields = ["track", *ROW_FIELDS, "seeds", "column", *SCORE_FIELDS, *of_gains]
    out = io.StringIO()
    writer = csv.DictWriter(out, [*fields, *MethodCosts.model_fields, "front"], lineterminator="\n")
    writer.writeheader()
    for line in (line for board in boards for line in list_csv_lines(board)):
        writer.writerow({k: guard_formula(v) if isinstance(v, str) else v for k, v in line.items()})
    return out.getvalue()


def list_csv_lines(board: MethodBoard) -> Iterator[dict[str, object]]:
    """Yield the fields of each line of CSV."""
    for row in board.rows:
        facts = {"track": board.track, "seeds": len(row.seeds), "front": " ".join(row.front)}
        facts |= row.model_dump(include=set(ROW_FIELDS)) | row.costs.model_dump()
        facts |= {f"{kind}_control": name for kind, name in row.controls.items()}
        for column, score in {**row.cells, "overall": row.overall}.items():
            if score is None:
                continue
            line = facts | {"column": column} | score.model_dump(include=set(SCORE_FIELDS))
            for kind, gain in score.gains.items():
                values = gain.model_dump(include=set(GAIN_FIELDS))
                line |= {f"{kind}_{name}": value for name, value in values.items()}
            yield line
