"""HTML: one self-contained page, light or dark by the reader's system."""

from collections.abc import Sequence
from importlib.resources import files

from leaderboard.render.frame import ScoreFrame
from leaderboard.render.notes import Best
from leaderboard.render.terminal import make_score_table


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return one HTML page; every text is escaped."""
    from jinja2 import Environment, StrictUndefined

    source = files("leaderboard.render").joinpath("_report.html.j2").read_text(encoding="utf8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.tests["best"] = lambda text: isinstance(text, Best)
    tables = map(make_score_table, frames)
    return environment.from_string(source).render(tables=[table.complete for table in tables])
