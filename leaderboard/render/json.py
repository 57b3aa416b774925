"""JSON: everything in the frames as data; fractions, null if unknown."""

import json
from collections.abc import Sequence
from typing import Any

from leaderboard.ranking.tiers import ALPHA, RankedEntry
from leaderboard.render.frame import SOURCE, FrameScore, ScoreFrame
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
        "alpha": ALPHA,
        "rule": TIER_NOTE,
        "notes": frame.write_caption(),
        "entries": [build_entry_json(frame, entry) for entry in table.ranking.entries],
    }


def build_entry_json(frame: ScoreFrame, entry: RankedEntry) -> dict[str, Any]:
    """Return an entry with its scores and seeds."""
    table, behind = frame.table, entry.behind
    seeds = table.seeds.get(entry.name, {})
    return {
        **build_scores_json(frame, entry),
        "reason": entry.reason or None,
        "missing": list(entry.missing),
        "behind_leader": behind and build_gap_json(behind.gap, behind.ci95, entry.p),
        "covers": entry.covers,
        "flags": list(table.flags[entry.name]),
        "self_reported": list_self_reported(table, entry.name),
        "link": table.links.get(entry.name, ""),
        "seeds": [{"seed": n, **build_scores_json(frame, seed)} for n, seed in seeds.items()],
    }


def build_scores_json(frame: ScoreFrame, entry: RankedEntry) -> dict[str, Any]:
    """Return the scores of an entry or a seed."""
    scores = dict(frame.scores[entry.name])
    source = scores.pop(SOURCE, None)
    built = {column: build_score_json(score) for column, score in scores.items()}
    for column, second in frame.table.best_on_test.get(entry.name, {}).items():
        built[column]["best_on_test"] = second
    return {
        "name": entry.name,
        "tier": entry.tier,
        "overall": entry.overall,
        "source_accuracy": source and source.mean,
        "scores": built,
    }


def build_score_json(score: FrameScore) -> dict[str, Any]:
    gap = build_gap_json(score.gap, score.gap_ci95, score.p)
    return {
        "mean": score.mean,
        "ci95": finite_or_none(score.ci95),
        "n": score.n,
        "best": score.best,
        "over_control": gap if score.control else None,
        "flags": list(score.flags),
    }


def build_gap_json(gap: float, ci95: float, p: float | None) -> dict[str, Any]:
    """Return a gap as data. p: of that gap, adjusted for all comparisons of its family."""
    return {"gap": gap, "ci95": finite_or_none(ci95), "p_adjusted": p}
