"""HTML: one self-contained page, light or dark by the reader's system."""

from collections.abc import Sequence
from importlib.resources import files

from leaderboard.reports import table as caption
from leaderboard.reports.render import format_mean_interval, to_percent
from leaderboard.reports.table import ReportTable

SUFFIX = "html"
TEMPLATE = "_report.html.j2"


def make(tables: Sequence[ReportTable]) -> str:
    """Return one HTML page; every text is escaped."""
    from jinja2 import Environment, StrictUndefined

    source = files("leaderboard.reports").joinpath(TEMPLATE).read_text(encoding="utf8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source).render(
        sheets=tables, caption=caption, interval=format_mean_interval, percent=to_percent
    )
