"""Everything that the page shows, as one JSON value; fractions, null if unknown."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from fsbench.core import __version__
from fsbench.core.errors import UsageError
from fsbench.core.schema import Provenance
from fsbench.core.specs import EpisodicSpec
from fsbench.core.statistics import measure_columns
from fsbench.core.tasks import ColumnId
from fsbench.data.catalog import all_facts
from fsbench.results.table import shorten_columns
from leaderboard.badges import BADGE_VERDICTS, SELF_REPORTED
from leaderboard.methods.board import build_from_table
from leaderboard.methods.record import MethodBoard, MethodRow
from leaderboard.methods.tables import list_compared_kinds, list_left_out
from leaderboard.methods.tables import list_missing_controls as list_missing
from leaderboard.published import PublishedEntry
from leaderboard.ranking.rank_intervals import bootstrap_ranks
from leaderboard.ranking.tiers import ALPHA, RankedEntry
from leaderboard.record import BoardFile
from leaderboard.render import FORMATS
from leaderboard.render.frame import DATASET_TITLES, make_frame
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
    pack_bytes,
    pack_histograms,
    pack_json,
)
from leaderboard.site.panels import KINDS, draw_methods, draw_track
from leaderboard.store import BoardEntry, Network
from leaderboard.tables import BoardTable, declaration_of, list_self_reported
from leaderboard.trust import Verification

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
    "preprocessing",
    "n_parameters",
    "weights_hash",
    "recipe",
    "steps",
    "random_init",
    "source_accuracy",
)
PROBE_WORDS = {"probe": "linear probe", "knn": "k-nearest-neighbour probe"}
Badges = Mapping[str, Verification]
"""Verification by name of the entry."""
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
    badges = {n.name: e.verification for e in entries for n in e.networks}
    badges |= {entry.name: entry.verification for entry in entries}
    methods = [build_from_table(table) for table in tables]
    pages = [
        build_method_data(i, table, board)
        for i, (table, boards) in enumerate(zip(tables, methods, strict=True))
        for board in boards
        if any(row.recipe for row in board.rows)
    ]
    datasets = {column.name.task.dataset for column in file.columns or ()}
    return {
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
        "entries": build_entries_data(entries, tables),
        "methods": pages,
        "tracks": [
            build_table_data(table, boards, badges)
            for table, boards in zip(tables, methods, strict=True)
        ],
    }


def describe_edition(file: BoardFile, entries: Sequence[BoardEntry]) -> str:
    """Return version and dates, e.g. version 2 of 2026-11-23, newest entry of 2026-11-24."""
    words = [f"version {file.version} of {file.date}"] if file.version else []
    newest = max((entry.file.submitted or "" for entry in entries), default="")
    return ", ".join([*words, *([f"newest entry of {newest[:10]}"] if newest else [])])


def describe_trust(tables: Sequence[BoardTable]) -> Iterator[str]:
    """Yield how many numbers have a signed badge, and how many rows are of one seed."""
    flags = [
        table.cell_flags.get(name, {}).get(column, ())
        for table in tables
        for name in table.results
        for column in table.results[name]
    ]
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


def join_words(words: Iterable[object]) -> str:
    """Return e.g. 1, 5 and 20."""
    *first, last = map(str, words)
    return f"{', '.join(first)} and {last}" if first else last


def describe_images(table: BoardTable) -> Iterator[str]:
    """Yield the data sets of a table, e.g. EuroSAT (1,000 of 27,000 images, a subset)."""
    results = (loaded.result for cells in table.results.values() for loaded in cells.values())
    data = {result.dataset.name: result.dataset for result in results}
    for name in dict.fromkeys(ColumnId.parse(c).task.dataset for c in table.ranking.columns):
        facts = all_facts().get(name)
        official = facts.n_images if facts else 0
        count = sum(data[name].class_counts) if name in data else official
        part = f"{count:,} of {official:,} images, a subset"
        part = part if count < official else f"{count:,} images"
        title = DATASET_TITLES.get(name, name)
        yield f"{title} ({part})" if count else title


def describe_finding(table: BoardTable, methods: Sequence[MethodBoard]) -> str:
    """Return who is first, and which entries gain over plain training, in one sentence."""
    gains = summarize_gains(methods, by_entry=True)
    leader = describe_leader(table.ranking) or "No row is ranked" * bool(table.names)
    return "; ".join(filter(None, (leader, gains))) + "." if leader else ""


def summarize_gains(methods: Sequence[MethodBoard], by_entry: bool = False) -> str:
    """Return which gains over plain training survive, of methods or of their entries."""
    gains = [
        (row.entry if by_entry else row.name, gain)
        for board in methods
        for row in board.rows
        if (gain := row.gain)
    ]
    if not gains:
        return ""
    winners = [name for name, gain in gains if gain.gap > 0 and gain.is_significant(ALPHA)]
    several = sum(len(gain.seeds) > 1 for _, gain in gains)
    words = "significantly over plain training of equal compute"
    if len(gains) == 1:
        text = f"{gains[0][0]} {'gains' if winners else 'does not gain'} {words}"
        return text if several else f"{text} (it has one seed, and this needs several)"
    verb, names = "gains" if len(winners) < 2 else "gain", join_words(winners or ["none"])
    needed = f"({several or 'none'} with the several seeds that this needs)"
    return (
        f"of {len(gains)} {'entries' if by_entry else 'methods'}, {names} {verb} {words} {needed}"
    )


def build_method_data(track: int, table: BoardTable, board: MethodBoard) -> JsonObject:
    """Return the methods of a table with their gains. track: its place among the tables."""
    baselines = {name for row in board.rows for name in row.controls.values()}
    gains = summarize_gains([board])
    finding = gains.replace("of ", "Of ", 1) if gains.startswith("of ") else gains
    return {
        "title": board.track or board.board,
        "track": track,
        "finding": finding and f"{finding}.",
        "data": describe_data(table),
        "kinds": [[kind, KINDS[kind]] for kind in list_compared_kinds(board)],
        "rows": [
            build_method_row(row, board.alpha) | {"baseline": row.name in baselines}
            for row in board.rows
        ],
        "notes": [*list_missing(board), *list_left_out(board)],
        "panels": pack_json(draw_methods(board)),
    }


def build_method_row(row: MethodRow, alpha: float) -> JsonObject:
    """Return one method: means, half-widths, gains by kind of control, and costs."""
    overall = row.overall
    halves = (overall.ci95_seeds, overall.ci95) if overall else ()
    gains = overall.gains if overall else {}
    return {
        "name": row.name,
        "plan": row.plan,
        "seeds": list(row.seeds),
        "entry": row.entry,
        "overall": round_number(overall.mean if overall else None),
        "ci95": round_number(next((half for half in halves if half is not None), None)),
        "gains": {
            kind: [round_number(g.gap), round_number(g.ci95), len(g.seeds), g.is_significant(alpha)]
            for kind, g in gains.items()
        },
        "source": round_number(row.source_accuracy),
        "flops": float(f"{row.costs.flops:.3g}"),
        "self_reported": row.self_reported,
    }


def build_entries_data(entries: Sequence[BoardEntry], tables: Sequence[BoardTable]) -> JsonObject:
    """Return the facts of all entries: what their networks share, and those of each of several."""
    facts: JsonObject = {}
    for entry in entries:
        of_seeds = {seed.name: build_network_data(entry, seed) for seed in entry.seeds}
        first, *others = of_seeds.values()
        shared = {k: v for k, v in first.items() if all(other.get(k) == v for other in others)}
        facts |= of_seeds | {entry.name: shared}
    return facts


def build_network_data(entry: BoardEntry, network: Network) -> JsonObject:
    """Return what is declared and recorded of a network, without unknown fields."""
    declaration, verification = declaration_of(entry), entry.verification
    backbone = network.facts
    provenances = [loaded.result.provenance for loaded in network.cells]
    facts = {
        **{name: getattr(backbone, name) for name in BACKBONE_FIELDS},
        "feature_choices": ", ".join(backbone.feature_spec.words) or None,
        "images": drop_repeats([str(loaded.result.spec.image) for loaded in network.cells]),
        "entry": entry.name,
        "digest": entry.digest,
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


def build_table_data(
    table: BoardTable, methods: Sequence[MethodBoard], badges: Badges
) -> JsonObject:
    """Return one table: columns, rows in order of rank, packed pairs and histograms."""
    with ThreadPoolExecutor(1) as pool:  # mostly NumPy, beside what is mostly Python
        ranks = pool.submit(list_rank_intervals, table)
        data = build_ranked_data(table, methods, badges)
    for row in data["rows"]:
        row |= ranks.result().get(row["name"], {})
    return data


def list_rank_intervals(table: BoardTable) -> dict[str, JsonObject]:
    """Return the interval of the rank of each entry; nothing for too few entries or episodes."""
    with suppress(UsageError):
        intervals = bootstrap_ranks(table.ranking, table.contenders).entries
        return {interval.name: {"ranks": [interval.low, interval.high]} for interval in intervals}
    return {}


def build_ranked_data(
    table: BoardTable, methods: Sequence[MethodBoard], badges: Badges
) -> JsonObject:
    """Return all of a table but the intervals of ranks."""
    names, columns = table.names, table.ranking.columns
    compared = names[: count_paired_entries(len(names), len(columns))]
    is_probe = [ColumnId.parse(column).task.probe is not None for column in columns]
    outcomes = [
        [
            None if probe else of_row.get(column)
            for column, probe in zip(columns, is_probe, strict=True)
        ]
        for of_row in (table.contenders[name] for name in names)
    ]
    frames = [make_frame(table)]
    files = {suffix: FORMATS.load(name)(frames) for name, suffix in DOWNLOADS.items()}
    return {
        "title": table.track.label if table.track else table.name,
        "finding": describe_finding(table, methods),
        "data": describe_data(table),
        "coverage": " ".join(describe_coverage(table)),
        "alpha": table.ranking.alpha,
        **({"warning": table.warning} if table.warning else {}),
        "columns": [
            {"name": column, "label": label, **describe_column(table, column)}
            for column, label in zip(columns, shorten_columns(columns)[0], strict=True)
        ],
        "rows": [build_row_data(table, entry, badges) for entry in table.ranking.entries],
        "paired": len(compared),
        "pairs": pack_bytes(encode_pairs(table.contenders, compared, columns)),
        "histograms": pack_bytes(pack_histograms(outcomes)),
        "published": [build_published_data(entry) for entry in table.published],
        "panels": pack_json(draw_track(table)),
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


def build_row_data(table: BoardTable, entry: RankedEntry, badges: Badges) -> JsonObject:
    """Return a row of this table, without unknown fields; seeds: its seeds, rows without a tier."""
    name, gap = entry.name, entry.behind
    outcomes, columns = table.contenders[name], table.ranking.columns
    seeds = table.seeds.get(name, {})
    words = {badges[n].words for n in table.members.get(name, (name,))}
    half = None
    if entry.tier is not None:
        half = table.seed_errors.scores[name].ci95
    elif entry.overall is not None:
        of_columns = [outcomes[column] for column in columns]
        half = measure_columns([o.values for o in of_columns], [o.draws for o in of_columns]).ci95
    data = {
        "name": name,
        "tier": entry.tier and format_tier(entry),
        "reason": entry.reason or None,
        "overall": round_number(entry.overall),
        "ci95": round_number(half),
        "behind": gap and [round_number(gap.gap), round_number(gap.ci95), round_number(entry.p)],
        "flags": [flag for flag in table.flags[name] if flag not in words],
        "self_reported": [columns.index(c) for c in list_self_reported(table, name)],
        "source": round_number(table.sources[name]),
        "cells": [build_score_data(table, entry, column, badges) for column in columns],
        "covers": entry.covers if entry.tier is not None else None,
        "seeds": [build_row_data(table, s, badges) | {"seed": n} for n, s in seeds.items()],
    }
    return {key: value for key, value in data.items() if value not in (None, [])}


def build_score_data(
    table: BoardTable, entry: RankedEntry, column: str, badges: Badges
) -> list[Any] | None:
    """Return mean, half-width, n, and notes if there are any.

    Of a row of several seeds the notes are sums over the seeds, and the badge is the worst one if
    all seeds have one.
    """
    score, seeds = entry.scores.get(column), table.seeds.get(entry.name, {})
    names = [seed.name for seed in seeds.values()] or list(table.members.get(entry.name, ()))
    names = names or [entry.name]
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
    keys = [(r.backbone.identity, str(r.column)) for r in results]
    verdicts = badges[names[0]].verdicts
    if all(key in verdicts for key in keys):
        notes["badge"] = max((verdicts[key] for key in keys), key=BADGE_VERDICTS.index)
    mean, half = round_number(score.mean), round_number(score.ci95)
    data = [mean, half, score.n]
    return [*data, notes] if notes else data


def build_published_data(entry: PublishedEntry) -> JsonObject:
    """Return a published entry with its numbers."""
    return {
        **entry.model_dump(include={"name", "method", "source", "link", "backbone", "protocol"}),
        "cells": [[c.task, c.mean, c.ci95, c.table, c.note, c.spread] for c in entry.cells],
    }


def round_number(value: float | None) -> float | None:
    """Return a rounded number; None for nan, which JSON cannot write."""
    return None if value is None or not math.isfinite(value) else round(value, DIGITS)
