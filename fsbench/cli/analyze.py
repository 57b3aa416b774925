"""`fsbench analyze`: what networks look like inside, several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fsbench.cli import console, options

if TYPE_CHECKING:
    from fsbench.core.findings import Analysis

What = Annotated[
    list[str], typer.Option("--what", help="Analyses (fsbench ls analyses) or all; commas.")
]
Source = Annotated[
    str | None,
    typer.Option("--source", help="Images to look at: default what a run was trained on."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting: hessian.top=10; repeatable."),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", "-L", min=1, help="Images of an analysis at most; recorded."),
]
PICTURES = "analyses"


def register(app: typer.Typer) -> None:
    app.command("analyze")(analyze)


def analyze(
    model: options.Model,
    what: What,
    source: Source = None,
    data: options.Data = None,
    assignments: Set = None,
    limit: Limit = None,
    arch: options.Arch = None,
    random_init: options.RandomInit = None,
    output: options.Output = Path("results"),
    device: options.Device = "auto",
    threads: options.Threads = None,
    cache: options.Cache = None,
    overwrite: options.Overwrite = False,
    yes: options.Yes = False,
    as_json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Look inside one or more backbones: a record of each beside its results, one picture each."""
    from fsbench.api import analyze as api
    from fsbench.api.machine import Machine, cache_folder
    from fsbench.api.request import Models

    names = options.split(what)
    wanted = api.choose_analyses(names, api.parse_analysis_settings(assignments or ()), limit)
    found = api.analyze(
        Models(tuple(dict.fromkeys(options.split(model))), arch, random_init),
        wanted,
        source=source,
        roots=options.split(data),
        output=output,
        machine=Machine(device=device, threads=threads, cache=cache_folder(cache)),
        lenient=api.ALL in names,
        overwrite=overwrite,
        yes=yes,
        report=console.reporter(),
    )
    draw(found, output / PICTURES)
    show(found, as_json)


def draw(found: Sequence[Analysis], folder: Path) -> None:
    """Write a figure for each analysis, with all models in it."""
    from fsbench.api.analyze import analysis_panels
    from fsbench.core.panels import draw_panels
    from fsbench.core.plotting import write_figure

    for name in dict.fromkeys(each.question.what for each in found):
        drawn = analysis_panels([each for each in found if each.question.what == name])
        write_figure(draw_panels(drawn, ""), folder / f"{name}.png")
        console.log(f"picture: {folder / f'{name}.png'}")


def show(found: Sequence[Analysis], as_json: bool) -> None:
    """A row a number, a column a model; or the records."""
    from fsbench.api.analyze import analysis_table

    if as_json:
        console.emit_json([each.model_dump(mode="json") for each in found])
        return
    console.table("analyses", *analysis_table(found))
