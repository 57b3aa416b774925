"""JSON: everything in the tables as data; fractions, null if unknown."""

import json
from collections.abc import Sequence
from typing import Any

from leaderboard.ranking.tiers import ALPHA
from leaderboard.reports.render import build_gap_json, build_score_json
from leaderboard.reports.table import (
    ReportRow,
    ReportScore,
    ReportTable,
    make_caption_title,
    write_caption,
)

SUFFIX = "json"


def make(tables: Sequence[ReportTable]) -> str:
    """Return a JSON list with one object per table, and in it one line per entry."""
    return f"[{', '.join(map(make_table_json, tables))}]\n"


def make_table_json(table: ReportTable) -> str:
    head = json.dumps(build_head_json(table), indent=1)
    rows = [build_row_json(row) for row in table.rows if not row.is_seed]
    lines = ",\n  ".join(json.dumps(row, allow_nan=False) for row in rows)
    return f'{head.removesuffix("}").rstrip()},\n "entries": [\n  {lines}\n ]\n}}'


def build_head_json(table: ReportTable) -> dict[str, Any]:
    return {
        "table": table.title,
        "track": table.track,
        "title": make_caption_title(table),
        "columns": list(table.columns),
        "control": table.control,
        "alpha": ALPHA,
        "notes": write_caption(table),
    }


def build_row_json(row: ReportRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "tier": row.tier,
        "overall": row.overall and build_report_score_json(row.overall),
        "source_accuracy": row.source,
        "scores": {c: build_report_score_json(cell) for c, cell in row.cells.items()},
        **({"seeds": [build_row_json(seed) for seed in row.seeds.values()]} if row.seeds else {}),
    }


def build_report_score_json(cell: ReportScore) -> dict[str, Any]:
    return {
        **build_score_json(cell.score),
        "best": cell.best,
        "over_control": build_gap_json(cell.gap, cell.p),
        "flags": list(cell.flags),
    }
