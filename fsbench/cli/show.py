"""`fsbench ls`, `show` and `results merge`: what there is, and results."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options
from fsbench.core.progress import format_count

if TYPE_CHECKING:
    from fsbench.core.schema import Result

Results = Annotated[list[Path], typer.Argument(help="Results folders or files.")]
Parts = Annotated[list[Path], typer.Argument(help="Results folders of the parts.")]
Confused = Annotated[
    bool, typer.Option("--confusion", help="Print which classes are taken for which, per result.")
]
What = Annotated[str, typer.Argument(help="What to list; without it, what can be listed.")]
Text = Annotated[str, typer.Argument(help="Only names that contain this, e.g. toy or resnet.")]


@options.command("ls")
def ls(what: What = "", text: Text = "", as_json: options.Json = False) -> None:
    """List methods, recipes, data sets, protocols, heads, timm's models and more."""
    from fsbench.api.listing import BRIEF, rows

    listing = rows(what, text)
    if not listing and not as_json:
        console.log(f"no {what}" + (f" with '{text}' in the name" if text else ""))
        return
    columns = BRIEF.get(what, tuple(listing[0]) if listing else ())
    body = [[row[name] for name in columns] for row in listing]
    title = f"{what} {text}".strip() or "fsbench ls WHAT [TEXT]"
    console.emit(as_json, listing, title, columns, body)


@options.command("show")
def show(results: Results, confusion: Confused = False, as_json: options.Json = False) -> None:
    """Verify results against their records and print them; several models become columns."""
    from fsbench.results.verification import read_loaded

    loaded = [one for path in results for one in read_loaded(path)]
    if confusion:
        from fsbench.results.confusion import count_confusions

        confusions = count_confusions(loaded)
        console.log(f"{len(confusions)} of {format_count(len(loaded), 'result')} hold predictions")
        if as_json:
            console.emit_json([confusion.to_json() for confusion in confusions])
        else:
            console.show_tables([table for c in confusions for table in c.tables()])
        return
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
    from fsbench.results import table

    if as_json:
        console.emit_json([table.result_as_json(result) for result in results])
    else:
        console.show_tables(table.build_tables(results, models))
