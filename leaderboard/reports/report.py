"""Tables for a paper, from results or from a board: one per track, never mixed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fsbench.core.errors import UnknownName, ValidationFailed
from fsbench.core.progress import SILENT, Reporter
from fsbench.results import table as results_table
from fsbench.results.entry import Loaded
from fsbench.results.outcomes import digest_records
from fsbench.results.verification import read_cells
from leaderboard.columns import (
    TrackColumns,
    column_order,
    first_of_names,
    label_columns,
    split_by_track,
)
from leaderboard.intake.submission import common_name, recipe_key
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.ranking.tiers import Ranking
from leaderboard.record import BoardFile, Column, identify_column
from leaderboard.reports.table import ReportTable, build_report_table
from leaderboard.tables import EXTRA, BoardTable, rank_board, rank_rows

ResultsByModel = dict[str, dict[Column, Loaded]]
"""Model -> column -> its result."""


def report_board(
    folder: Path,
    control: str | None = None,
    report: Reporter = SILENT,
    seeds: bool = False,
) -> list[ReportTable]:
    """Return one table per track of a board. Raises ValidationFailed, UsageError, UnknownName."""
    views = rank_board(folder, report)
    tables = [build_report_table(view, control, seeds=seeds) for view in views]
    return require_control(tables, control)


def report_results(
    paths: Sequence[Path], control: str | None = None, seeds: bool = False
) -> list[ReportTable]:
    """Return one table per track of these results, after verifying them.

    Models are named as by `fsbench show`. Raises UsageError without results, ValidationFailed, and
    UnknownName for an unknown control.
    """
    results = [loaded for path in paths for loaded in read_cells(path)]
    models = group_by_model(results)
    columns = first_of_names(sorted({c for r in models.values() for c in r}, key=column_order))
    heads = [{c.name.adaptation for c in r} for r in models.values()]
    whole = all(some == heads[0] for some in heads)
    file = BoardFile(name="results", columns=tuple(columns), heads="together" if whole else "apart")
    tracks = split_by_track(file, [[loaded.result for loaded in results]])
    tables = [report_models(models, track, control, seeds) for track in tracks]
    return require_control(tables, control)


def group_by_model(loaded: Sequence[Loaded]) -> ResultsByModel:
    """Group results. Raises ValidationFailed for two results of one task that differ."""
    names = results_table.distinct_labels([c.result for c in loaded], [c.model for c in loaded])
    results_by_model: ResultsByModel = {}
    for name, cell in zip(names, loaded, strict=True):
        first = results_by_model.setdefault(name, {}).setdefault(identify_column(cell.result), cell)
        if first is not cell and digest_records(first.records) != digest_records(cell.records):
            raise ValidationFailed(
                f"{first.where} and {cell.where} have different outcomes",
                fix="pass only one of them",
            )
    return results_by_model


def report_models(
    models: ResultsByModel, table: TrackColumns, control: str | None, seeds: bool
) -> ReportTable:
    """Rank models over the columns of one track like the entries of a board.

    Seeds of one recipe, which have all columns, are one row.
    """
    labels = label_columns(table.columns)
    labelled = {
        name: {labels[c]: loaded for c, loaded in by_column.items() if c in labels}
        for name, by_column in models.items()
    }
    selected = {name: by_column for name, by_column in labelled.items() if by_column}
    contenders = {
        name: {column: extract_outcomes(loaded) for column, loaded in by_column.items()}
        for name, by_column in selected.items()
    }
    results = [loaded.result for by_column in selected.values() for loaded in by_column.values()]
    first = {name: next(iter(by_column.values())).result for name, by_column in selected.items()}
    columns = list(labels.values())
    view = BoardTable(
        name="results",
        official=False,
        track=table.track,
        ranking=Ranking((), (), ()),
        flags=dict.fromkeys(selected, ()),
        sources={name: result.backbone.source_accuracy for name, result in first.items()},
        links=dict.fromkeys(selected, ""),
        published=(),
        contenders=contenders,
        backbones={name: result.backbone for name, result in first.items()},
        cell_flags={
            name: {column: loaded.result.flags for column, loaded in by_column.items()}
            for name, by_column in selected.items()
        },
        results=selected,
        members=join_seeds(selected, len(columns)),
    )
    excluded = dict.fromkeys(view.members, EXTRA) if table.is_extra else {}
    view = rank_rows(view, columns, excluded)
    notes = [*results_table.rule_notes(results), *results_table.collapse_notes(results)]
    return build_report_table(view, control, notes, seeds)


def join_seeds(
    models: Mapping[str, Mapping[str, Loaded]], columns: int
) -> dict[str, tuple[str, ...]]:
    """Return row -> its models: the whole ones of one recipe and episodes, others alone."""
    rows: dict[object, list[str]] = {}
    for name, by_column in models.items():
        cells = list(by_column.values())
        episodes = [(o.draws, o.numbering) for o in map(extract_outcomes, cells)]
        whole = len(cells) == columns
        rows.setdefault((recipe_key(cells), *episodes) if whole else name, []).append(name)
    named: dict[str, tuple[str, ...]] = {}
    for names in rows.values():
        row = common_name(names)
        taken = {*named, *(models.keys() - {*names})}
        named[row if row not in taken else names[0]] = tuple(names)
    return named


def require_control(tables: list[ReportTable], control: str | None) -> list[ReportTable]:
    """Return the tables. Raises UnknownName if no table contains the control."""
    names = {name for table in tables for row in table.rows for name in (row.name, *row.seeds)}
    if control is not None and control not in names:
        raise UnknownName("model", control, names)
    return tables
