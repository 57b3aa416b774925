"""Tables of leaderboard/studies/real/README.md, from the committed entries."""

from collections.abc import Callable
from functools import cache
from statistics import median

import numpy as np
from support.studies import STUDIES, Table

from fsbench.core.tasks import ColumnId
from leaderboard.controls import Match
from leaderboard.methods import Gain, compute_gain
from leaderboard.ranking.stability import Stability
from leaderboard.ranking.tiers import RankedEntry
from leaderboard.render.md import render_table
from leaderboard.render.methods import format_gain
from leaderboard.render.notes import to_percent
from leaderboard.render.stability import make_stability_tables
from leaderboard.tables import BoardTable, rank_board

REAL = STUDIES / "real"
HEADS = ("linear", "logistic", "centroid", "affine", "probe held-out")
COMPARED = (
    ("lite1", 224, "lite0", 224),
    ("lite2", 224, "lite0", 224),
    ("lite1", 240, "lite1", 224),
    ("lite2", 260, "lite2", 224),
    ("lite1", 240, "lite0", 224),
    ("lite2", 260, "lite0", 224),
)
"""Pairs whose gaps the page discusses: a network and its size, another network and its size."""


@cache
def rank_real() -> dict[tuple[str, int], BoardTable]:
    """Return the tables of the board by head and size of the images."""
    tables = rank_board(REAL / "entries")
    return {(str(t.track.adaptation), t.track.input_size): t for t in tables if t.track}


def compute_control_gain(table: BoardTable, name: str) -> Gain | None:
    """Return the gain over random weights of the same architecture; None for these themselves."""
    control = table.rows.get(f"{name.partition('-')[0]}-random")
    if control is None or control.name == name:
        return None
    return compute_gain(Match(table.rows[name], control, is_paired=False), table.ranking.columns)


def list_entries(size: int) -> Table:
    """Return the ranking with linear heads: accuracies by data set, 1, 5, 20 and 50 shots."""
    table = rank_real()["linear", size]
    return [describe_entry(table, entry) for entry in table.ranking.entries if not entry.missing]


def describe_entry(table: BoardTable, entry: RankedEntry) -> dict[str, str]:
    line = {"entry": entry.name, "tier": str(entry.tier or "-")}
    line["overall"] = to_percent(entry.overall) if entry.overall is not None else "-"
    line["over random init"] = format_gain(compute_control_gain(table, entry.name))
    by_dataset: dict[str, list[str]] = {}
    for name in sorted(entry.scores, key=ColumnId.parse):
        accuracy = f"{100 * entry.scores[name].mean:.1f}"
        by_dataset.setdefault(ColumnId.parse(name).task.dataset, []).append(accuracy)
    return line | {dataset: " ".join(values) for dataset, values in by_dataset.items()}


def list_heads() -> Table:
    """Return the overall accuracy of every entry with each head."""
    keys = dict.fromkeys((size, name) for (_, size), t in rank_real().items() for name in t.rows)
    return [
        {"entry": name, "px": str(size)}
        | {head: format_overall(head, size, name) for head in HEADS}
        for size, name in sorted(keys, key=lambda key: (-key[0], key[1]))
    ]


def format_overall(head: str, size: int, name: str) -> str:
    table = rank_real().get((head, size))
    scores = {entry.name: entry.overall for entry in table.ranking.entries} if table else {}
    overall = scores.get(name)
    return "-" if overall is None else to_percent(overall)


def compare_sizes() -> Table:
    """Return gaps of networks and sizes with linear heads, by data set, over equal episodes."""
    lines: Table = []
    for name, size, other, other_size in COMPARED:
        tables = rank_real()["linear", size], rank_real()["linear", other_size]
        rows = tables[0].rows[name].outcomes, tables[1].rows[other].outcomes
        gaps: dict[str, list[np.ndarray]] = {}
        for column in tables[0].ranking.columns:
            same = column.replace(f"{size}px", f"{other_size}px")
            ours, theirs = rows[0][column], rows[1][same]
            assert np.array_equal(ours.index, theirs.index)
            dataset = ColumnId.parse(column).task.dataset
            gaps.setdefault(dataset, []).append(100 * (ours.values - theirs.values))
        texts = {
            dataset: ", ".join(
                f"{gap.mean():+.1f} ± {1.96 * gap.std(ddof=1) / len(gap) ** 0.5:.1f}" for gap in of
            )
            for dataset, of in gaps.items()
        }
        lines.append(
            {"gap of": f"{name} at {size} px", "over": f"{other} at {other_size} px"} | texts
        )
    return lines


def list_costs() -> Table:
    """Return what the features of each network cost; speed and memory are those of the machine."""
    lines: Table = []
    for (head, size), table in sorted(rank_real().items(), key=lambda item: -item[0][1]):
        for name, row in table.rows.items() if head == "linear" else ():
            costs = [r.provenance.cost for of in row.results.values() for r in of]
            measured = [cost for cost in costs if cost]
            lines.append(
                {
                    "entry": name,
                    "px": str(size),
                    "parameters (M)": f"{row.facts.n_parameters / 1e6:.2f}",
                    "MACs (M)": f"{(measured[0].macs or 0) / 1e6:.1f}",
                    "images/s": f"{median(c.images_per_second for c in measured):.3g}",
                    "memory (MiB)": f"{max(c.peak_memory_bytes for c in measured) / 2**20:.0f}",
                }
            )
    return lines


@cache
def compare_choices() -> Stability:
    """Return the leaders under every choice, as `leaderboard stats --stability`.

    Left out are tables of one network and its control.
    """
    tables = [table for (_, size), table in rank_real().items() if size in (224, 32)]
    return Stability.of({table.label: (table.ranking, table.contenders) for table in tables})


def draw_stability() -> str:
    """Draw who is first under how many choices of the board; the figures show the choices."""
    return render_table(make_stability_tables(compare_choices(), "real")[0].complete)


TABLES: dict[str, Callable[[], str | Table]] = {
    "real_224": lambda: list_entries(224),
    "real_32": lambda: list_entries(32),
    "real_heads": list_heads,
    "real_sizes": compare_sizes,
    "real_costs": list_costs,
    "real_stability": draw_stability,
}
