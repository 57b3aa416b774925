"""Tables for a paper, from one's own results or from a board: one a track, numbers never mixed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fsbench.core.errors import UnknownName, ValidationFailed
from fsbench.core.progress import SILENT, Reporter
from fsbench.results import table as words
from fsbench.results.reading import cells
from fsbench.results.rules import Loaded
from leaderboard.board.definition import BoardFile, Column, identify_column
from leaderboard.board.tables import (
    BoardTable,
    TrackColumns,
    label_columns,
    rank_board,
    split_by_track,
)
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.ranking.tiers import rank_entries
from leaderboard.reports.table import ReportTable, build_report_table

ResultsByModel = dict[str, dict[Column, Loaded]]
"""Model -> column -> its result."""


def report_board(
    folder: Path,
    control: str | None = None,
    cache: Path | None = None,
    report: Reporter = SILENT,
) -> list[ReportTable]:
    """A sheet a track of a board. Raises ValidationFailed, UsageError, UnknownName."""
    return require_control(
        [build_report_table(view, control) for view in rank_board(folder, cache, report)], control
    )


def report_results(paths: Sequence[Path], control: str | None = None) -> list[ReportTable]:
    """A sheet a track of these results, every one verified; models are called as `show` does.

    Raises UsageError without results, ValidationFailed, UnknownName for a control that is none.
    """
    loaded = [cell for path in paths for cell in cells(path)]
    models = group_by_model(loaded)
    found = split_by_track(BoardFile(name="results"), [cell.result for cell in loaded])
    return require_control([report_models(models, table, control) for table in found], control)


def group_by_model(loaded: Sequence[Loaded]) -> ResultsByModel:
    """Raises ValidationFailed where one cell is given twice with different outcomes."""
    names = words.distinct([c.result for c in loaded], [c.model for c in loaded])
    found: ResultsByModel = {}
    for name, cell in zip(names, loaded, strict=True):
        held = found.setdefault(name, {}).setdefault(identify_column(cell.result), cell)
        if held.result.records_digest != cell.result.records_digest:
            raise ValidationFailed(
                f"{held.path} and {cell.path} hold different outcomes of {cell.result.column}",
                fix="give one of them",
            )
    return found


def report_models(models: ResultsByModel, table: TrackColumns, control: str | None) -> ReportTable:
    labels = label_columns(table.columns)
    held = {
        name: {labels[c]: cell for c, cell in own.items() if c in labels}
        for name, own in models.items()
    }
    held = {name: own for name, own in held.items() if own}
    shown = {
        name: {c: extract_outcomes(cell) for c, cell in own.items()} for name, own in held.items()
    }
    results = [cell.result for own in held.values() for cell in own.values()]
    view = BoardTable(
        name="results",
        official=False,
        track=table.track,
        ranking=rank_entries(shown, list(labels.values())),
        flags={},
        sources={
            n: next(iter(o.values())).result.backbone.source_accuracy for n, o in held.items()
        },
        links={},
        published=(),
        contenders=shown,
        cell_flags={n: {c: cell.result.flags for c, cell in o.items()} for n, o in held.items()},
    )
    return build_report_table(view, control, [*words.rules(results), *words.fallen(results)])


def require_control(sheets: list[ReportTable], control: str | None) -> list[ReportTable]:
    """Raises UnknownName where the control is in no sheet."""
    names = {row.name for each in sheets for row in each.rows}
    if control is not None and control not in names:
        raise UnknownName("model", control, names)
    return sheets
