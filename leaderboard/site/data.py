"""Everything that the page knows, as one JSON value; fractions, null where nothing is known."""

from __future__ import annotations

import math
from typing import Any

from fsbench import __version__
from fsbench.core.specs import EpisodicSpec
from fsbench.core.statistics import Z95
from fsbench.core.tasks import ColumnId
from fsbench.results.rules import Loaded
from leaderboard.board.published import PublishedEntry
from leaderboard.board.standing import shared_tasks
from leaderboard.ranking.rank import Standing
from leaderboard.ranking.summary import BoardStatistics, summarize_board
from leaderboard.reports.render import PUBLISHED, RULE, SPREAD, shorten
from leaderboard.site import facts, histograms, pairs
from leaderboard.site.files import downloads
from leaderboard.site.packing import packed, packed_json
from leaderboard.site.panels import draw_track
from leaderboard.site.source import Source, Track

Json = dict[str, Any]
DIGITS = 6
"""Decimals of a fraction: a hundredth of a hundredth of a point."""
HEX = 12
"""Hexadecimal digits shown of a hash; the board's files hold all 64."""


def of_board(source: Source) -> Json:
    """The whole page's data; equal boards give equal data."""
    return {
        "format": 1,
        "board": source.name,
        "official": source.official,
        "fsbench": __version__,
        "rule": RULE,
        "published_note": PUBLISHED,
        "spread_note": SPREAD,
        "entries": {
            name: facts.of_entry(entry, source.badges.get(name))
            for name, entry in source.entries.items()
        },
        "tracks": [of_track(track) for track in source.tracks],
    }


def of_track(track: Track) -> Json:
    """One table: columns, rows in the order of their standing, packed pairs and histograms."""
    view, names = track.view, track.names
    found = summarize_board(view)
    paired = names[: pairs.paired_entries(len(names), len(track.columns))]
    outcomes = [[view.contenders[name].get(c) for c in track.columns] for name in names]
    return {
        "title": view.track.label if view.track else view.name,
        "alpha": view.ranking.alpha,
        "columns": [of_column(track, column) for column in track.columns],
        "rows": rows(track, found),
        "paired": len(paired),
        "pairs": packed(pairs.codes(view.contenders, paired, track.columns)),
        "histograms": packed(histograms.table(outcomes)),
        "published": [printed(track, entry) for entry in view.published],
        "panels": packed_json(draw_track(track, found)),
        "downloads": packed_json(downloads(track)),
    }


def rows(track: Track, found: BoardStatistics) -> list[Json]:
    """In the order of their standing, each with the ranks that the bootstrap gives it."""
    intervals = found.rank_intervals.entries if found.rank_intervals else ()
    ranks = {each.name: {"ranks": [each.low, each.high]} for each in intervals}
    return [of_row(track, s) | ranks.get(s.name, {}) for s in track.view.ranking.standings]


def of_column(track: Track, column: str) -> Json:
    """What a column compares; hashes as all its results hold them."""
    cell = next((held[column] for held in track.cells.values() if column in held), None)
    found: Json = {"name": column, "label": shorten(track.columns)[0][track.columns.index(column)]}
    return found if cell is None else found | compared(cell)


def compared(cell: Loaded) -> Json:
    result, spec = cell.result, cell.result.spec
    found: Json = {
        "dataset": result.dataset.name,
        "spec": result.spec_digest[:HEX],
        "data": result.dataset.identity[:HEX],
        "kind": spec.kind,
    }
    if isinstance(spec, EpisodicSpec):
        episode = spec.episode
        found |= {
            "way": episode.n_way,
            "shots": episode.k_shot,
            "kind": spec.adaptation,
            "manifest": (result.manifest_hash or "")[:HEX],
            "chance": 1 / episode.n_way,
        }
    return found


def of_row(track: Track, standing: Standing) -> Json:
    """An entry in this track."""
    name, behind = standing.name, standing.behind
    held, whole = track.view.contenders[name], standing.overall is not None
    found = {
        "name": name,
        "tier": standing.tier,
        "overall": number(standing.overall),
        "ci95": number(Z95 * pairs.overall_error(held, track.columns)) if whole else None,
        "behind": behind and [number(behind.gap), number(behind.ci95), number(standing.p)],
        "flags": list(track.view.flags[name]),
        "source": number(track.view.sources[name]),
        "cells": [of_cell(track, standing, column) for column in track.columns],
    }
    return {key: value for key, value in found.items() if value not in (None, [])}


def of_cell(track: Track, standing: Standing, column: str) -> list[Any] | None:
    """Mean, half-width, outcomes, start of the records' hash, and what else is to be known."""
    score, cell = standing.scores.get(column), track.cells.get(standing.name, {}).get(column)
    if score is None or cell is None:
        return None
    result = cell.result
    notes = {"collapsed": result.collapsed, "non_finite": result.non_finite}
    notes = {name: count for name, count in notes.items() if count}
    shown = [number(score.mean), number(score.ci95), score.n, result.records_digest[:HEX]]
    return [*shown, notes] if notes else shown


def printed(track: Track, entry: PublishedEntry) -> Json:
    """A published row: what of it lies on the data sets of this track."""
    datasets = {ColumnId.parse(column).task.dataset for column in track.columns}
    tasks = set(shared_tasks(entry, datasets))
    cells = [cell for cell in entry.cells if cell.task in tasks]
    return {
        **entry.model_dump(include={"name", "method", "source", "link", "backbone", "protocol"}),
        "cells": [[c.task, c.mean, c.ci95, c.table, c.note, c.spread] for c in cells],
    }


def number(value: float | None) -> float | None:
    """Rounded; JSON knows no NaN."""
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)
