"""HTML: one self-contained page, light or dark by the reader's system."""

from collections.abc import Sequence
from importlib.resources import files

from leaderboard.render.frame import ScoreFrame, group_labels
from leaderboard.render.notes import SEED_MARK, format_mean_interval, to_percent


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return one HTML page; every text is escaped."""
    from jinja2 import Environment, StrictUndefined

    source = files("leaderboard.render").joinpath("_report.html.j2").read_text(encoding="utf8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source).render(
        frames=frames,
        group=group_labels,
        interval=format_mean_interval,
        percent=to_percent,
        seed_mark=SEED_MARK,
    )
