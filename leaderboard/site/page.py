"""The page as text: template, styles, scripts and data in one file that asks for nothing else.

Nothing runs but the page's own script: the policy names its hash, and no request, frame, form or
inline handler is allowed, so that a hostile name can at most be read.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fsbench.core.plotting import DARK, LIGHT, css_variables
from leaderboard.site import palette
from leaderboard.site.packing import embedded

CSS = ("base", "frame", "table", "entry", "charts", "print")
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
    "download",
    "main",
)
"""In the order in which they stand in the page; one scope."""
MAX_ROWS = 500
"""Of the table for readers without scripts."""


def render(data: dict[str, Any]) -> str:
    """HTML of a site; equal data gives equal text."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    home = files(__package__)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((home / "page.html.j2").read_text(encoding="utf8"))
    style, script = styles(home), scripts(home)
    return template.render(
        data=data,
        max_rows=MAX_ROWS,
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        json=Markup(embedded(data)),
    )


def styles(home: Traversable) -> str:
    """Return all style sheets, and the colours of cells and charts for light and dark pages."""
    light = palette.variables(palette.LIGHT) + css_variables(LIGHT)
    dark = palette.variables(palette.DARK) + css_variables(DARK)
    scale = (
        f":root{{{light}}}\n@media (prefers-color-scheme:dark){{:root:not([data-theme=light])"
        f"{{{dark}}}}}\n:root[data-theme=dark]{{{dark}}}\n"
    )
    steps = "".join(
        f".q{i}{{background:var(--q{i});color:var(--t{i})}}\n" for i in range(palette.STEPS)
    )
    sheets = [(home / "css" / f"{name}.css").read_text(encoding="utf8") for name in CSS]
    return "\n" + "".join([*sheets, scale, steps])


def scripts(home: Traversable) -> str:
    """All scripts in one scope of their own."""
    parts = [(home / "js" / f"{name}.js").read_text(encoding="utf8") for name in JS]
    return '\n"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy: these two texts, and nothing else."""
    return (
        f"default-src 'none'; script-src {source(script)}; style-src {source(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode("utf8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"
