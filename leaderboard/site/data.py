"""Everything that the page knows, as one JSON value; fractions, null where nothing is known."""

from __future__ import annotations

import math
from typing import Any

from fsbench.core.schema import Provenance
from fsbench.core.specs import EpisodicSpec
from fsbench.core.statistics import Z95
from fsbench.core.tasks import ColumnId
from fsbench.core.version import __version__
from fsbench.results.rules import Loaded
from leaderboard.board.badges import Badge
from leaderboard.board.board import BoardEntry
from leaderboard.board.published import PublishedEntry
from leaderboard.board.tables import list_shared_tasks
from leaderboard.ranking.summary import BoardStatistics, summarize_board
from leaderboard.ranking.tiers import RankedEntry
from leaderboard.reports import FORMATS
from leaderboard.reports.render import PUBLISHED_NOTE, SPREAD_NOTE, TIER_NOTE, shorten_columns
from leaderboard.reports.table import build_report_table
from leaderboard.site import packing
from leaderboard.site import packing as pairs
from leaderboard.site.packing import pack_bytes, pack_json
from leaderboard.site.panels import draw_track
from leaderboard.site.source import SiteBoard, SiteTable
from leaderboard.submission.chain import build_chain

EntryFacts = dict[str, Any]
BACKBONE_FIELDS = (
    "ref",
    "source",
    "architecture",
    "features",
    "feature_dim",
    "input_size",
    "n_parameters",
    "weights_hash",
    "recipe",
    "steps",
    "random_init",
    "source_accuracy",
)
DECLARATION_FIELDS = ("authors", "link", "license", "pretraining_data", "targets_seen", "statement")
PROVENANCE_FIELDS = (
    "device",
    "platform",
    "cpu_capability",
    "python",
    "fsbench",
    "git_commit",
    "threads",
)


def entry_data(entry: BoardEntry, badge: Badge | None) -> EntryFacts:
    """JSON of everything but the numbers; what is unknown is left out."""
    declaration, backbone = entry.file.declaration, entry.cells[0].result.backbone
    made = [cell.result.provenance for cell in entry.cells]
    found = {
        **{name: getattr(backbone, name) for name in BACKBONE_FIELDS},
        "chain": build_chain(entry.cells).end,
        "badge": badge and {"verdict": badge.verdict, "words": badge.words},
        "submitted": entry.file.submitted,
        "checked_by": entry.file.fsbench,
        "environments": unique_values([environment_data(each) for each in made]),
        "commands": unique_values([each.command for each in made]),
        "started": min(each.started for each in made),
        "seconds": round(sum(each.seconds for each in made), 1),
    }
    stated = {name: getattr(declaration, name) for name in DECLARATION_FIELDS}
    return stated | {name: value for name, value in found.items() if value not in (None, ())}


def environment_data(made: Provenance) -> EntryFacts:
    """Where a result was made; equal for most results of an entry."""
    own = {
        name: getattr(made, name) for name in PROVENANCE_FIELDS if getattr(made, name) is not None
    }
    return own | {"packages": made.packages}


def unique_values(values: list[Any]) -> list[Any]:
    """Each value once, in the order given; values need not be hashable."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


DOWNLOADS = {"csv": "csv", "json": "json", "latex": "tex"}
"""Format -> suffix of the file."""


def make_downloads(track: SiteTable) -> dict[str, str]:
    """Suffix -> text of the file."""
    sheets = [build_report_table(track.view)]
    return {suffix: FORMATS.load(name).make(sheets) for name, suffix in DOWNLOADS.items()}


JsonObject = dict[str, Any]
DIGITS = 6
"""Decimals of a fraction: a hundredth of a hundredth of a point."""
HEX = 12
"""Hexadecimal digits shown of a hash; the board's files hold all 64."""


def page_data(source: SiteBoard) -> JsonObject:
    """The whole page's data; equal boards give equal data."""
    return {
        "format": 1,
        "board": source.name,
        "official": source.official,
        "fsbench": __version__,
        "rule": TIER_NOTE,
        "published_note": PUBLISHED_NOTE,
        "spread_note": SPREAD_NOTE,
        "entries": {
            name: entry_data(entry, source.badges.get(name))
            for name, entry in source.entries.items()
        },
        "tracks": [table_data(track) for track in source.tracks],
    }


