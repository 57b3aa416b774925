"""Submit results to a leaderboard: `fsbench.submit`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fsbench.api.results import Results
from fsbench.core.errors import ValidationFailed
from fsbench.core.options import expand_path
from fsbench.core.progress import SILENT, Reporter, format_count
from fsbench.core.schema import Declaration
from leaderboard.declaration import find_declaration, read_declaration
from leaderboard.rules.submission import check_submissions
from leaderboard.store import Board
from leaderboard.submission import Submission, read_submissions


def submit(
    results: str | Path | Results,
    board: str | Path,
    declaration: str | Path | Declaration | Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    models: Sequence[str] = (),
    controls: Sequence[str] = (),
    dry_run: bool = False,
    replace: bool = False,
    sign_with: str | Path | None = None,
    progress: Reporter = SILENT,
) -> list[Submission]:
    """Check results and add one entry per recipe, with all of its seeds, to a board.

    Every rule is checked before anything is written; if one is broken, nothing is.

    Parameters
    ----------
    results : str, Path or Results
        A results folder, or the results of `fsbench.evaluate`.
    board : str or Path
        The folder of the board; it is made if it does not exist.
    declaration : str, Path, Declaration or mapping, optional
        What an entry declares (`fsbench.core.schema.Declaration`), or a JSON, TOML or YAML file
        with these fields; by default declaration.yaml in `results`. For data sets of the
        pretraining, and targets that were seen in it, the word none stands for no data set.
    name : str, optional
        Name of the entry, in place of the declared one.
    models, controls : sequence of str
        Models of the folder to submit, all if empty, and those that each entry takes along as its
        own control.
    dry_run, replace : bool
        Check only; replace an entry of the same name, if signed then by the same key.
    sign_with : str or Path, optional
        SSH key that signs the entry, so that no other key replaces it; needs ssh-keygen.
    progress : Reporter
        Receives which columns and seeds came and went of an entry that is replaced.

    It returns the entries that were added, or would be in a dry run: `name`, `model`, `facts`,
    results (`loaded`), and `left_out`, the names of results that the board has no column for.
    UsageError: the declaration lacks a field; ValidationFailed: a rule is broken, and the message
    lists every problem.

    Examples
    --------
    >>> import fsbench
    >>> facts = {"authors": "A. Author", "link": "https://example.org/code", "license": "MIT"}
    >>> data = {"pretraining_data": ["tinyimagenet"], "targets_seen": "none"}
    >>> (entry,) = fsbench.submit(
    ...     "results/seal", "board", {**facts, **data, "statement": "Defaults."}, name="seal"
    ... )
    >>> entry.name
    'seal'
    """
    with TemporaryDirectory() as temporary:
        if isinstance(results, Results):
            results.save(temporary)
            results = temporary
        folder = expand_path(results)
        stated = read_declaration(declaration or find_declaration(folder), name)
        target = Board.open(expand_path(board), new=True)
        submissions = [
            target.select_columns(submission)
            for submission in read_submissions(folder, stated, models, controls)
        ]
        if problems := check_submissions(submissions, target, replace):
            listed = "\n  ".join(map(str, problems))
            count = format_count(len(problems), "problem")
            raise ValidationFailed(f"{count}, nothing was written\n  {listed}")
        if not dry_run:
            key = None if sign_with is None else expand_path(sign_with)
            for sentence in target.add(submissions, replace, key):
                progress.log(sentence)
    return submissions
