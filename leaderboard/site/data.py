"""Everything that the page shows, as one JSON value; fractions, null if unknown.

Its tables are those of the JSON format (render/json.py), with what only the page has: sentences,
rank intervals, packed intervals of pairs, histograms and figures.
"""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fsbench.core import __version__, plotting
from fsbench.data.catalog import all_facts
from leaderboard.badges import SELF_REPORTED
from leaderboard.entry_networks import Network
from leaderboard.figures import draw_columns, draw_table_ranks
from leaderboard.methods import MethodBoard, build_from_table
from leaderboard.ranking.rank_intervals import RankInterval, bootstrap_ranks
from leaderboard.record import BoardFile
from leaderboard.render.frame import BEST_RULE, DATASET_TITLES, FLAGS, ScoreFrame, make_frame
from leaderboard.render.json import build_table_json
from leaderboard.render.methods import HEADINGS, describe_gains, list_notes
from leaderboard.render.notes import (
    PUBLISHED_NOTE,
    SELF_NOTE,
    SPREAD_NOTE,
    TIER_NOTE,
    TRUST_NOTE,
    describe_coverage,
    describe_leader,
    describe_single_seeds,
)
from leaderboard.repository import ABOUT
from leaderboard.site.packing import (
    count_paired_entries,
    encode_pairs,
    pack_bytes,
    pack_histograms,
    pack_json,
)
from leaderboard.store import BoardEntry
from leaderboard.tables import BoardTable, declaration_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JsonObject = dict[str, Any]
DIGITS = 6
"""Decimals of a fraction: a hundredth of a hundredth of a point."""
MOST = 24
"""Entries of a figure of average ranks, and methods of a heat map."""


