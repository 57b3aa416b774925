"""Reports: tables of a board or of results as CSV, JSON, HTML, LaTeX or Markdown.

A format is one file that defines `SUFFIX` and `make(tables) -> str`; the file name is its public
name. The content of a table and its caption are the same in all formats (table.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fsbench.core.registry import Registry

if TYPE_CHECKING:
    from leaderboard.reports.table import ReportTable


@dataclass(frozen=True)
class ReportFormat:
    """A file format. suffix: without a dot; make: returns the text of a file."""

    suffix: str
    make: "Callable[[Sequence[ReportTable]], str]"


FORMATS: Registry[ReportFormat] = Registry(
    "format",
    "leaderboard.reports",
    lambda module: ReportFormat(module.SUFFIX, module.make),
    machinery=("render", "report", "table"),
)
