"""Tables for a paper, from one's own results or from a board: one a track, numbers never mixed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fsbench.core.errors import UnknownName, ValidationFailed
from fsbench.core.progress import SILENT, Reporter
from fsbench.results import table as words
from fsbench.results.reading import cells
from fsbench.results.rules import Loaded
from leaderboard.board.columns import Column, column_of
from leaderboard.board.definition import BoardFile
from leaderboard.board.standing import View, label, views
from leaderboard.board.tables import Table, tables
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.ranking.rank import rank
from leaderboard.reports._sheet import Sheet, sheet

Models = dict[str, dict[Column, Loaded]]
"""Model -> column -> its result."""


def of_board(
    folder: Path,
    control: str | None = None,
    cache: Path | None = None,
    report: Reporter = SILENT,
) -> list[Sheet]:
    """A sheet a track of a board. Raises ValidationFailed, UsageError, UnknownName."""
    return checked([sheet(view, control) for view in views(folder, cache, report)], control)


def of_results(paths: Sequence[Path], control: str | None = None) -> list[Sheet]:
    """A sheet a track of these results, every one verified; models are called as `show` does.

    Raises UsageError without results, ValidationFailed, UnknownName for a control that is none.
    """
    loaded = [cell for path in paths for cell in cells(path)]
    models = by_model(loaded)
    found = tables(BoardFile(name="results"), [cell.result for cell in loaded])
    return checked([of_table(models, table, control) for table in found], control)


def by_model(loaded: Sequence[Loaded]) -> Models:
    """Raises ValidationFailed where one cell is given twice with different outcomes."""
    names = words.distinct([c.result for c in loaded], [c.model for c in loaded])
    found: Models = {}
    for name, cell in zip(names, loaded, strict=True):
        held = found.setdefault(name, {}).setdefault(column_of(cell.result), cell)
        if held.result.records_digest != cell.result.records_digest:
            raise ValidationFailed(
                f"{held.path} and {cell.path} hold different outcomes of {cell.result.column}",
                fix="give one of them",
            )
    return found


def of_table(models: Models, table: Table, control: str | None) -> Sheet:
    labels = label(table.columns)
    held = {
        name: {labels[c]: cell for c, cell in own.items() if c in labels}
        for name, own in models.items()
    }
    held = {name: own for name, own in held.items() if own}
    shown = {
        name: {c: extract_outcomes(cell) for c, cell in own.items()} for name, own in held.items()
    }
    results = [cell.result for own in held.values() for cell in own.values()]
    view = View(
        name="results",
        official=False,
        track=table.track,
        ranking=rank(shown, list(labels.values())),
        flags={},
        sources={
            n: next(iter(o.values())).result.backbone.source_accuracy for n, o in held.items()
        },
        links={},
        published=(),
        contenders=shown,
        cell_flags={n: {c: cell.result.flags for c, cell in o.items()} for n, o in held.items()},
    )
    return sheet(view, control, [*words.rules(results), *words.fallen(results)])


def checked(sheets: list[Sheet], control: str | None) -> list[Sheet]:
    """Raises UnknownName where the control is in no sheet."""
    names = {row.name for each in sheets for row in each.rows}
    if control is not None and control not in names:
        raise UnknownName("model", control, names)
    return sheets
