"""The site: one HTML file with template, styles, scripts and data, without further requests.

Only the page's own script runs: the security policy contains its hash and allows no request, frame,
form or inline handler, so a hostile name is shown as text.
"""

import base64
import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from fsbench.core.errors import UsageError
from fsbench.core.io import replacing
from fsbench.core.process import paused_collection
from fsbench.core.progress import SILENT, Reporter
from leaderboard.site.data import build_page_data
from leaderboard.site.packing import embed_json
from leaderboard.store import Board
from leaderboard.tables import rank_tracks

CSS = ("base", "frame", "table", "entry", "charts", "print", "scale")
JS = (
    "dom",
    "numbers",
    "data",
    "pairs",
    "charts",
    "columns",
    "table",
    "controls",
    "published",
    "entry",
    "compare",
    "panels",
    "methods",
    "main",
)
"""Scripts in the order of the page; they share one scope."""
INDEX = "index.html"
MAX_ROWS = 500
"""Maximum rows of the table for readers without scripts."""


def render_page(data: dict[str, Any]) -> str:
    """Return the HTML of a site; equal data gives equal text."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    home = files(__package__)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((home / "page.html.j2").read_text(encoding="utf8"))
    scripts = [(home / "js" / f"{name}.js").read_text(encoding="utf8") for name in JS]
    script = '\n"use strict";\n(() => {\n' + "\n".join(scripts) + "})();\n"
    style = join_styles(home)
    # only these two texts are allowed
    policy = (
        f"default-src 'none'; script-src {hash_source(script)}; style-src {hash_source(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return template.render(
        data=data,
        max_rows=MAX_ROWS,
        policy=policy,
        style=Markup(style),
        script=Markup(script),
        json=Markup(embed_json(data)),
    )


def join_styles(home: Traversable) -> str:
    """Return all style sheets."""
    sheets = [(home / "css" / f"{name}.css").read_text(encoding="utf8") for name in CSS]
    return f"\n{''.join(sheets)}"


def hash_source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def build_site(board: Path, site: Path, report: Reporter = SILENT) -> Path:
    """Read, verify and rank the board, write SITE/index.html, and return its path.

    A build that fails or is killed leaves the old page whole. Raises UsageError for a board or a
    site that is no folder, ValidationFailed for an entry that breaks a rule.
    """
    opened = Board.open(board)
    if site.exists() and not site.is_dir():
        raise UsageError(f"-o {site} is a file", fix="give a folder")
    with paused_collection():
        text = build_page(opened, report)
    with replacing(site / INDEX) as temporary:
        temporary.write_text(text, encoding="utf8")
    return site / INDEX


def build_page(board: Board, report: Reporter) -> str:
    """Return the HTML of a board; its entries are freed before garbage is looked for again."""
    entries = board.entries(report)
    tables = rank_tracks(board.file, entries)
    return render_page(build_page_data(board.file, entries, tables))
