"""Score frames as tables of text, in percent, and the numbers that papers print.

The terminal prints them, Markdown and CSV are made from them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fsbench.core.statistics import Score
from fsbench.core.tables import TextTable
from fsbench.results.table import format_score, shorten_columns
from leaderboard.published import PublishedCell
from leaderboard.ranking.rank_intervals import RankInterval
from leaderboard.render.frame import SOURCE, ScoreFrame, make_frame
from leaderboard.render.notes import (
    PUBLISHED_NOTE,
    SEED_MARK,
    SELF_MARK,
    SELF_NOTE,
    SPREAD_NOTE,
    TIER_NOTE,
    Best,
    describe_ranking,
    describe_single_seeds,
    format_tier,
    lift_letters,
    mark_single_seed,
    to_percent,
)
from leaderboard.tables import OVERALL, BoardTable, Row, group_by_dataset

AVERAGE_NOTE = "A data set is the mean of its columns; --wide prints all of them."
EMPTY_NOTE = "No entries yet: fsbench submit RESULTS --board DIR"
NO_RANKS = "Not computed: it takes two ranked entries that share two episodes of each column."
KEYS = ("tier", "entry")
"""Leading columns, which are never left out."""
COSTS = ("parameters (M)", "GMACs", "measured")
"""Columns of a complete table: of the network, of one image, on one machine."""
Groups = Mapping[str, Sequence[str]]
"""Header of a printed column -> the columns of the frame that it is the mean of."""


def make_board_tables(tables: Sequence[BoardTable], seeds: bool = False) -> list[TextTable]:
    """Return a table per track, then the published numbers. seeds: listed below rows."""
    frames = [make_frame(table, seeds=seeds) for table in tables]
    return [*map(make_score_table, frames), *make_published_tables(tables)]


def make_score_table(frame: ScoreFrame) -> TextTable:
    """Return the table with one column per data set; `complete` has every column."""
    columns = frame.table.ranking.columns
    labels, datasets = shorten_columns(columns)[0], group_by_dataset(columns)
    notes = [TIER_NOTE, *frame.explain_numbers()] if frame.lines else [EMPTY_NOTE]
    more = [AVERAGE_NOTE] if len(datasets) < len(columns) else []
    whole = {label: [column] for label, column in zip(labels, columns, strict=True)}
    return replace(
        format_table(frame, datasets, [*more, *notes]),
        make_complete=lambda: format_table(frame, whole, [*notes, *frame.explain_bold()], True),
    )


def format_table(
    frame: ScoreFrame, groups: Groups, notes: Sequence[str], is_complete: bool = False
) -> TextTable:
    """Return a line per row, without columns that are empty in all of them.

    is_complete: whether costs are shown.
    """
    shown = {OVERALL: [OVERALL], **groups, SOURCE: [SOURCE]}
    rows = [format_row(frame, name, shown, is_complete) for name in frame.lines]
    columns = (*KEYS, "seeds", *shown, *(COSTS if is_complete else ()), "notes")
    empty = {i for i, texts in enumerate(zip(*rows, strict=True)) if {*texts} <= {"", "-"}}
    empty |= set() if frame.table.seeds else {len(KEYS)}
    filled = [i for i in range(len(columns)) if i < len(KEYS) or i not in empty]
    return TextTable(
        frame.title,
        tuple(columns[i] for i in filled),
        tuple(tuple(row[i] for i in filled) for row in rows),
        "\n".join(notes),
        describe_ranking(frame.table),
        keys=len(KEYS),
        optional=(SOURCE, *reversed(COSTS), "seeds", "notes"),
    )


def format_row(frame: ScoreFrame, name: str, groups: Groups, is_complete: bool) -> tuple[str, ...]:
    """Return the line of a row or a seed; letters mark flags."""
    table, entry, is_seed = frame.table, frame.entries[name], frame.is_seed(name)
    row = table.lines[name]
    reason = [entry.reason] if entry.tier is None and not is_seed else []
    shown = SEED_MARK + name if is_seed else mark_single_seed(table, name)
    return (
        "" if is_seed else str(format_tier(entry)),
        shown + lift_letters(frame.mark(name)),
        "" if is_seed else str(len(row.networks)),
        *(format_number(frame, name, group, columns) for group, columns in groups.items()),
        *(format_costs(row) if is_complete else ()),
        ", ".join([*reason, *row.notes]) or "-",
    )


def format_number(frame: ScoreFrame, name: str, group: str, columns: Sequence[str]) -> str:
    """Return the mean of a group of columns, e.g. 57.75 ± 0.88†ᵃ."""
    alone = frame.scores[name].get(columns[0]) if len(columns) == 1 else None
    score = alone.score if alone else frame.entries[name].averages.get(group)
    if score is None:
        return "-"
    marks = {letter for c in columns for letter in frame.mark(name, c) + frame.mark(column=c)}
    shown = format_score(score) + (alone.mark if alone else "")
    text = shown + lift_letters("".join(sorted(marks)))
    return Best(text) if alone and frame.is_bold(alone) else text


def format_costs(row: Row) -> tuple[str, str, str]:
    """Return COSTS: multiply-adds of one image, and what was measured where."""
    parameters, cost = f"{row.facts.n_parameters / 1e6:.3g}", row.cost
    if cost is None:
        return parameters, "-", "-"
    macs = "-" if cost.macs is None else f"{cost.macs / 1e9:.3g}"
    return parameters, macs, cost.measured


def make_published_tables(tables: Sequence[BoardTable]) -> list[TextTable]:
    """Return one table of the published numbers beside these tables, each once; none without."""
    by_task = {
        (entry.name, number.task): (entry, number)
        for table in tables
        for entry in table.published
        for number in entry.cells
    }
    rows = tuple(
        (entry.name, number.task, format_published(number), number.table, entry.backbone)
        for entry, number in by_task.values()
    )
    sources = "; ".join(dict.fromkeys(entry.source for entry, _ in by_task.values()))
    spread = [SPREAD_NOTE] * any(number.spread is not None for _, number in by_task.values())
    note = "\n".join([PUBLISHED_NOTE, f"{sources}.", *spread])
    header = ("entry", "task", "accuracy", "table", "backbone")
    return [TextTable("published", header, rows, note, is_extra=True)] if rows else []


def format_published(number: PublishedCell) -> str:
    """Return e.g. 57.75 ± 0.88; 65.93 (± 0.12) for a spread over seeds; * marks a note."""
    score = Score(number.mean, math.nan if number.ci95 is None else number.ci95, 0)
    spread = "" if number.spread is None else f" (± {to_percent(number.spread)})"
    return format_score(score) + spread + ("*" if number.note else "")


def make_rank_table(table: BoardTable, ranks: Sequence[RankInterval]) -> TextTable:
    """Return the ranks of a table with their intervals."""
    marks = {name: SELF_MARK * bool(row.self_reported) for name, row in table.rows.items()}
    rows = tuple(
        (
            mark_single_seed(table, interval.name),
            str(interval.tier),
            f"{to_percent(interval.overall)}{marks[interval.name]}",
            str(interval.rank),
            f"{interval.low} to {interval.high}",
        )
        for interval in ranks
    )
    notes = [SELF_NOTE] * any(marks.values()) + [NO_RANKS] * (not ranks)
    notes += describe_single_seeds(table)
    title = f"{table.name} {table.label}".strip()
    header = ("entry", "tier", "overall", "rank", "95 %")
    return TextTable(f"{title}: ranks", header, rows, "\n".join(notes))
