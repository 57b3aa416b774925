"""Results of folders, ranked like the entries of a board: one table per track, never mixed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fsbench.core.errors import ValidationFailed
from fsbench.results.entry import Loaded
from fsbench.results.outcomes import digest_records
from fsbench.results.table import collapse_notes, distinct_labels, rule_notes
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
from leaderboard.record import BoardFile, Column, identify_column
from leaderboard.tables import EXTRA, BoardTable, rank_rows


def rank_results(paths: Sequence[Path]) -> list[BoardTable]:
    """Return one table per track of these results, after verifying them.

    Models are named as by `fsbench show`. Raises UsageError without results, ValidationFailed.
    """
    results = [loaded for path in paths for loaded in read_cells(path)]
    models = group_by_model(results)
    columns = first_of_names(sorted({c for r in models.values() for c in r}, key=column_order))
    heads = [{c.name.adaptation for c in r} for r in models.values()]
    whole = all(some == heads[0] for some in heads)
    file = BoardFile(name="results", columns=tuple(columns), heads="together" if whole else "apart")
    tracks = split_by_track(file, [[loaded.result for loaded in results]])
    return [rank_models(models, track) for track in tracks]


def group_by_model(loaded: Sequence[Loaded]) -> dict[str, dict[Column, Loaded]]:
    """Group results. Raises ValidationFailed for two results of one task that differ."""
    names = distinct_labels([c.result for c in loaded], [c.model for c in loaded])
    results_by_model: dict[str, dict[Column, Loaded]] = {}
    for name, cell in zip(names, loaded, strict=True):
        first = results_by_model.setdefault(name, {}).setdefault(identify_column(cell.result), cell)
        if first is not cell and digest_records(first.records) != digest_records(cell.records):
            raise ValidationFailed(
                f"{first.where} and {cell.where} have different outcomes",
                fix="pass only one of them",
            )
    return results_by_model


def rank_models(models: Mapping[str, Mapping[Column, Loaded]], table: TrackColumns) -> BoardTable:
    """Rank models over the columns of one track like entries; whole seeds of a recipe are a row."""
    labels = label_columns(table.columns)
    labelled = {
        name: {labels[c]: loaded for c, loaded in by_column.items() if c in labels}
        for name, by_column in models.items()
    }
    selected = {name: by_column for name, by_column in labelled.items() if by_column}
    results = [loaded.result for by_column in selected.values() for loaded in by_column.values()]
    view = BoardTable(
        name="results",
        track=table.track,
        flags=dict.fromkeys(selected, ()),
        contenders={
            name: {column: extract_outcomes(loaded) for column, loaded in by_column.items()}
            for name, by_column in selected.items()
        },
        backbones={
            name: next(iter(by_column.values())).result.backbone
            for name, by_column in selected.items()
        },
        cell_flags={
            name: {column: loaded.result.flags for column, loaded in by_column.items()}
            for name, by_column in selected.items()
        },
        results=selected,
        members=join_seeds(selected, len(labels)),
        notes=(*rule_notes(results), *collapse_notes(results)),
    )
    excluded = dict.fromkeys(view.members, EXTRA) if table.is_extra else {}
    return rank_rows(view, list(labels.values()), excluded)


def join_seeds(
    models: Mapping[str, Mapping[str, Loaded]], columns: int
) -> dict[str, tuple[str, ...]]:
    """Return row -> its models: the whole ones of one recipe and episodes, others alone."""
    rows: dict[object, list[str]] = {}
    for name, by_column in models.items():
        cells = list(by_column.values())
        episodes = [(o.draws, o.numbering) for o in map(extract_outcomes, cells)]
        whole = len(cells) == columns
        row = (recipe_key(cells[0].result.backbone), *episodes) if whole else name
        rows.setdefault(row, []).append(name)
    named: dict[str, tuple[str, ...]] = {}
    for names in rows.values():
        label = common_name(names)
        taken = {*named, *(models.keys() - {*names})}
        named[label if label not in taken else names[0]] = tuple(names)
    return named
