"""The downloads of a track, as leaderboard/downloads makes them."""

from __future__ import annotations

from leaderboard.reports import FORMATS
from leaderboard.reports._sheet import sheet
from leaderboard.site.source import Track

OFFERED = {"csv": "csv", "json": "json", "latex": "tex"}
"""Format -> suffix of the file."""


def downloads(track: Track) -> dict[str, str]:
    """Suffix -> text of the file."""
    sheets = [sheet(track.view)]
    return {suffix: FORMATS.load(name).make(sheets) for name, suffix in OFFERED.items()}