def build_page_data(
    file: BoardFile, entries: Sequence[BoardEntry], tables: Sequence[BoardTable]
) -> JsonObject:
    """Return the data of the whole page; equal boards give equal data. tables: from rank_tracks."""
    frames = [make_frame(table) for table in tables]
    methods = [build_from_table(table) for table in tables]
    # before figures need room
    ranks = [bootstrap_ranks(table.ranking, table.contenders) for table in tables]
    tracks = [build_track(*parts) for parts in zip(frames, methods, ranks, strict=True)]
    datasets = {column["dataset"] for track in tracks for column in track["columns"]}
    flags = {flag for table in tables for row in table.rows.values() for flag in row.flags}
    data = {
        "format": 2,
        "board": file.title,
        "about": file.about or ABOUT,
        "edition": f"version {file.version} of {file.date}" if file.version else "",
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
        "facts": {name: facts for entry in entries for name, facts in list_facts(entry)},
        "methods": [
            build_methods(i, track["data"], board)
            for i, (track, boards) in enumerate(zip(tracks, methods, strict=True))
            for board in boards
            if any(row.plan for row in board.rows)
        ],
        "tracks": tracks,
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


def describe_trust(tables: Sequence[BoardTable]) -> Iterator[str]:
    """Yield how many numbers have a signed badge, and how many rows are of one seed."""
    networks = [n for table in tables for row in table.rows.values() for n in row.networks]
    flags = [of_number for network in networks for of_number in network.column_flags.values()]
    unsigned = sum(SELF_REPORTED in of_number for of_number in flags)
    if unsigned:
        some = f"{unsigned:,} of {len(flags):,} numbers have no"
        count = "No number here has a" if unsigned == len(flags) else some
        yield f"{count} signed badge: only the submitters vouch for them."
    names = {name for table in tables for name in table.names}
    single = names - {row for table in tables for row in table.seeds}
    if single:
        yield (
            f"{len(single)} of {len(names)} rows are one network each, drawn hollow: another "
            "pretraining seed may rank elsewhere."
        )


def describe_images(columns: Sequence[JsonObject]) -> str:
    """Return the images of these columns, e.g. On EuroSAT (1,000 of 27,000 images, a subset)."""
    parts = []
    for name, measured in {column["dataset"]: column["images"] for column in columns}.items():
        facts = all_facts().get(name)
        official = facts.n_images if facts else 0
        count = measured or official
        part = f"{count:,} of {official:,} images, a subset"
        part = part if count < official else f"{count:,} images"
        parts.append(f"{DATASET_TITLES.get(name, name)} ({part})" if count else name)
    return f"Frozen features of {', '.join(parts)}." if parts else ""


def describe_finding(table: BoardTable, methods: Sequence[MethodBoard]) -> str:
    """Return who is first, and which entries gain over plain training."""
    leader = describe_leader(table.ranking) or "No row is ranked" * bool(table.names)
    return f"{leader}. {describe_gains(methods)}".rstrip() if leader else ""


def build_methods(track: int, data: str, board: MethodBoard) -> JsonObject:
    """Return the methods of a table with their gains. track: its place among the tables."""
    baselines = {name for row in board.rows for name in row.controls.values()}
    return {
        "title": board.track or board.board,
        "track": track,
        "finding": describe_gains([board]),
        "data": data,
        "kinds": [[kind, HEADINGS[kind]] for kind in board.kinds],
        "rows": [
            row.model_dump(mode="json", exclude={"scores"}) | {"baseline": row.name in baselines}
            for row in board.rows
        ],
        "notes": [*list_notes(board)],
        "panels": pack_json([*draw_heat_maps(board)]),
    }


def draw_heat_maps(board: MethodBoard) -> Iterator[JsonObject]:
    """Yield gains of the best methods by column: a map for each kind of control."""
    for kind in board.kinds:
        rows = [row for row in board.rows if kind in row.controls]
        if figure := draw_columns(board, rows[:MOST], kind, ""):
            note = f"Points {HEADINGS[kind]} by column."
            note += f" The best {MOST} of {len(rows)}." if len(rows) > MOST else ""
            yield build_panel(f"Gains {HEADINGS[kind]}", note, figure, is_wide=True)


def draw_average_ranks(table: BoardTable) -> Iterator[JsonObject]:
    """Yield the average ranks of the best rows."""
    if figure := draw_table_ranks(table, MOST):
        ranked = sum(map(len, table.ranking.tiers))
        only = f" of the best {MOST} of {ranked} rows" if ranked > MOST else ""
        note = (
            f"Average ranks{only} over {len(table.ranking.columns)} columns. Bars join what "
            "Nemenyi's test does not separate; it takes columns for independent, and those of one "
            "data set are not."
        )
        yield build_panel("Critical difference", note, figure)


def build_panel(title: str, note: str, figure: "Figure", is_wide: bool = False) -> JsonObject:
    """Return a figure with the text around it. is_wide: it takes the width of a desk."""
    svg = plotting.render_figure(figure, "svg").decode()
    return {"title": title, "note": note, "whole": is_wide, "svg": svg}


def list_facts(entry: BoardEntry) -> Iterator[tuple[str, JsonObject]]:
    """Yield the name and facts of an entry, then what differs of each of several seeds."""
    verification = entry.verification
    badge = {"verdict": verification.verdict, "words": str(verification)}
    facts = [build_network_facts(entry, network) for network in entry.seeds]
    shared = {k: v for k, v in facts[0].items() if all(other.get(k) == v for other in facts)}
    yield (
        entry.name,
        {
            **declaration_of(entry).model_dump(mode="json", exclude={"name"}),
            "digest": entry.digest,
            "badge": badge if str(verification) else None,
            "submitted": entry.file.submitted,
            **shared,
        },
    )
    for network, of_seed in zip(entry.seeds, facts, strict=True):
        if network.name != entry.name:
            differing = {key: value for key, value in of_seed.items() if key not in shared}
            yield network.name, {"entry": entry.name, **differing}


def build_network_facts(entry: BoardEntry, network: Network) -> JsonObject:
    """Return what is recorded of a network."""
    file, backbone = entry.file, network.facts
    made = {
        line.environment
        for line in file.results
        if file.models[line.model].identity == backbone.identity
    }
    images = dict.fromkeys(str(loaded.result.spec.image) for loaded in network.loaded)
    return {
        **backbone.model_dump(mode="json", exclude={"training", "pretraining_data"}),
        "preprocessing": backbone.preprocessing,
        "feature_choices": ", ".join(backbone.feature_spec.variant) or None,
        "images": list(images),
        "environments": [file.environments[i].model_dump(mode="json") for i in sorted(made)],
    }


def build_track(
    frame: ScoreFrame, methods: Sequence[MethodBoard], ranks: Sequence[RankInterval]
) -> JsonObject:
    """Return one table: its JSON, and what only the page has."""
    table = frame.table
    names, columns = table.names, table.ranking.columns
    compared = names[: count_paired_entries(len(names), len(columns))]
    content = build_table_json(frame)
    return {
        **content,
        "title": table.label or table.name,
        "finding": describe_finding(table, methods),
        "data": describe_images(content["columns"]),
        "notes": [
            describe_coverage(table),
            *describe_single_seeds(table),
            *([f"Bold: {BEST_RULE}"] if frame.compares else []),
        ],
        "warning": table.warning or None,
        "ranks": {rank.name: [rank.low, rank.high] for rank in ranks},
        "paired": len(compared),
        "pairs": pack_bytes(encode_pairs(table.contenders, compared, columns)),
        "histograms": pack_bytes(pack_histograms(table.contenders, names, columns)),
        "panels": pack_json([*draw_average_ranks(table)]),
    }
