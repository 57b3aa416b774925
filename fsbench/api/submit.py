"""Submit results to a leaderboard: `fsbench.submit`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fsbench.api.results import Results
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Declaration
from leaderboard.rules.submission import submit_results


@dataclass(frozen=True)
class AddedEntry:
    """An entry that was added to a board, or would be in a dry run.

    left_out: results that belong to no column of the board.
    """

    name: str
    model: str
    weights_hash: str
    n_results: int
    left_out: tuple[str, ...] = ()


def submit(
    results: str | Path | Results,
    board: str | Path,
    *,
    name: str | None = None,
    authors: str | None = None,
    link: str | None = None,
    license: str | None = None,  # noqa: A002
    pretraining_data: Sequence[str] | str | None = None,
    targets_seen: Sequence[str] | str | None = None,
    statement: str | None = None,
    declaration: str | Path | Declaration | None = None,
    models: Sequence[str] = (),
    controls: Sequence[str] = (),
    dry_run: bool = False,
    replace: bool = False,
    sign_with: str | Path | None = None,
    progress: Reporter = SILENT,
) -> list[AddedEntry]:
    """Check results and add one entry per recipe, with all of its seeds, to a board.

    Every rule is checked before anything is written; if one is broken, nothing is.

    Parameters
    ----------
    results : str, Path or Results
        A results folder, a .zip or .tar.gz of one, or the results of `fsbench.evaluate`.
    board : str or Path
        The folder of the board; it is made if it does not exist.
    name, authors, link, license, statement : str, optional
        The declaration: name of the entry, who made it, code or paper, license of the weights, how
        the numbers were obtained. Each beats the same field of `declaration`.
    pretraining_data, targets_seen : sequence of str, or "none", optional
        Data sets of the pretraining, and targets that were seen in it.
    declaration : str, Path or Declaration, optional
        A JSON, TOML or YAML file with these fields; by default the one that lies in `results`.
    models : sequence of str
        Submit only these models of the folder; all if empty.
    controls : sequence of str
        Models of the folder that each entry takes along as its own control.
    dry_run : bool
        Check only.
    replace : bool
        Replace an entry of the same name; a signed one needs the key that signed it.
    sign_with : str or Path, optional
        SSH key that signs the entry, so that no other key replaces it; needs ssh-keygen.
    progress : Reporter
        Receives which columns and seeds came and went of an entry that is replaced.

    Returns
    -------
    list of AddedEntry
        What was added, or would be in a dry run.

    Raises
    ------
    UsageError
        If the declaration lacks a field.
    ValidationFailed
        If a rule is broken; the message lists every problem, and nothing was written.

    Examples
    --------
    >>> import fsbench
    >>> (entry,) = fsbench.submit(
    ...     "results/seal", "board", name="seal", authors="A. Author",
    ...     link="https://example.org/code", license="MIT", pretraining_data=["tinyimagenet"],
    ...     targets_seen="none", statement="Evaluated with fsbench's defaults.",
    ... )
    >>> entry.name
    'seal'
    """
    fields = {
        "name": name,
        "authors": authors,
        "link": link,
        "license": license,
        "pretraining_data": pretraining_data,
        "targets_seen": targets_seen,
        "statement": statement,
    }
    stated: Mapping[str, Any] | Declaration = fields
    file: Path | None = None
    if isinstance(declaration, Declaration):
        changes = {field: value for field, value in fields.items() if value is not None}
        stated = Declaration.model_validate({**declaration.model_dump(), **changes})
    elif declaration is not None:
        file = Path(declaration)
    with TemporaryDirectory() as temporary:
        if not isinstance(results, str | Path):
            results.save(temporary)
            results = temporary
        added = submit_results(
            Path(results),
            Path(board),
            stated,
            file=file,
            models=models,
            controls=controls,
            dry_run=dry_run,
            replace=replace,
            sign_with=None if sign_with is None else Path(sign_with),
            report=progress,
        )
    return [
        AddedEntry(c.name, c.model, c.facts.weights_hash, len(c.cells), tuple(c.left_out))
        for c in added
    ]
