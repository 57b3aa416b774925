"""Submit results to a leaderboard: `fsbench.submit`."""

from pathlib import Path
from tempfile import TemporaryDirectory

from fsbench.api.machine import progress_reporter
from fsbench.api.options import SubmitOptions
from fsbench.api.results import Results
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.options import takes_options
from fsbench.core.progress import format_count
from leaderboard.declaration import find_declaration, read_declaration
from leaderboard.rules.submission import check_submissions
from leaderboard.store import Board
from leaderboard.submission import Submission, read_submissions


@takes_options(SubmitOptions)
def submit(options: SubmitOptions) -> list[Submission]:
    """Check results and add one entry per recipe, with all of its seeds, to a board.

    Every rule is checked before anything is written; if one is broken, nothing is.

    Parameters
    ----------
    {options}

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
    if options.board is None:
        raise UsageError(
            "submit needs one place for the entries",
            fix="give --board DIR (with --dry-run to check only), or --to REPOSITORY",
        )
    with TemporaryDirectory() as temporary:
        if isinstance(options.results, Results):
            options.results.save(temporary)
        folder = Path(temporary if isinstance(options.results, Results) else options.results)
        source = options.declaration or find_declaration(folder)
        declared = read_declaration(source, options.name)
        target = Board.open(Path(options.board), new=True)
        submissions = [
            target.select_columns(submission)
            for submission in read_submissions(folder, declared, options.models, options.controls)
        ]
        if problems := check_submissions(submissions, target, options.replace):
            listed = "\n  ".join(map(str, problems))
            count = format_count(len(problems), "problem")
            raise ValidationFailed(f"{count}, nothing was written\n  {listed}")
        if not options.dry_run:
            key = Path(options.sign_with) if options.sign_with else None
            report = progress_reporter(options.progress)
            for sentence in target.add(submissions, options.replace, key):
                report.log(sentence)
    return submissions
