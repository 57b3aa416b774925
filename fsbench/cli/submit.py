"""`fsbench submit` and `fsbench export`: hand results to a board, to the hub and to timm."""

import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from fsbench.cli import console, options
from fsbench.core.errors import UsageError


@options.command("submit")
def submit(
    results: Path = Argument(Path("results"), help="Results folder."),
    board: Path | None = Option(None, help="Folder of the leaderboard."),
    to: str | None = Option(
        None, help="Instead of --board: a clone or the git address of a board, for a pull request."
    ),
    init: bool = Option(
        False, "--init", help="Write a declaration to fill in, RESULTS/declaration.yaml, and stop."
    ),
    name: str | None = Option(None, help="Name of the entry, in place of the declared one."),
    declaration: Path | None = Option(
        None, help="YAML, JSON or TOML file in place of RESULTS/declaration.yaml."
    ),
    model: list[str] | None = Option(
        None, "-m", "--model", help="Submit only this model of the folder; repeatable."
    ),
    control: list[str] | None = Option(
        None, help="Model of the folder that each entry takes along as its control; repeatable."
    ),
    dry_run: bool = Option(False, "--dry-run", help="Check only; write nothing."),
    replace: bool = Option(False, "--replace", help="Replace an entry of the same name."),
    sign_with: Path | None = Option(
        None, help="SSH key that signs the entry; then no other key replaces it."
    ),
) -> None:
    """Check results and add one entry per recipe; list all problems and write nothing on any.

    The pretraining seeds of a recipe are one entry; with --replace a further seed joins it.

    --to commits the entries to a new branch of the board's repository and prints the command that
    pushes it, for a pull request.
    """
    from fsbench.api.submit import submit as submit_results

    models = options.split(model, "model")
    if init:
        from leaderboard.declaration import write_template

        typer.echo(f"wrote {write_template(results)}")
        console.log(f"fill in its empty keys, then: fsbench submit {results} --board DIR")
        return
    add = partial(
        submit_results,
        results,
        declaration=declaration,
        name=name,
        models=models,
        controls=options.split(control),
        dry_run=dry_run,
        replace=replace,
        sign_with=sign_with,
        progress=console.reporter(),
    )
    if to is not None and board is None and not dry_run:
        from leaderboard.repository import propose_entries

        clone, branch = propose_entries(to, lambda folder: [e.name for e in add(board=folder)])
        typer.echo(f"git -C {shlex.quote(str(clone))} push origin {branch}")
        console.log("push the branch, then open a pull request from it where the board is hosted")
        return
    if board is None or to is not None:
        raise UsageError(
            "submit needs one place for the entries",
            fix="give --board DIR (with --dry-run to check only), --to REPOSITORY, or --init",
        )
    entries = add(board=board)
    for entry in entries:
        if entry.left_out:
            columns = ", ".join(entry.left_out)
            console.log(f"{entry.name}: left out, no column of the board: {columns}")
    status = "ok, not written" if dry_run else "added"
    rows = [
        (entry.name, entry.model, entry.facts.weights_hash[:12], str(len(entry.loaded)), status)
        for entry in entries
    ]
    console.table(str(board), ("entry", "model", "weights", "results", "status"), rows)


@options.command("export")
def export(
    source: Annotated[str, Argument(help="Results folder, or a pretraining run (run:DIR).")],
    output: Path = Option(Path("export"), "-o", "--output", help="Folder of the model."),
    model: str | None = Option(None, "-m", "--model", help="Model, if the results are of several."),
    benchmark: str | None = Option(None, help="Data set of the benchmark on the hub, ORG/NAME."),
) -> None:
    """Write results for the Hugging Face hub, or a run as a folder that timm loads.

    Results: a section of README.md, the model card, and .eval_results/fsbench.yaml for a benchmark.

    A run: config.json, model.safetensors and a model card; timm's features are compared with the
    run's before the card is written. Export results to the same folder for the card's numbers.
    """
    from fsbench.api.export import export_results, export_run

    path = Path(source.removeprefix("run:"))
    is_run = source.startswith("run:") or (path / "run.json").is_file()
    if is_run:
        if model is not None or benchmark is not None:
            raise UsageError(
                "--model and --benchmark belong to results", fix="export these afterwards"
            )
        files = export_run(path, output, report=console.reporter())
    else:
        files = export_results(path, output, model=model, benchmark=benchmark)
    typer.echo("\n".join(map(str, files)))
