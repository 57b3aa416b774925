"""JSON: everything in the frames as data; fractions, null if unknown."""

import json
from collections.abc import Sequence
from typing import Any

from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns
from leaderboard.ranking.tiers import ALPHA, RankedEntry
from leaderboard.render.frame import SOURCE, ScoreFrame
from leaderboard.render.notes import TIER_NOTE
from leaderboard.tables import OVERALL, BoardTable, finite_or_none, unite


def make(frames: Sequence[ScoreFrame]) -> str:
    """Return a JSON list with one object per table."""
    return json.dumps(list(map(build_table_json, frames)), allow_nan=False) + "\n"


def build_table_json(frame: ScoreFrame) -> dict[str, Any]:
    """Return a table with its entries; lists of an entry are in the order of the columns."""
    table = frame.table
    return {
        "board": table.name,
        "official": table.official,
        "track": table.track and table.track.model_dump(mode="json"),
        "title": frame.title,
        "columns": build_columns_json(table),
        "control": frame.control,
        "alpha": ALPHA,
        "rule": TIER_NOTE,
        "notes": frame.write_caption(),
        "entries": [build_entry_json(frame, entry) for entry in table.ranking.entries],
        "published": [entry.model_dump(mode="json") for entry in table.published],
    }


def build_columns_json(table: BoardTable) -> list[dict[str, Any]]:
    """Return the task of each column, and the hashes that all of its results share."""
    by_row = (row.results.items() for row in table.rows.values())
    results = {column: first for of_row in by_row for column, (first, *_) in of_row}
    columns = table.ranking.columns
    built = []
    for column, label in zip(columns, shorten_columns(columns)[0], strict=True):
        identity, result = ColumnId.parse(column), results.get(column)
        task = identity.task
        built.append(
            {
                "name": column,
                "label": label,
                "dataset": task.dataset,
                "head": identity.adaptation,
                "n_way": task.n_way if task.n_shot else None,
                "n_shot": task.n_shot,
                "images": result and sum(result.dataset.class_counts),
                "spec_digest": result and result.spec_digest,
                "fingerprint": result and result.dataset.identity,
                "manifest_hash": result and result.manifest_hash,
            }
        )
    return built


def build_entry_json(frame: ScoreFrame, entry: RankedEntry) -> dict[str, Any]:
    """Return an entry with its scores and seeds."""
    table, behind = frame.table, entry.behind
    row, seeds = table.rows[entry.name], table.seeds.get(entry.name, {})
    return {
        **build_scores_json(frame, entry),
        "reason": entry.reason or None,
        "missing": list(entry.missing),
        "behind_leader": behind and build_gap_json(behind.gap, behind.ci95, entry.p),
        "covers": entry.covers if entry.tier is not None else None,
        "link": row.link,
        "parameters": row.facts.n_parameters,
        "cost": row.cost and row.cost.model_dump(mode="json"),
        "seeds": [{"seed": n, **build_scores_json(frame, seed)} for n, seed in seeds.items()],
    }


def build_scores_json(frame: ScoreFrame, entry: RankedEntry) -> dict[str, Any]:
    """Return the scores of an entry or a seed, lists in the order of the columns.

    best: indices of the columns in which it is the best or not significantly worse; column_flags:
    flag -> indices of columns; over_control: by name of the column.
    """
    table, scores = frame.table, frame.scores[entry.name]
    in_order = [scores.get(column) for column in table.ranking.columns]
    indexed = [(i, score) for i, score in enumerate(in_order) if score]
    flags = unite(score.flags for _, score in indexed)
    overall = scores.get(OVERALL) or (in_order[0] if len(in_order) == 1 else None)
    return {
        "name": entry.name,
        "tier": entry.tier,
        "overall": entry.overall,
        "overall_ci95": overall and finite_or_none(overall.ci95),
        "source_accuracy": scores[SOURCE].mean if SOURCE in scores else None,
        "flags": list(table.lines[entry.name].flags),
        "mean": [score and score.mean for score in in_order],
        "ci95": [score and finite_or_none(score.ci95) for score in in_order],
        "n": [score and score.n for score in in_order],
        "best": [i for i, score in indexed if frame.is_best(score)],
        "column_flags": {flag: [i for i, s in indexed if flag in s.flags] for flag in flags},
        "over_control": {
            column: build_gap_json(score.gap, score.gap_ci95, score.p)
            for column, score in scores.items()
            if score.control
        },
    }


def build_gap_json(gap: float, ci95: float, p: float | None) -> dict[str, Any]:
    """Return a gap as data. p: of that gap, adjusted for all comparisons of its family."""
    return {"gap": gap, "ci95": finite_or_none(ci95), "p_adjusted": p}
