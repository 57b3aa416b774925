"""Everything that the page shows, as one JSON value; fractions, null if unknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fsbench.core import __version__
from fsbench.core.schema import Provenance
from fsbench.core.specs import EpisodicSpec
from fsbench.core.statistics import Z95
from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns
from leaderboard.board.board import BoardEntry
from leaderboard.board.definition import BoardFile
from leaderboard.board.published import PublishedEntry
from leaderboard.board.tables import BoardTable, list_shared_tasks
from leaderboard.ranking.summary import summarize_board
from leaderboard.ranking.tiers import RankedEntry
from leaderboard.reports import FORMATS
from leaderboard.reports.render import (
    PUBLISHED_NOTE,
    SELF_NOTE,
    SPREAD_NOTE,
    TIER_NOTES,
    TRUST_NOTE,
    describe_coverage,
    list_self_reported,
)
from leaderboard.reports.table import build_report_table
from leaderboard.site.packing import (
    count_paired_entries,
    encode_pairs,
    estimate_overall_error,
    find_scale,
    pack_bytes,
    pack_histograms,
    pack_json,
)
from leaderboard.site.panels import draw_track
from leaderboard.submission.chain import build_chain

JsonObject = dict[str, Any]
DIGITS = 6
"""Decimals of a fraction: a hundredth of a hundredth of a point."""
HEX = 12
"""Hexadecimal digits shown of a hash; the files of the board have all 64."""
DOWNLOADS = {"csv": "csv", "json": "json", "latex": "tex"}
"""Format -> suffix of the file."""
DECLARATION_FIELDS = ("authors", "link", "license", "pretraining_data", "targets_seen", "statement")
BACKBONE_FIELDS = (
    "ref",
    "source",
    "architecture",
    "features",
    "feature_dim",
    "input_size",
    "mean",
    "std",
    "n_parameters",
    "weights_hash",
    "recipe",
    "steps",
    "random_init",
    "source_accuracy",
)
PROVENANCE_FIELDS = (
    "device",
    "platform",
    "cpu_capability",
    "python",
    "fsbench",
    "git_commit",
    "threads",
)


def build_page_data(
    file: BoardFile, entries: Sequence[BoardEntry], tables: Sequence[BoardTable]
) -> JsonObject:
    """Return the data of the whole page; equal boards give equal data. tables: from rank_tracks."""
    return {
        "format": 1,
        "board": file.title,
        "official": file.official,
        "fsbench": __version__,
        "rule": TIER_NOTES[file.ranking],
        "trust": TRUST_NOTE,
        "self_note": SELF_NOTE,
        "published_note": PUBLISHED_NOTE,
        "spread_note": SPREAD_NOTE,
        "entries": build_entries_data(entries, tables),
        "tracks": [build_table_data(table) for table in tables],
    }


def build_entries_data(entries: Sequence[BoardEntry], tables: Sequence[BoardTable]) -> JsonObject:
    """Return the facts of all entries, and of rows of several seeds what the seeds share."""
    facts = {entry.name: build_entry_data(entry) for entry in entries}
    for row, seeds in (item for table in tables for item in table.seeds.items()):
        of_seeds = [facts[seed.name] for seed in seeds.values()]
        shared = {key: value for key, value in of_seeds[0].items() if value is not None}
        facts[row] = {
            key: value
            for key, value in shared.items()
            if all(other.get(key) == value for other in of_seeds)
        }
    return facts


def build_entry_data(entry: BoardEntry) -> JsonObject:
    """Return declaration, backbone, provenance and commands of an entry, without unknown fields."""
    declaration, verification = entry.file.declaration, entry.verification
    backbone = entry.cells[0].result.backbone
    provenances = [loaded.result.provenance for loaded in entry.cells]
    facts = {
        **{name: getattr(backbone, name) for name in BACKBONE_FIELDS},
        "feature_choices": ", ".join(backbone.feature_spec.words) or None,
        "images": drop_repeats([str(loaded.result.spec.image) for loaded in entry.cells]),
        "chain": build_chain(entry.cells).end,
        "badge": {"verdict": verification.verdict, "words": verification.words}
        if verification.words
        else None,
        "submitted": entry.file.submitted,
        "checked_by": entry.file.fsbench,
        "environments": drop_repeats([describe_environment(p) for p in provenances]),
        "commands": drop_repeats([p.command for p in provenances]),
        "started": min(p.started for p in provenances),
        "seconds": round(sum(p.seconds for p in provenances), 1),
    }
    declared = {name: getattr(declaration, name) for name in DECLARATION_FIELDS}
    return declared | {name: value for name, value in facts.items() if value not in (None, ())}


def describe_environment(provenance: Provenance) -> JsonObject:
    """Return where a result was computed, which is equal for most results of an entry."""
    values = {name: getattr(provenance, name) for name in PROVENANCE_FIELDS}
    values = {name: value for name, value in values.items() if value is not None}
    return values | {"packages": provenance.packages}


def drop_repeats(values: list[Any]) -> list[Any]:
    """Return each value once, in order; values need not be hashable."""
    return [value for i, value in enumerate(values) if value not in values[:i]]


def build_table_data(table: BoardTable) -> JsonObject:
    """Return one table: columns, rows in order of rank, packed pairs and histograms."""
    names, columns = table.names, table.ranking.columns
    statistics = summarize_board(table)
    intervals = statistics.rank_intervals.entries if statistics.rank_intervals else ()
    ranks = {interval.name: {"ranks": [interval.low, interval.high]} for interval in intervals}
    compared = names[: count_paired_entries(len(names), len(columns))]
    scale = find_scale(table.contenders, compared, columns)
    outcomes = [[table.contenders[name].get(c) for c in columns] for name in names]
    report = [build_report_table(table)]
    files = {suffix: FORMATS.load(name).make(report) for name, suffix in DOWNLOADS.items()}
    return {
        "title": table.track.label if table.track else table.name,
        "coverage": describe_coverage(table),
        "alpha": table.ranking.alpha,
        **({"warning": table.warning} if table.warning else {}),
        "columns": [
            {"name": column, "label": label, **describe_column(table, column)}
            for column, label in zip(columns, shorten_columns(columns)[0], strict=True)
        ],
        "rows": [build_row_data(table, s) | ranks.get(s.name, {}) for s in table.ranking.entries],
        "paired": len(compared),
        **({"pair_scale": scale} if scale > 1 else {}),
        "pairs": pack_bytes(encode_pairs(table.contenders, compared, columns, scale)),
        "histograms": pack_bytes(pack_histograms(outcomes)),
        "published": [build_published_data(table, entry) for entry in table.published],
        "panels": pack_json(draw_track(table, statistics)),
        "downloads": pack_json(files),
    }


def describe_column(table: BoardTable, column: str) -> JsonObject:
    """Return data set, spec and episodes, with the hashes that all results of a column share."""
    loaded = next(
        (by_column[column] for by_column in table.results.values() if column in by_column), None
    )
    if loaded is None:
        return {}
    result, spec = loaded.result, loaded.result.spec
    data: JsonObject = {
        "dataset": result.dataset.name,
        "spec": result.spec_digest[:HEX],
        "data": result.dataset.identity[:HEX],
        "kind": spec.kind,
    }
    if isinstance(spec, EpisodicSpec):
        episode = spec.episode
        data |= {
            "way": episode.n_way,
            "shots": episode.k_shot,
            "kind": spec.adaptation,
            "manifest": (result.manifest_hash or "")[:HEX],
            "chance": 1 / episode.n_way,
        }
    return data


def build_row_data(table: BoardTable, entry: RankedEntry) -> JsonObject:
    """Return a row of this table, without unknown fields; seeds: its seeds, rows without a tier."""
    name, gap = entry.name, entry.behind
    outcomes, columns = table.contenders[name], table.ranking.columns
    seeds = table.seeds.get(name, {})
    half = None
    if entry.tier is not None:
        half = table.seed_errors.measure_row(name).ci95
    elif entry.overall is not None:
        half = Z95 * estimate_overall_error(outcomes, columns)
    data = {
        "name": name,
        "tier": entry.tier,
        "reason": entry.reason or None,
        "overall": round_number(entry.overall),
        "ci95": round_number(half),
        "behind": gap and [round_number(gap.gap), round_number(gap.ci95), round_number(entry.p)],
        "flags": list(table.flags[name]),
        "self_reported": [columns.index(c) for c in list_self_reported(table, name)],
        "source": round_number(table.sources[name]),
        "cells": [build_score_data(table, entry, column) for column in columns],
        "covers": entry.covers if entry.tier is not None else None,
        "seeds": [build_row_data(table, seed) | {"seed": s} for s, seed in seeds.items()],
    }
    return {key: value for key, value in data.items() if value not in (None, [])}


def build_score_data(table: BoardTable, entry: RankedEntry, column: str) -> list[Any] | None:
    """Return mean, half-width, n, start of the records' hash, and notes if there are any.

    Of a row of several seeds the hash is empty and the notes are sums over the seeds.
    """
    score, seeds = entry.scores.get(column), table.seeds.get(entry.name, {})
    names = [seed.name for seed in seeds.values()] or [entry.name]
    results = [table.results[n][column].result for n in names if column in table.results.get(n, {})]
    if score is None or not results:
        return None
    notes: JsonObject = {
        "collapsed": sum(result.collapsed for result in results),
        "non_finite": sum(result.non_finite for result in results),
    }
    notes = {name: count for name, count in notes.items() if count}
    second = table.best_on_test.get(entry.name, {}).get(column)
    notes |= {"best_on_test": round_number(second.mean)} if second else {}
    mean, half = round_number(score.mean), round_number(score.ci95)
    data = [mean, half, score.n, "" if seeds else results[0].records_digest[:HEX]]
    return [*data, notes] if notes else data


def build_published_data(table: BoardTable, entry: PublishedEntry) -> JsonObject:
    """Return a published entry with its numbers on the data sets of this table."""
    datasets = {ColumnId.parse(column).task.dataset for column in table.ranking.columns}
    tasks = set(list_shared_tasks(entry, datasets))
    cells = [cell for cell in entry.cells if cell.task in tasks]
    return {
        **entry.model_dump(include={"name", "method", "source", "link", "backbone", "protocol"}),
        "cells": [[c.task, c.mean, c.ci95, c.table, c.note, c.spread] for c in cells],
    }


def round_number(value: float | None) -> float | None:
    """Return a rounded number; None for nan, which JSON cannot write."""
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)
