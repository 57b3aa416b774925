"""JSON: everything in the tables as data; fractions, null if unknown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from leaderboard.ranking.tiers import ALPHA
from leaderboard.reports.render import build_score_json, finite_or_none
from leaderboard.reports.table import (
    ReportRow,
    ReportScore,
    ReportTable,
    make_caption_title,
    write_caption,
)

SUFFIX = "json"


def make(tables: Sequence[ReportTable]) -> str:
    """Return a JSON list with one object per table."""
    return (
        json.dumps([build_table_json(table) for table in tables], indent=1, allow_nan=False) + "\n"
    )


def build_table_json(table: ReportTable) -> dict[str, Any]:
    return {
        "table": table.title,
        "track": table.track,
        "title": make_caption_title(table),
        "columns": list(table.columns),
        "control": table.control,
        "alpha": ALPHA,
        "notes": write_caption(table),
        "entries": [build_row_json(row) for row in table.rows],
    }


def build_row_json(row: ReportRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "tier": row.tier,
        "overall": row.overall and build_report_score_json(row.overall),
        "source_accuracy": row.source,
        "scores": {column: build_report_score_json(cell) for column, cell in row.cells.items()},
    }


def build_report_score_json(cell: ReportScore) -> dict[str, Any]:
    gap = cell.gap and {
        "gap": cell.gap.gap,
        "ci95": finite_or_none(cell.gap.ci95),
        "p_holm": cell.p,
        "n": cell.gap.n,
    }
    return {
        **build_score_json(cell.score),
        "best": cell.best,
        "over_control": gap,
        "flags": list(cell.flags),
    }
