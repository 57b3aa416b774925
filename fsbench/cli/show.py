"""`fsbench show`: results as one table, several models side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.core.schema import Result

Results = Annotated[list[Path], typer.Argument(help="Results folders or files, as -o wrote them.")]


def register(app: typer.Typer) -> None:
    app.command("show")(show)


def show(results: Results, as_json: options.Json = False) -> None:
    """Verify results against their outcomes and print them; several models become columns."""
    from fsbench.results.reading import cells

    read = [(cell.result, cell.model) for path in results for cell in cells(path)]
    print_results([r for r, _ in read], as_json=as_json, models=[m for _, m in read])


def print_results(
    results: Sequence[Result], as_json: bool = False, models: Sequence[str] | None = None
) -> None:
    """A table a track on stdout, its notes on stderr; or a JSON list of records with `mean`."""
    from fsbench.results import table
    from fsbench.results.tracks import by_track

    if as_json:
        console.emit_json([table.as_json(result) for result in results])
        return
    tracks, known = by_track(result.column for result in results), dict[str, None]()
    for track, columns in tracks.items():
        chosen = [i for i, result in enumerate(results) if result.column in columns]
        named = models and [models[i] for i in chosen]
        header, rows, notes = table.table([results[i] for i in chosen], named)
        console.table("results" if len(tracks) == 1 else f"results {track.label}", header, rows)
        known |= dict.fromkeys(notes)
    for note in known:
        console.log(note)
