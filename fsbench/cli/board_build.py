"""`fsbench leaderboard build`: a board as one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsbench.cli import console, options
from fsbench.cli.leaderboard import group

Site = Annotated[Path, typer.Option("-o", "--output", help="Folder of the site.")]


def register(app: typer.Typer) -> None:
    group(app).command("build")(build)


def build(board: options.Board, site: Site, cache: options.Cache = None) -> None:
    """Verify and rank a board and write it as one page that opens from disk, SITE/index.html."""
    from fsbench.core.folders import cache_folder
    from leaderboard.site.page import build_site

    typer.echo(build_site(board, site, cache_folder(cache), console.reporter()))
