"""Intake of submissions: read results and a declaration, check them, add entries to a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import Declaration
from leaderboard.board.board import Board
from leaderboard.submission.archive import open_submission
from leaderboard.submission.checks import check_submission
from leaderboard.submission.submission import (
    Submission,
    find_declaration,
    read_declaration,
    read_submissions,
)


def submit_results(
    results: Path,
    board: Path,
    declaration: Declaration | Mapping[str, Any],
    *,
    file: Path | None = None,
    models: Sequence[str] = (),
    dry_run: bool = False,
    replace: bool = False,
) -> list[Submission]:
    """Check results and add one entry per model; return the entries added.

    declaration: complete, or some fields, completed from `file` or from a declaration file in the
    results. Results of no column of the board are left out; with dry_run nothing is written.
    Raises ValidationFailed listing every problem; nothing is written then.
    """
    with open_submission(results) as folder:
        if not isinstance(declaration, Declaration):
            declaration = read_declaration(file or find_declaration(folder), declaration)
        target = Board.open(board)
        submissions = [
            target.select_columns(submission)
            for submission in read_submissions(folder, declaration, models)
        ]
        require_valid(submissions, target, replace)
        if not dry_run:
            target.add(submissions, replace)
    return submissions


def require_valid(submissions: Sequence[Submission], board: Board, replace: bool) -> None:
    """Raise ValidationFailed with all problems of all submissions."""
    problems = dict.fromkeys(
        problem
        for submission in submissions
        for problem in check_submission(submission, board, replace)
    )
    if problems:
        listed = "\n  ".join(map(str, problems))
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise ValidationFailed(f"{count}, nothing was written\n  {listed}")
