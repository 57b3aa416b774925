"""`fsbench ls`, `protocols diff`, `show` and `results merge`: what there is, and results."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options
from fsbench.core.progress import format_count
from fsbench.core.tables import TextTable

if TYPE_CHECKING:
    from fsbench.core.schema import Result

Results = Annotated[list[Path], typer.Argument(help="Results folders or files.")]
Parts = Annotated[list[Path], typer.Argument(help="Results folders of the parts.")]
FORM = "HEAD@PROTOCOL, probe or knn; append :64px for another input size"
What = Annotated[str, typer.Argument(help="What to list; without it, what can be listed.")]
Text = Annotated[str, typer.Argument(help="Only names that contain this, e.g. toy or resnet.")]
First = Annotated[str, typer.Argument(help=f"Protocol: {FORM}.")]
Second = Annotated[str, typer.Argument(help="Protocol to compare with.")]


@options.command("ls")
def ls(what: What = "", text: Text = "", as_json: options.Json = False) -> None:
    """List methods, recipes, data sets, protocols, heads, timm's models and more."""
    from fsbench.api.listing import BRIEF, DETAILS, rows

    listing = rows(what, text)
    if as_json:
        console.emit_json(listing)
    elif not listing:
        console.log(f"no {what}" + (f" with '{text}' in the name" if text else ""))
    else:
        columns = tuple(name for name in listing[0] if name not in DETAILS)
        body = tuple(tuple(console.text_of(row[name]) for name in columns) for row in listing)
        title = f"{what} {text}".strip() or "fsbench ls WHAT [TEXT]"
        table = TextTable(title, columns, body, note="--wide adds columns" * (what in BRIEF))
        brief = table.select(BRIEF.get(what, columns)).share()
        console.show_tables([replace(brief, make_complete=table.share)])


@options.command("protocols diff")
def diff(a: First, b: Second, as_json: options.Json = False) -> None:
    """Print the fields in which two protocols differ; `fsbench ls protocols` lists them all.

    Results of different protocols never share a column of a table.
    """
    from fsbench.api.listing import compare_protocols

    fields = compare_protocols(a, b)
    records = [field for field in fields if field["a"] != field["b"]]
    if records or as_json:
        rows = [tuple(record.values()) for record in records]
        console.emit(as_json, records, "protocols", ("field", a, b), rows)
    equal = len(fields) - len(records)
    console.log(f"{format_count(len(records), 'field')} differ, {equal} are equal")


@options.command("show")
def show(results: Results, as_json: options.Json = False) -> None:
    """Verify results against their records and print them; several models become columns."""
    from fsbench.results.verification import read_loaded

    loaded = [one for path in results for one in read_loaded(path)]
    print_results(
        [one.result for one in loaded], as_json=as_json, models=[one.model for one in loaded]
    )


@options.command("results merge")
def merge(parts: Parts, output: options.Output, as_json: options.Json = False) -> None:
    """Merge the parts of a sharded evaluation; equal to the results of one process."""
    from fsbench.results.assembly import merge as merge_results

    print_results(merge_results(parts, output), as_json=as_json)
    console.log(f"merged {format_count(len(parts), 'part')} into {output}")


def print_results(
    results: "Sequence[Result]", as_json: bool = False, models: Sequence[str] | None = None
) -> None:
    """Print one table per track, or a JSON list of records with `mean`."""
    from fsbench.core.tasks import by_track
    from fsbench.results import table

    if as_json:
        console.emit_json([table.result_as_json(result) for result in results])
        return
    tracks = by_track(result.column for result in results)
    tables = []
    for track, columns in tracks.items():
        chosen = [i for i, result in enumerate(results) if result.column in columns]
        names = models and [models[i] for i in chosen]
        title = "results" if len(tracks) == 1 else f"results {track.label}"
        tables.append(table.build_table([results[i] for i in chosen], names, title))
    console.show_tables(tables)
