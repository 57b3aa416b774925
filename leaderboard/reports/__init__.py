"""A board or one's own results as files to download: CSV, JSON, HTML, LaTeX, Markdown.

A format is one file that defines `SUFFIX` and `make(sheets) -> str`; the file name is its public
name. What stands in a table, and which words go with it, is decided once, in _sheet and _caption.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from fsbench.core.registry import Registry

if TYPE_CHECKING:
    from leaderboard.reports.table import ReportTable


@dataclass(frozen=True)
class ReportFormat:
    """suffix: of the file, without a dot; make: the text of such a file."""

    suffix: str
    make: Callable[[Sequence[ReportTable]], str]


def load_format(module: ModuleType) -> ReportFormat:
    return ReportFormat(module.SUFFIX, module.make)


FORMATS: Registry[ReportFormat] = Registry(
    "format", "leaderboard.reports", load_format, machinery=("render", "report", "table")
)
