"""`fsbench show` and `fsbench results merge`: print results; merge sharded evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.core.schema import Result

Results = Annotated[list[Path], typer.Argument(help="Results folders or files.")]


Parts = Annotated[list[Path], typer.Argument(help="Results folders of the parts.")]


def register(app: typer.Typer) -> None:
    app.command("show")(show)
    group = typer.Typer(no_args_is_help=True, help="Merge the parts of a sharded evaluation.")
    group.callback()(lambda: None)
    group.command("merge")(merge)
    app.add_typer(group, name="results")


def show(results: Results, as_json: options.Json = False) -> None:
    """Verify results against their records and print them; several models become columns."""
    from fsbench.results.verification import read_cells

    loaded = [cell for path in results for cell in read_cells(path)]
    print_results(
        [cell.result for cell in loaded], as_json=as_json, models=[cell.model for cell in loaded]
    )


def merge(parts: Parts, output: options.Output, as_json: options.Json = False) -> None:
    """Merge the parts of a sharded evaluation; equal to the results of one process."""
    from fsbench.results.assembly import merge as merge_results

    print_results(merge_results(parts, output), as_json=as_json)
    console.log(f"merged {len(parts)} parts into {output}")


def print_results(
    results: Sequence[Result], as_json: bool = False, models: Sequence[str] | None = None
) -> None:
    """Print one table per track and notes on stderr, or a JSON list of records with `mean`."""
    from fsbench.results import table
    from fsbench.results.tracks import by_track

    if as_json:
        console.emit_json([table.result_as_json(result) for result in results])
        return
    tracks = by_track(result.column for result in results)
    all_notes: dict[str, None] = {}
    for track, columns in tracks.items():
        chosen = [i for i, result in enumerate(results) if result.column in columns]
        names = models and [models[i] for i in chosen]
        header, rows, notes = table.build_table([results[i] for i in chosen], names)
        console.table("results" if len(tracks) == 1 else f"results {track.label}", header, rows)
        all_notes |= dict.fromkeys(notes)
    for note in all_notes:
        console.log(note)
