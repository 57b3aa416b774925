"""The site: an HTML file with template, styles, scripts and data, and the scores as files.

Only the page's own script runs: the security policy contains its hash and allows no request, frame,
form or inline handler, so a hostile name is shown as text.
"""

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import Any

from fsbench.core.errors import UsageError
from fsbench.core.io import write_atomic
from fsbench.core.progress import SILENT, Reporter
from leaderboard.render import FORMATS
from leaderboard.render.frame import make_frames
from leaderboard.site.data import build_page_data
from leaderboard.site.packing import embed_json
from leaderboard.store import Board
from leaderboard.tables import rank_tracks

CSS = ("base", "frame", "table", "entry", "scale")
"""Style sheets in the order of the page."""
INDEX = "index.html"
FILES = {"scores.csv": "csv", "scores.json": "json", "scores.tex": "latex"}
"""Files beside the page, which links to them, and their formats."""
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
    style = "\n" + "".join((home / "css" / f"{name}.css").read_text("utf8") for name in CSS)
    scripts = sorted((home / "js").iterdir(), key=lambda file: (file.name == "main.js", file.name))
    parts = "\n".join(file.read_text(encoding="utf8") for file in scripts)
    script = f'\n"use strict";\n(() => {{\n{parts}}})();\n'  # they share one scope, main.js runs
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


def hash_source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def build_site(board: Path, site: Path, report: Reporter = SILENT) -> Path:
    """Read, verify and rank the board, write SITE/index.html beside FILES, and return its path.

    A build that fails or is killed leaves the old page whole. Raises UsageError for a board or a
    site that is no folder, ValidationFailed for an entry that breaks a rule.
    """
    opened = Board.open(board)
    if site.exists() and not site.is_dir():
        raise UsageError(f"-o {site} is a file", fix="give a folder")
    entries = opened.entries(report)
    tables = rank_tracks(opened.file, entries)
    frames = make_frames(tables)
    texts = {name: FORMATS.load(shape)(frames) for name, shape in FILES.items()}
    texts[INDEX] = render_page(build_page_data(opened.file, entries, tables))
    for name, text in texts.items():
        write_atomic(site / name, text.encode())
    return site / INDEX
