"""A submission: a folder or archive of results with a declaration, checked, then put on a board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import Declaration
from leaderboard.board.board import Board
from leaderboard.submission.archive import open_submission
from leaderboard.submission.candidate import Candidate, read_submissions
from leaderboard.submission.checks import check_submission
from leaderboard.submission.declaration import find_declaration, read_declaration


def submit(
    results: Path,
    board: Path,
    declaration: Declaration | Mapping[str, Any],
    *,
    file: Path | None = None,
    models: Sequence[str] = (),
    dry_run: bool = False,
    replace: bool = False,
) -> list[Candidate]:
    """Check results and add one entry per model; returns what was, or would be, added.

    declaration: whole, or the fields given, completed from `file` or from the declaration that
    lies in the results. Results of no column of the board are left out. Raises ValidationFailed
    listing every problem, and then wrote nothing.
    """
    with open_submission(results) as folder:
        if not isinstance(declaration, Declaration):
            declaration = read_declaration(file or find_declaration(folder), declaration)
        target = Board.open(board)
        candidates = [
            target.relevant(each) for each in read_submissions(folder, declaration, models)
        ]
        check_all(candidates, target, replace)
        if not dry_run:
            target.add(candidates, replace)
    return candidates


def check_all(candidates: Sequence[Candidate], board: Board, replace: bool) -> None:
    """Raises ValidationFailed with all problems of all candidates."""
    found = [problem for each in candidates for problem in check_submission(each, board, replace)]
    problems = list(dict.fromkeys(found))
    if problems:
        listed = "\n  ".join(str(problem) for problem in problems)
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise ValidationFailed(f"{count}, nothing was written\n  {listed}")
