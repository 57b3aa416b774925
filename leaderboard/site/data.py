"""Everything that the page shows, as one JSON value; fractions, null if unknown."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fsbench.core import __version__
from fsbench.core.schema import Result
from fsbench.core.tasks import ColumnId
from fsbench.data.catalog import all_facts
from fsbench.results.table import shorten_columns
from leaderboard.badges import BADGE_VERDICTS, SELF_REPORTED
from leaderboard.methods.board import build_from_table
from leaderboard.methods.record import MethodBoard
from leaderboard.methods.tables import (
    describe_gains,
    join_words,
    list_compared_kinds,
    list_left_out,
    list_missing_controls,
)
from leaderboard.ranking.tiers import RankedEntry
from leaderboard.record import BoardFile
from leaderboard.render import FORMATS
from leaderboard.render.frame import DATASET_TITLES, FLAGS, make_frame
from leaderboard.render.notes import (
    PUBLISHED_NOTE,
    SELF_NOTE,
    SPREAD_NOTE,
    TIER_NOTE,
    TRUST_NOTE,
    describe_coverage,
    describe_leader,
    format_tier,
)
from leaderboard.repository import ABOUT
from leaderboard.site.packing import (
    count_paired_entries,
    encode_pairs,
    measure_mean,
    pack_bytes,
    pack_histograms,
    pack_json,
)
from leaderboard.site.panels import (
    KINDS,
    draw_average_ranks,
    draw_costs,
    draw_heat_maps,
    draw_shots,
)
from leaderboard.store import BoardEntry, Network
from leaderboard.summary import summarize_board
from leaderboard.tables import BoardTable, declaration_of, list_self_reported
from leaderboard.trust import Verification

JsonObject = dict[str, Any]
DIGITS = 6
"""Decimals of a fraction: a hundredth of a hundredth of a point."""
HEX = 12
"""Hexadecimal digits shown of a hash; the files of the board have all 64."""
DOWNLOADS = {"csv": "csv", "json": "json", "latex": "tex"}
"""Format -> suffix of the file."""
PROVENANCE_FIELDS = {
    "device", "platform", "cpu_capability", "python", "fsbench", "git_commit", "threads",
    "packages",
}  # fmt: skip
PROBE_WORDS = {"probe": "linear probe", "knn": "k-nearest-neighbour probe"}
Badges = Mapping[str, Verification]
"""Verification by name of the entry and of its networks."""


def build_page_data(
    file: BoardFile, entries: Sequence[BoardEntry], tables: Sequence[BoardTable]
) -> JsonObject:
    """Return the data of the whole page; equal boards give equal data. tables: from rank_tracks."""
    badges = {n.name: e.verification for e in entries for n in e.networks}
    badges |= {entry.name: entry.verification for entry in entries}
    methods = [build_from_table(table) for table in tables]
    tracks = list(zip(tables, methods, strict=True))
    datasets = {column.name.task.dataset for column in file.columns or ()}
    flags = {flag for table in tables for name in table.names for flag in table.flags[name]}
    data = {
        "format": 1,
        "board": file.title,
        "about": file.about or ABOUT,
        "edition": describe_edition(file, entries),
        "count": len(entries),
        "caveat": " ".join(describe_trust(tables)),
        "datasets": sorted(datasets & set(all_facts())),
        "official": file.official,
        "fsbench": __version__,
        "rule": TIER_NOTE,
        "trust": TRUST_NOTE,
        "self_note": SELF_NOTE,
        "published_note": PUBLISHED_NOTE,
        "spread_note": SPREAD_NOTE,
        "flags": {flag: meaning for flag, meaning in FLAGS.items() if flag in flags},
        "entries": build_entries_data(entries),
        "methods": [
            build_method_data(i, table, board)
            for i, (table, boards) in enumerate(tracks)
            for board in boards
            if any(row.recipe for row in board.rows)
        ],
        "tracks": [build_table_data(table, boards, badges) for table, boards in tracks],
    }
    return dict(tidy(data))


def tidy(value: Any) -> Any:
    """Return JSON with rounded numbers, null for nan, and without unknown fields of objects."""
    if isinstance(value, float):
        return round(value, DIGITS) if math.isfinite(value) else None
    if isinstance(value, dict):
        tidied = ((key, tidy(item)) for key, item in value.items())
        return {key: item for key, item in tidied if item is not None}
    return [tidy(item) for item in value] if isinstance(value, list | tuple) else value


def describe_edition(file: BoardFile, entries: Sequence[BoardEntry]) -> str:
    """Return version and dates, e.g. version 2 of 2026-11-23, newest entry of 2026-11-24."""
    words = [f"version {file.version} of {file.date}"] if file.version else []
    newest = max((entry.file.submitted or "" for entry in entries), default="")
    return ", ".join([*words, *([f"newest entry of {newest[:10]}"] if newest else [])])


def describe_trust(tables: Sequence[BoardTable]) -> Iterator[str]:
    """Yield how many numbers have a signed badge, and how many rows are of one seed."""
    flags = [f for table in tables for n in table.results for f in table.cell_flags[n].values()]
    alone = sum(SELF_REPORTED in of_cell for of_cell in flags)
    if alone:
        some = f"{alone:,} of {len(flags):,} numbers have no"
        count = "No number here has a" if alone == len(flags) else some
        yield f"{count} signed badge: only the submitters vouch for them."
    names = {name for table in tables for name in table.names}
    single = names - {row for table in tables for row in table.seeds}
    if single:
        yield (
            f"{len(single)} of {len(names)} rows are one network each, drawn hollow: another "
            "pretraining seed may rank elsewhere."
        )


def describe_data(table: BoardTable) -> str:
    """Return what a table measures on which images, in words; subsets are named with their size."""
    columns = [ColumnId.parse(column) for column in table.ranking.columns]
    if not columns:
        return ""
    shots: dict[str, dict[int, None]] = {}
    for task, adaptation in ((column.task, column.adaptation) for column in columns):
        head = PROBE_WORDS.get(task.probe or "") or f"{adaptation} heads, {task.n_way}-way"
        shots.setdefault(head, {}).update({task.n_shot: None} if task.n_shot else {})
    tests = [f"{head}, {join_words(k)} shots" if k else head for head, k in shots.items()]
    sizes = ", ".join(dict.fromkeys(f"{column.input_size} px" for column in columns))
    images = join_words(describe_images(table))
    return f"Frozen features at {sizes}: {'; '.join(tests)}. On {images}."


def describe_images(table: BoardTable) -> Iterator[str]:
    """Yield the data sets of a table, e.g. EuroSAT (1,000 of 27,000 images, a subset)."""
    measured = {result.dataset.name: result.dataset for result in find_results(table).values()}
    for name in dict.fromkeys(ColumnId.parse(c).task.dataset for c in table.ranking.columns):
        facts = all_facts().get(name)
        official = facts.n_images if facts else 0
        count = sum(measured[name].class_counts) if name in measured else official
        part = f"{count:,} of {official:,} images, a subset"
        part = part if count < official else f"{count:,} images"
        title = DATASET_TITLES.get(name, name)
        yield f"{title} ({part})" if count else title


def find_results(table: BoardTable) -> dict[str, Result]:
    """Return a result of each column that has any."""
    by_row = table.results.values()
    return {column: loaded.result for by_column in by_row for column, loaded in by_column.items()}


def describe_finding(table: BoardTable, methods: Sequence[MethodBoard]) -> str:
    """Return who is first, and which entries gain over plain training, in one sentence."""
    leader = describe_leader(table.ranking) or "No row is ranked" * bool(table.names)
    gains = describe_gains(methods, by_entry=True)
    return "; ".join(filter(None, (leader, gains))) + "." if leader else ""


def build_method_data(track: int, table: BoardTable, board: MethodBoard) -> JsonObject:
    """Return the methods of a table with their gains. track: its place among the tables."""
    baselines = {name for row in board.rows for name in row.controls.values()}
    return {
        "title": board.track or board.board,
        "track": track,
        "finding": describe_gains([board]),
        "data": describe_data(table),
        "kinds": [[kind, KINDS[kind]] for kind in list_compared_kinds(board)],
        "rows": [
            row.model_dump(mode="json", exclude={"cells"}) | {"baseline": row.name in baselines}
            for row in board.rows
        ],
        "notes": [*list_missing_controls(board), *list_left_out(board)],
        "panels": pack_json([*draw_heat_maps(board), *draw_costs(board)]),
    }


def build_entries_data(entries: Sequence[BoardEntry]) -> JsonObject:
    """Return the facts of all entries: what their networks share, and those of each of several."""
    facts: JsonObject = {}
    for entry in entries:
        of_seeds = {seed.name: build_network_data(entry, seed) for seed in entry.seeds}
        first, *others = of_seeds.values()
        shared = {k: v for k, v in first.items() if all(other.get(k) == v for other in others)}
        facts |= of_seeds | {entry.name: shared}
    return facts


def build_network_data(entry: BoardEntry, network: Network) -> JsonObject:
    """Return what is declared and recorded of a network."""
    verification, backbone = entry.verification, network.facts
    provenances = [loaded.result.provenance for loaded in network.cells]
    return {
        **declaration_of(entry).model_dump(mode="json", exclude={"name"}),
        **backbone.model_dump(mode="json", exclude={"training", "pretraining_data"}),
        "preprocessing": backbone.preprocessing,
        "feature_choices": ", ".join(backbone.feature_spec.words) or None,
        "images": drop_repeats([str(loaded.result.spec.image) for loaded in network.cells]),
        "entry": entry.name,
        "digest": entry.digest,
        "badge": {"verdict": verification.verdict, "words": verification.words}
        if verification.words
        else None,
        "submitted": entry.file.submitted,
        "environments": drop_repeats(
            [made.model_dump(mode="json", include=PROVENANCE_FIELDS) for made in provenances]
        ),
        "commands": drop_repeats([made.command for made in provenances]),
    }


def drop_repeats(values: list[Any]) -> list[Any]:
    """Return each value once, in order; values need not be hashable."""
    return [value for i, value in enumerate(values) if value not in values[:i]]


def build_table_data(
    table: BoardTable, methods: Sequence[MethodBoard], badges: Badges
) -> JsonObject:
    """Return one table: columns, rows in order of rank, packed pairs and histograms."""
    names, columns = table.names, table.ranking.columns
    compared = names[: count_paired_entries(len(names), len(columns))]
    ranks = {rank.name: [rank.low, rank.high] for rank in summarize_board(table).rank_intervals}
    return {
        "title": table.label or table.name,
        "finding": describe_finding(table, methods),
        "data": describe_data(table),
        "coverage": " ".join(describe_coverage(table)),
        "warning": table.warning or None,
        "columns": describe_columns(table),
        "rows": [
            build_row_data(table, entry, badges) | {"ranks": ranks.get(entry.name)}
            for entry in table.ranking.entries
        ],
        "paired": len(compared),
        "pairs": pack_bytes(encode_pairs(table.contenders, compared, columns)),
        "histograms": pack_bytes(pack_histograms(table.contenders, names, columns)),
        "published": [entry.model_dump(mode="json") for entry in table.published],
        "panels": pack_json([*draw_shots(table), *draw_average_ranks(table)]),
        "downloads": pack_downloads(table),
    }


def pack_downloads(table: BoardTable) -> str:
    """Return the table as files, by their ending."""
    frames = [make_frame(table)]
    return pack_json({end: FORMATS.load(name)(frames) for name, end in DOWNLOADS.items()})


def describe_columns(table: BoardTable) -> list[JsonObject]:
    """Return names and task of each column, with the hashes that all of its results share."""
    results, columns = find_results(table), table.ranking.columns
    data = []
    for column, label in zip(columns, shorten_columns(columns)[0], strict=True):
        identity, result = ColumnId.parse(column), results.get(column)
        shots = identity.task.n_shot
        data.append(
            {
                "name": column,
                "label": label,
                "dataset": identity.task.dataset,
                "kind": identity.adaptation,
                "shots": shots,
                "chance": 1 / identity.task.n_way if shots else None,
                "spec": result and result.spec_digest[:HEX],
                "data": result and result.dataset.identity[:HEX],
                "manifest": result and result.manifest_hash and result.manifest_hash[:HEX],
            }
        )
    return data


def build_row_data(table: BoardTable, entry: RankedEntry, badges: Badges) -> JsonObject:
    """Return a row of this table; seeds: its seeds, rows without a tier."""
    name, gap, columns = entry.name, entry.behind, table.ranking.columns
    seeds = table.seeds.get(name, {})
    words = {badges[n].words for n in table.members.get(name, (name,))}
    half = None
    if entry.tier is not None:
        half = table.seed_errors.scores[name].ci95
    elif entry.overall is not None:
        half = measure_mean(table.contenders[name], columns).ci95
    return {
        "name": name,
        "tier": entry.tier and format_tier(entry),
        "reason": entry.reason or None,
        "overall": entry.overall,
        "ci95": half,
        "behind": gap and [gap.gap, gap.ci95, entry.p],
        "flags": [flag for flag in table.flags[name] if flag not in words],
        "self_reported": [columns.index(c) for c in list_self_reported(table, name)] or None,
        "source": table.sources[name],
        "cells": [build_score_data(table, entry, column, badges) for column in columns],
        "covers": entry.covers if entry.tier is not None else None,
        "seeds": [build_row_data(table, s, badges) | {"seed": n} for n, s in seeds.items()] or None,
    }


def build_score_data(
    table: BoardTable, entry: RankedEntry, column: str, badges: Badges
) -> list[Any] | None:
    """Return mean, half-width, n, and notes if there are any.

    Of a row of several seeds the notes are sums over the seeds, and the badge is the worst one if
    all seeds have one.
    """
    names = table.members.get(entry.name, (entry.name,))
    results = [table.results[n][column].result for n in names if column in table.results.get(n, {})]
    if column not in entry.scores or not results:
        return None
    second = table.best_on_test.get(entry.name, {}).get(column)
    of_entry = badges[names[0]].verdicts
    verdicts = [of_entry.get((r.backbone.identity, str(r.column))) for r in results]
    signed = [verdict for verdict in verdicts if verdict]
    notes = {
        "collapsed": sum(result.collapsed for result in results) or None,
        "non_finite": sum(result.non_finite for result in results) or None,
        "best_on_test": second,
        "badge": max(signed, key=BADGE_VERDICTS.index) if len(signed) == len(verdicts) else None,
    }
    score = entry.scores[column]
    return [score.mean, score.ci95, score.n, *([notes] if any(notes.values()) else [])]
