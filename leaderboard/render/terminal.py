"""Tables of a board as text, in percent: measured entries by track, and published numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from fsbench.core.statistics import Score
from fsbench.core.tables import TextTable
from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns
from leaderboard.badges import SELF_REPORTED
from leaderboard.published import PublishedCell
from leaderboard.ranking.tiers import RankedEntry
from leaderboard.render.notes import (
    HELD_OUT_NOTE,
    PUBLISHED_NOTE,
    SEED_MARK,
    SELF_MARK,
    SELF_NOTE,
    SPREAD_NOTE,
    TIER_NOTE,
    describe_coverage,
    describe_ranking,
    format_mean_interval,
    format_tier,
    list_unranked,
    mark_single_seed,
    to_percent,
)
from leaderboard.tables import BoardTable, group_by_dataset, list_self_reported

AVERAGE_NOTE = "A data set is the mean of its columns; --wide prints all of them."
EMPTY_NOTE = "No entries yet: fsbench submit RESULTS --board DIR"
KEYS = 2
"""Leading columns that are never left out: tier and entry."""
Groups = Mapping[str, Sequence[str]]
"""Header of a printed column -> the columns of the board that it is the mean of."""


def make_board_tables(tables: Sequence[BoardTable], seeds: bool = False) -> list[TextTable]:
    """Return a table per track, then the published numbers."""
    return [*(make_board_table(table, seeds) for table in tables), *make_published_tables(tables)]


def make_board_table(table: BoardTable, seeds: bool = False) -> TextTable:
    """Return one column per data set; `complete` has every column. seeds: listed below rows."""
    columns = table.ranking.columns
    labels, datasets = shorten_columns(columns)[0], group_by_dataset(columns)
    notes = [TIER_NOTE, *describe_coverage(table)] if table.names else [EMPTY_NOTE]
    notes += list_unranked(table.ranking)  # narrow terminals leave flags out
    notes += [HELD_OUT_NOTE] if any(table.best_on_test.values()) else []
    is_marked = SELF_REPORTED not in list_shared_marks(table)
    if is_marked and any(list_self_reported(table, name) for name in table.names):
        notes.append(SELF_NOTE)
    whole = {label: [column] for label, column in zip(labels, columns, strict=True)}
    complete = format_table(table, whole, notes, seeds)
    more = [AVERAGE_NOTE] if len(datasets) < len(columns) else []
    return replace(format_table(table, datasets, [*more, *notes], seeds), complete=complete)


def format_table(table: BoardTable, groups: Groups, notes: Sequence[str], seeds: bool) -> TextTable:
    """Return a line per row, without columns that are empty in all of them."""
    shared = list_shared_marks(table)
    rows = [
        format_row(table, row, groups, shared)
        for entry in table.ranking.entries
        for row in (entry, *(table.seeds.get(entry.name, {}).values() if seeds else ()))
    ]
    columns = ("tier", "entry", "seeds", "overall", *groups, "source", "flags")
    empty = {i for i, texts in enumerate(zip(*rows, strict=True)) if set(texts) <= {"", "-"}}
    empty |= set() if table.seeds else {columns.index("seeds")}
    shown = [i for i in range(len(columns)) if i < KEYS or i not in empty]
    kind = table.label
    if not (table.track and table.track.data):
        kind = shorten_columns(table.ranking.columns)[1]
    title = f"{table.name}{' (official)' * table.official}{kind and f': {kind}'}"
    return TextTable(
        " · ".join([title, *shared]),
        tuple(columns[i] for i in shown),
        tuple(tuple(row[i] for i in shown) for row in rows),
        "\n".join(notes),
        describe_ranking(table),
        keys=KEYS,
        optional=("source", "seeds", "flags"),
    )


def list_shared_marks(table: BoardTable) -> list[str]:
    """Return flags, and `self-reported`, that all of several rows have: the title states them."""
    entries = table.ranking.entries
    if len(entries) < 2:
        return []
    first, *others = (table.flags[entry.name] for entry in entries)
    shared = [flag for flag in first if all(flag in flags for flags in others)]
    is_reported = all(len(list_self_reported(table, e.name)) == len(e.scores) for e in entries)
    return [*shared, *[SELF_REPORTED] * is_reported]


def format_row(
    table: BoardTable, entry: RankedEntry, groups: Groups, shared: Sequence[str]
) -> tuple[str, ...]:
    """Return the line of an entry or a seed, without the marks that all rows share."""
    name, source, is_row = entry.name, table.sources[entry.name], entry.name in table.names
    reported = set() if SELF_REPORTED in shared else set(list_self_reported(table, name))
    mark = SELF_MARK if reported else ""
    reason = [entry.reason] if is_row and entry.tier is None else []
    flags = [flag for flag in table.flags[name] if flag not in shared]
    return (
        str(format_tier(entry)) if is_row else "",
        mark_single_seed(table, name) if is_row else SEED_MARK + name,
        str(len(table.seeds.get(name, "1"))) if is_row else "",
        "-" if entry.overall is None else to_percent(entry.overall) + mark,
        *(
            format_group(table, entry, group) + SELF_MARK * (not reported.isdisjoint(group))
            for group in groups.values()
        ),
        "-" if source is None else to_percent(source) + mark,
        ", ".join([*reason, *flags]) or "-",
    )


def format_group(table: BoardTable, entry: RankedEntry, columns: Sequence[str]) -> str:
    """Return the mean of columns, e.g. 57.75 ± 0.88; in brackets a probe's best one on test."""
    if len(columns) > 1:
        dataset = ColumnId.parse(columns[0]).task.dataset
        return format_mean_interval(entry.averages.get(dataset))
    text = format_mean_interval(entry.scores.get(columns[0]))
    second = table.best_on_test.get(entry.name, {}).get(columns[0])
    return text if second is None else f"{text} [{to_percent(second)}]"


def make_published_tables(tables: Sequence[BoardTable]) -> list[TextTable]:
    """Return one table of the published numbers beside these tables, each once; none without."""
    numbers = {
        (entry.name, cell.task): (entry, cell)
        for table in tables
        for entry in table.published
        for cell in entry.cells
    }
    rows = tuple(
        (entry.name, cell.task, format_published(cell), cell.table, entry.backbone)
        for entry, cell in numbers.values()
    )
    sources = "; ".join(dict.fromkeys(entry.source for entry, _ in numbers.values()))
    spread = [SPREAD_NOTE] * any(cell.spread is not None for _, cell in numbers.values())
    note = "\n".join([PUBLISHED_NOTE, f"{sources}.", *spread])
    header = ("entry", "task", "accuracy", "table", "backbone")
    return [TextTable("published", header, rows, note, is_extra=True)] if rows else []


def format_published(cell: PublishedCell) -> str:
    """Return e.g. 57.75 ± 0.88; 65.93 (± 0.12) for a spread over seeds; * marks a note."""
    score = Score(cell.mean, math.nan if cell.ci95 is None else cell.ci95, 0)
    spread = "" if cell.spread is None else f" (± {to_percent(cell.spread)})"
    return format_mean_interval(score) + spread + ("*" if cell.note else "")