def table_data(track: SiteTable) -> JsonObject:
    """One table: columns, rows in the order of their standing, packed pairs and histograms."""
    view, names = track.view, track.names
    found = summarize_board(view)
    paired = names[: pairs.paired_entries(len(names), len(track.columns))]
    outcomes = [[view.contenders[name].get(c) for c in track.columns] for name in names]
    return {
        "title": view.track.label if view.track else view.name,
        "alpha": view.ranking.alpha,
        "columns": [column_data(track, column) for column in track.columns],
        "rows": list_row_data(track, found),
        "paired": len(paired),
        "pairs": pack_bytes(pairs.encode_pairs(view.contenders, paired, track.columns)),
        "histograms": pack_bytes(packing.pack_histograms(outcomes)),
        "published": [published_data(track, entry) for entry in view.published],
        "panels": pack_json(draw_track(track, found)),
        "downloads": pack_json(make_downloads(track)),
    }


def list_row_data(track: SiteTable, found: BoardStatistics) -> list[JsonObject]:
    """In the order of their standing, each with the ranks that the bootstrap gives it."""
    intervals = found.rank_intervals.entries if found.rank_intervals else ()
    ranks = {each.name: {"ranks": [each.low, each.high]} for each in intervals}
    return [row_data(track, s) | ranks.get(s.name, {}) for s in track.view.ranking.entries]


def column_data(track: SiteTable, column: str) -> JsonObject:
    """What a column compares; hashes as all its results hold them."""
    cell = next((held[column] for held in track.cells.values() if column in held), None)
    found: JsonObject = {
        "name": column,
        "label": shorten_columns(track.columns)[0][track.columns.index(column)],
    }
    return found if cell is None else found | spec_data(cell)


def spec_data(cell: Loaded) -> JsonObject:
    result, spec = cell.result, cell.result.spec
    found: JsonObject = {
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


def row_data(track: SiteTable, standing: RankedEntry) -> JsonObject:
    """An entry in this track."""
    name, behind = standing.name, standing.behind
    held, whole = track.view.contenders[name], standing.overall is not None
    found = {
        "name": name,
        "tier": standing.tier,
        "overall": round_number(standing.overall),
        "ci95": round_number(Z95 * pairs.overall_error(held, track.columns)) if whole else None,
        "behind": behind
        and [round_number(behind.gap), round_number(behind.ci95), round_number(standing.p)],
        "flags": list(track.view.flags[name]),
        "source": round_number(track.view.sources[name]),
        "cells": [score_data(track, standing, column) for column in track.columns],
    }
    return {key: value for key, value in found.items() if value not in (None, [])}


def score_data(track: SiteTable, standing: RankedEntry, column: str) -> list[Any] | None:
    """Mean, half-width, outcomes, start of the records' hash, and what else is to be known."""
    score, cell = standing.scores.get(column), track.cells.get(standing.name, {}).get(column)
    if score is None or cell is None:
        return None
    result = cell.result
    notes = {"collapsed": result.collapsed, "non_finite": result.non_finite}
    notes = {name: count for name, count in notes.items() if count}
    shown = [
        round_number(score.mean),
        round_number(score.ci95),
        score.n,
        result.records_digest[:HEX],
    ]
    return [*shown, notes] if notes else shown


def published_data(track: SiteTable, entry: PublishedEntry) -> JsonObject:
    """A published row: what of it lies on the data sets of this track."""
    datasets = {ColumnId.parse(column).task.dataset for column in track.columns}
    tasks = set(list_shared_tasks(entry, datasets))
    cells = [cell for cell in entry.cells if cell.task in tasks]
    return {
        **entry.model_dump(include={"name", "method", "source", "link", "backbone", "protocol"}),
        "cells": [[c.task, c.mean, c.ci95, c.table, c.note, c.spread] for c in cells],
    }


def round_number(value: float | None) -> float | None:
    """Rounded; JSON knows no NaN."""
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)
