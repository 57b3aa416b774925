"""JSON: everything in the tables as data, in fractions, null where nothing is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from leaderboard.ranking.rank import ALPHA
from leaderboard.reports._caption import sentences, title
from leaderboard.reports._sheet import Cell, Row, Sheet
from leaderboard.reports.render import finite, score_json

SUFFIX = "json"


def make(sheets: Sequence[Sheet]) -> str:
    """A list, one object a table."""
    return json.dumps([table(sheet) for sheet in sheets], indent=1, allow_nan=False) + "\n"


def table(sheet: Sheet) -> dict[str, Any]:
    return {
        "table": sheet.title,
        "track": sheet.track,
        "title": title(sheet),
        "columns": list(sheet.columns),
        "control": sheet.control,
        "alpha": ALPHA,
        "notes": sentences(sheet),
        "entries": [entry(row) for row in sheet.rows],
    }


def entry(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "tier": row.tier,
        "overall": row.overall and number(row.overall),
        "source_accuracy": row.source,
        "scores": {column: number(cell) for column, cell in row.cells.items()},
    }


def number(cell: Cell) -> dict[str, Any]:
    gap = cell.gap and {
        "gap": cell.gap.gap,
        "ci95": finite(cell.gap.ci95),
        "p_holm": cell.p,
        "n": cell.gap.n,
    }
    return {
        **score_json(cell.score),
        "best": cell.best,
        "over_control": gap,
        "flags": list(cell.flags),
    }
