"""Tables of a board as text, in percent: measured entries by track, and published numbers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    mark_single_seed,
    to_percent,
)
from leaderboard.tables import BoardTable, group_by_dataset, list_self_reported

AVERAGE_NOTE = "A data set is the mean of its columns; --wide prints all of them."
EMPTY_NOTE = "No entries yet: fsbench submit RESULTS --board DIR"
Groups = Mapping[str, Sequence[str]]
"""Header of a printed column -> the columns of the board that it is the mean of."""


def make_board_table(table: BoardTable, seeds: bool = False) -> TextTable:
    """Return tier, entry, overall and one column per data set; `complete` has every column.

    seeds: whether the seeds of a row are lines below it.
    """
    columns = table.ranking.columns
    short, common = shorten_columns(columns)
    kind = table.track.label if table.track and table.track.data else common
    title = f"{table.name}{' (official)' * table.official}{kind and f': {kind}'}"
    shared = SharedMarks.of(table)
    notes = [TIER_NOTE, *describe_coverage(table)] if table.names else [EMPTY_NOTE]
    notes += [HELD_OUT_NOTE] if any(table.best_on_test.values()) else []
    if not shared.self_reported and any(list_self_reported(table, n) for n in table.names):
        notes.append(SELF_NOTE)

    def build(groups: Groups, *more: str) -> TextTable:
        rows = tuple(
            format_row(table, row, groups, shared)
            for entry in table.ranking.entries
            for row in (entry, *(table.seeds.get(entry.name, {}).values() if seeds else ()))
        )
        built = TextTable(
            " · ".join([title, *shared.words]),
            ("tier", "entry", "seeds", "overall", *groups, "source", "flags"),
            rows,
            "\n".join([*more, *notes]),
            describe_ranking(table),
            keys=2,
            optional=("source", "seeds", "flags"),
        ).share()
        return built if table.seeds else built.without("seeds")

    datasets = group_by_dataset(columns)
    complete = build({label: [column] for label, column in zip(short, columns, strict=True)})
    more = [AVERAGE_NOTE] if len(datasets) < len(columns) else []
    return replace(build(datasets, *more), complete=complete)


@dataclass(frozen=True)
class SharedMarks:
    """Marks that all of several rows have, so that the title states them once."""

    flags: tuple[str, ...] = ()
    self_reported: bool = False

    @classmethod
    def of(cls, table: BoardTable) -> "SharedMarks":
        if len(table.names) < 2:
            return cls()
        first, *others = (table.flags[name] for name in table.names)
        return cls(
            tuple(flag for flag in first if all(flag in flags for flags in others)),
            all(
                len(list_self_reported(table, entry.name)) == len(entry.scores)
                for entry in table.ranking.entries
            ),
        )

    @property
    def words(self) -> list[str]:
        return [*self.flags, *[SELF_REPORTED] * self.self_reported]


def format_row(
    table: BoardTable, entry: RankedEntry, groups: Groups, shared: SharedMarks
) -> tuple[str, ...]:
    """Return the line of an entry or a seed, without the marks that all rows share."""
    name, source, is_row = entry.name, table.sources[entry.name], entry.name in table.names
    reported = set() if shared.self_reported else set(list_self_reported(table, name))
    mark = SELF_MARK if reported else ""
    reason = [entry.reason] if is_row and entry.tier is None else []
    flags = [flag for flag in table.flags[name] if flag not in shared.flags]
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
        return format_mean_interval(table.averages[entry.name].get(dataset))
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
    return [TextTable("published", header, rows, note)] if rows else []


def format_published(cell: PublishedCell) -> str:
    """Return e.g. 57.75 ± 0.88; 65.93 (± 0.12) for a spread over seeds; * marks a note."""
    score = Score(cell.mean, math.nan if cell.ci95 is None else cell.ci95, 0)
    spread = "" if cell.spread is None else f" (± {to_percent(cell.spread)})"
    return format_mean_interval(score) + spread + ("*" if cell.note else "")
