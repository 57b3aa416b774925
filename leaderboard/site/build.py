"""Writing the site: one file, by rename; what else lies in the folder stays."""

from __future__ import annotations

from pathlib import Path

from fsbench.core.errors import UsageError
from fsbench.core.io import replacing
from fsbench.core.progress import SILENT, Reporter
from leaderboard.board.board import Board
from leaderboard.site import data, page, source

INDEX = "index.html"


def build(board: Path, site: Path, cache: Path | None = None, report: Reporter = SILENT) -> Path:
    """Read, verify and rank the board, then write SITE/index.html; returns its path.

    A build that fails or is killed leaves the old page whole. Raises UsageError for a board or a
    site that is no folder, ValidationFailed for an entry that breaks a rule.
    """
    Board.existing(board)
    if site.exists() and not site.is_dir():
        raise UsageError(f"-o {site} is a file", fix="give a folder")
    text = page.render(data.of_board(source.read(board, cache, report)))
    with replacing(site / INDEX) as temporary:
        temporary.write_text(text, encoding="utf8")
    return site / INDEX
