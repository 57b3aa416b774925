"""Tables for a paper, from results or from a board: one per track, never mixed."""

from collections.abc import Sequence
from pathlib import Path

from fsbench.core.errors import UnknownName, ValidationFailed
from fsbench.core.progress import SILENT, Reporter
from fsbench.results import table as results_table
from fsbench.results.verification import Loaded, read_cells
from leaderboard.board.definition import BoardFile, Column, identify_column
from leaderboard.board.tables import (
    BoardTable,
    TrackColumns,
    label_columns,
    rank_board,
    rank_rows,
    split_by_track,
)
from leaderboard.methods.runs import MethodRun, group_seeds
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.ranking.tiers import Ranking
from leaderboard.reports.table import ReportTable, build_report_table

ResultsByModel = dict[str, dict[Column, Loaded]]
"""Model -> column -> its result."""


def report_board(
    folder: Path,
    control: str | None = None,
    cache: Path | None = None,
    report: Reporter = SILENT,
    seeds: bool = False,
) -> list[ReportTable]:
    """Return one table per track of a board. Raises ValidationFailed, UsageError, UnknownName."""
    views = rank_board(folder, cache, report)
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
    tracks = split_by_track(BoardFile(name="results"), [loaded.result for loaded in results])
    tables = [report_models(models, track, control, seeds) for track in tracks]
    return require_control(tables, control)


def group_by_model(loaded: Sequence[Loaded]) -> ResultsByModel:
    """Group results. Raises ValidationFailed for two results of one task that differ."""
    names = results_table.distinct_labels([c.result for c in loaded], [c.model for c in loaded])
    results_by_model: ResultsByModel = {}
    for name, cell in zip(names, loaded, strict=True):
        first = results_by_model.setdefault(name, {}).setdefault(identify_column(cell.result), cell)
        if first.result.records_digest != cell.result.records_digest:
            raise ValidationFailed(
                f"{first.path} and {cell.path} have different outcomes of {cell.result.column}",
                fix="pass only one of them",
            )
    return results_by_model


def report_models(
    models: ResultsByModel, table: TrackColumns, control: str | None, seeds: bool
) -> ReportTable:
    """Rank models over the columns of one track like the entries of a board."""
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
    runs = (
        MethodRun(name, first[name].backbone, by_column)
        for name, by_column in contenders.items()
        if len(by_column) == len(columns)
    )
    view = BoardTable(
        name="results",
        official=False,
        track=table.track,
        ranking=Ranking((), (), ()),
        flags={},
        sources={name: result.backbone.source_accuracy for name, result in first.items()},
        links={},
        published=(),
        contenders=contenders,
        backbones={name: result.backbone for name, result in first.items()},
        cell_flags={
            name: {column: loaded.result.flags for column, loaded in by_column.items()}
            for name, by_column in selected.items()
        },
        results=selected,
    )
    view = rank_rows(view, columns, group_seeds(runs, columns), {})
    notes = [*results_table.rule_notes(results), *results_table.collapse_notes(results)]
    return build_report_table(view, control, notes, seeds)


def require_control(tables: list[ReportTable], control: str | None) -> list[ReportTable]:
    """Return the tables. Raises UnknownName if no table contains the control."""
    names = {name for table in tables for row in table.rows for name in (row.name, *row.seeds)}
    if control is not None and control not in names:
        raise UnknownName("model", control, names)
    return tables
