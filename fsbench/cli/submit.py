"""`fsbench submit` and `fsbench export`: hand results to a board, to the hub and to timm."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from fsbench.api.options import SubmitOptions
from fsbench.cli import console, options
from fsbench.core.errors import UsageError


@options.command("submit", SubmitOptions)
def submit(
    chosen: SubmitOptions,
    to: str | None = Option(
        None, help="Instead of --board: a clone or the git address of a board, for a pull request."
    ),
    init: bool = Option(
        False, "--init", help="Write a declaration to fill in, RESULTS/declaration.yaml, and stop."
    ),
) -> None:
    """Check results and add one entry per recipe; list all problems and write nothing on any.

    The pretraining seeds of a recipe are one entry; with --replace a further seed joins it.

    --to commits the entries to a new branch of the board's repository and prints the command that
    pushes it, for a pull request.
    """
    from fsbench.api.submit import submit as submit_results

    values = {**vars(chosen), "progress": console.reporter()}
    if init:
        from leaderboard.declaration import write_template

        typer.echo(f"wrote {write_template(Path(values['results']))}")
        console.log(f"fill in its empty keys, then: fsbench submit {chosen.results} --board DIR")
        return
    if to is not None and chosen.board is None and not chosen.dry_run:
        from leaderboard.repository import propose_entries

        clone, branch = propose_entries(
            to, lambda board: [e.name for e in submit_results(**{**values, "board": board})]
        )
        typer.echo(f"git -C {shlex.quote(str(clone))} push origin {branch}")
        console.log("push the branch, then open a pull request from it where the board is hosted")
        return
    entries = submit_results(**values | {"board": None if to else chosen.board})
    for entry in entries:
        if entry.left_out:
            columns = ", ".join(entry.left_out)
            console.log(f"{entry.name}: left out, no column of the board: {columns}")
    status = "ok, not written" if chosen.dry_run else "added"
    rows = [
        (entry.name, entry.model, entry.facts.weights_hash[:12], len(entry.loaded), status)
        for entry in entries
    ]
    titles = ("entry", "model", "weights", "results", "status")
    console.table(str(chosen.board), titles, rows)


@options.command("export")
def export(
    source: Annotated[str, Argument(help="Results folder, or a pretraining run (run:DIR).")],
    output: Path = Option(Path("export"), "-o", "--output", help="Folder of the model."),
    benchmark: str | None = Option(None, help="Data set of the benchmark on the hub, ORG/NAME."),
) -> None:
    """Write results for the Hugging Face hub, or a run as a folder that timm loads.

    Results: a section of README.md, the model card, and .eval_results/fsbench.yaml for a benchmark.

    A run: config.json, model.safetensors and a model card; timm's features are compared with the
    run's before the card is written. Export results to the same folder for the card's numbers.
    """
    from fsbench.api.export import export_results, export_run

    path = Path(source.removeprefix("run:"))
    if source.startswith("run:") or (path / "run.json").is_file():
        if benchmark is not None:
            raise UsageError("--benchmark belongs to results", fix="export these afterwards")
        files = export_run(path, output, report=console.reporter())
    else:
        files = export_results(path, output, benchmark=benchmark)
    typer.echo("\n".join(map(str, files)))
