"""Renderings of boards and of results: one score frame as terminal tables, files and JSON.

A format of `fsbench report` is one file that defines `make(frames) -> str`; the file name is its
public name. Numbers, marks and caption are the same in all of them (frame.py).
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fsbench.core.registry import Registry

if TYPE_CHECKING:
    from leaderboard.render.frame import ScoreFrame

FORMATS: "Registry[Callable[[Sequence[ScoreFrame]], str]]" = Registry(
    "format",
    "leaderboard.render",
    lambda module: module.make,
    machinery=("figure", "frame", "methods", "notes", "stability", "terminal"),
)
