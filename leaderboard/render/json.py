"""JSON: everything in the frames as data; fractions, null if unknown."""

import json
from collections.abc import Sequence
from typing import Any

from fsbench.core.statistics import Paired
from leaderboard.render.frame import SOURCE, FrameRow, FrameScore, ScoreFrame
from leaderboard.render.notes import TIER_NOTE, finite_or_none
from leaderboard.tables import list_self_reported


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return a JSON list with one object per table, and in it one line per entry."""
    return f"[{', '.join(map(make_table_json, frames))}]\n"


def make_table_json(frame: ScoreFrame) -> str:
    """Return one table with a line per entry."""
    content = build_table_json(frame)
    lines = [json.dumps(entry, allow_nan=False) for entry in content.pop("entries")]
    head = json.dumps(content, indent=1).removesuffix("}").rstrip()
    body = ",\n  ".join(lines)
    return f'{head},\n "entries": [\n  {body}\n ]\n}}'


def build_table_json(frame: ScoreFrame) -> dict[str, Any]:
    """Return a table with its rows."""
    table = frame.table
    return {
        "board": table.name,
        "official": table.official,
        "track": table.track and table.track.model_dump(mode="json"),
        "title": frame.title,
        "columns": list(table.ranking.columns),
        "control": frame.control,
        "alpha": table.ranking.alpha,
        "rule": TIER_NOTE,
        "notes": frame.write_caption(),
        "entries": [build_row_json(frame, row) for row in frame.rows],
    }


def build_row_json(frame: ScoreFrame, row: FrameRow) -> dict[str, Any]:
    """Return an entry with its scores and seeds."""
    table, entry = frame.table, row.entry
    scores = {column: build_score(value) for column, value in row.scores.items()}
    for column, second in table.best_on_test.get(entry.name, {}).items():
        scores[column]["best_on_test"] = second.mean
    source = scores.pop(SOURCE, None)
    content = {
        "name": entry.name,
        "tier": entry.tier,
        "reason": entry.reason or None,
        "overall": entry.overall,
        "source_accuracy": source and source["mean"],
        "scores": scores,
    }
    if row.is_seed:
        return content
    return content | {
        "missing": list(entry.missing),
        "behind_leader": build_gap(entry.behind, entry.p),
        "covers": entry.covers,
        "flags": list(table.flags[entry.name]),
        "self_reported": list_self_reported(table, entry.name),
        "link": table.links[entry.name],
        "seeds": [{"seed": n, **build_row_json(frame, seed)} for n, seed in row.seeds.items()],
    }


def build_score(value: FrameScore) -> dict[str, Any]:
    mean, ci95, n = value.score
    return {
        "mean": mean,
        "ci95": finite_or_none(ci95),
        "n": n,
        "best": value.best,
        "over_control": build_gap(value.gap, value.p),
        "flags": list(value.flags),
    }


def build_gap(gap: Paired | None, p: float | None) -> dict[str, Any] | None:
    """Return a gap as data. p: of that gap, adjusted for all comparisons of its family."""
    if gap is None:
        return None
    return {"gap": gap.gap, "ci95": finite_or_none(gap.ci95), "p_adjusted": p, "n": gap.n}
