"""`fsbench submit`: check results and add them to a board."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fsbench.cli import console, options


def submit(
    results: Annotated[Path, Argument(help="Results folder, or a .zip or .tar.gz of one.")],
    board: options.Board,
    name: str | None = Option(None, help="Name of the entry."),
    authors: str | None = Option(None, help="Authors of the entry."),
    link: str | None = Option(None, help="Link to code or paper."),
    license: str | None = Option(None, "--license", "--licence", help="Licence of the weights."),  # noqa: A002
    pretraining_data: list[str] | None = Option(
        None, help="Data sets of the pretraining, or none; repeatable."
    ),
    targets_seen: list[str] | None = Option(
        None, help="Targets seen in pretraining, or none; repeatable."
    ),
    statement: str | None = Option(None, help="How the results were obtained, in one sentence."),
    declaration: Path | None = Option(
        None, help="JSON, TOML or YAML file with these fields; options override it."
    ),
    model: list[str] | None = Option(
        None, "-m", "--model", help="Submit only this model of the folder; repeatable."
    ),
    dry_run: bool = Option(False, "--dry-run", help="Check only; write nothing."),
    replace: bool = Option(False, "--replace", help="Replace an entry of the same name."),
    sign_with: Path | None = Option(
        None, help="SSH key that signs the entry; then no other key replaces it."
    ),
) -> None:
    """Check results and add one entry per model; list all problems and write nothing on any."""
    from fsbench.api.submit import submit as submit_results

    entries = submit_results(
        results,
        board,
        name=name,
        authors=authors,
        link=link,
        license=license,
        pretraining_data=options.split(pretraining_data) or None,
        targets_seen=options.split(targets_seen) or None,
        statement=statement,
        declaration=declaration,
        models=options.split(model),
        dry_run=dry_run,
        replace=replace,
        sign_with=sign_with,
    )
    for entry in entries:
        if entry.left_out:
            columns = ", ".join(entry.left_out)
            console.log(f"{entry.name}: left out, no column of the board: {columns}")
    status = "ok, not written" if dry_run else "added"
    rows = [
        (entry.name, entry.model, entry.weights_hash[:12], str(entry.n_results), status)
        for entry in entries
    ]
    console.table(str(board), ("entry", "model", "weights", "results", "status"), rows)
