"""A board as rows of a table, as Markdown, as JSON. Percent appears here and nowhere else."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fsbench.core.statistics import Score
from fsbench.core.tasks import ColumnId
from leaderboard.board.published import PublishedCell, PublishedEntry
from leaderboard.board.standing import View, shared_tasks
from leaderboard.ranking.rank import Standing

RULE = (
    "Entries of one tier are not significantly worse than its leader (paired over shared episodes "
    "or test images, Holm, alpha 0.05). Overall: unweighted mean over the columns. "
    "± is the 95 % interval over episodes or images, not over pretraining seeds."
)
PUBLISHED = (
    "Printed in papers, without outcomes: not ranked, and not comparable with the rows above."
)
SPREAD = "(±): as printed, over seeds; the papers do not say what it is."
"""What stands behind a published number that is no interval over episodes."""


@dataclass(frozen=True)
class Table:
    """A titled table of plain text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(view: View) -> list[Table]:
    """The measured entries, then the published ones apart."""
    return [measured(view), *(t for t in (printed(view), in_domain(view)) if t.rows)]


def measured(view: View) -> Table:
    """One row an entry: tier, overall and every column in percent."""
    columns = view.ranking.columns
    short, common = shorten(columns)
    kind = view.track.label if view.track and view.track.data else common
    title = f"{view.name}{' (official)' if view.official else ''}{kind and f': {kind}'}"
    rows = [row(standing, view) for standing in view.ranking.standings]
    note = RULE if rows else "No entries yet: fsbench submit RESULTS --board DIR"
    return Table(title, ("tier", "entry", "overall", *short, "source", "flags"), tuple(rows), note)


def row(standing: Standing, view: View) -> tuple[str, ...]:
    source = view.sources[standing.name]
    return (
        "-" if standing.tier is None else str(standing.tier),
        standing.name,
        "-" if standing.overall is None else percent(standing.overall),
        *(interval(standing.scores.get(column)) for column in view.ranking.columns),
        "-" if source is None else percent(source),
        ", ".join(view.flags[standing.name]) or "-",
    )


def printed(view: View) -> Table:
    """Published numbers on the board's data sets: one row a task, one column an entry."""
    entries = [entry for entry in view.published if entry.transfers]
    datasets = {ColumnId.parse(column).task.dataset for column in view.ranking.columns}
    tasks = list(dict.fromkeys(t for e in entries for t in shared_tasks(e, datasets)))
    rows = [(task, *(number(entry.cell(task)) for entry in entries)) for task in tasks]
    header = ("task", *(entry.name for entry in entries))
    return Table("published", header, tuple(rows), note(entries))


def in_domain(view: View) -> Table:
    """Published accuracies on the images of pretraining alone: one row a number."""
    entries = [entry for entry in view.published if not entry.transfers]
    rows = [
        (entry.name, entry.backbone, cell.task, number(cell), cell.table)
        for entry in entries
        for cell in entry.cells
    ]
    header = ("entry", "backbone", "task", "accuracy", "table")
    return Table("published, in-domain", header, tuple(rows), note(entries))


def note(entries: Sequence[PublishedEntry]) -> str:
    spread = any(cell.spread is not None for entry in entries for cell in entry.cells)
    sources = "; ".join(dict.fromkeys(entry.source for entry in entries))
    return f"{PUBLISHED} {sources}.{f' {SPREAD}' if spread else ''}"


def percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}"


def interval(score: Score | None) -> str:
    """e.g. 57.75 ± 0.88"""
    if score is None:
        return "-"
    half = "" if math.isnan(score.ci95) else f" ± {percent(score.ci95)}"
    return percent(score.mean) + half


def number(cell: PublishedCell | None) -> str:
    """e.g. 57.75 ± 0.88, 65.93 (± 0.12) for what is no interval over episodes; * has a note."""
    if cell is None:
        return "-"
    score = Score(cell.mean, math.nan if cell.ci95 is None else cell.ci95, 0)
    spread = "" if cell.spread is None else f" (± {percent(cell.spread)})"
    return interval(score) + spread + ("*" if cell.note else "")


def shorten(columns: Sequence[str]) -> tuple[list[str], str]:
    """Return column labels without the parts that all columns share, and those parts."""
    parts, common = split_labels(columns)
    return [f"{dataset}:{rest}" for dataset, rest in parts], common


def split_labels(columns: Sequence[str]) -> tuple[list[tuple[str, str]], str]:
    """Return data set and rest of each short label, and the parts that all columns share."""
    ids = [ColumnId.parse(column) for column in columns]
    modes = {column.task.mode for column in ids if column.task.mode}
    sizes = {column.size for column in ids}
    several = len(ids) > 1
    shared = [*modes] * (several and len(modes) == 1) + [*sizes] * (several and len(sizes) == 1)

    def rest(column: ColumnId) -> str:
        setting = column.task.shape if column.task.mode in shared else column.task.setting
        size = () if column.size in shared else (column.size,)
        return " ".join([setting, *size, *column.variant])

    return [(column.task.dataset, rest(column)) for column in ids], " ".join(shared)


def markdown(view: View) -> str:
    """GitHub Markdown; every text escaped."""
    return "\n\n".join(markdown_table(table) for table in tables(view)) + "\n"


def markdown_table(table: Table) -> str:
    head = "| " + " | ".join(map(escape, table.columns)) + " |"
    rule = "|" + "|".join(" --- " for _ in table.columns) + "|"
    body = ["| " + " | ".join(map(escape, row)) + " |" for row in table.rows]
    return "\n".join([f"### {escape(table.title)}", "", head, rule, *body, "", escape(table.note)])


def escape(text: str) -> str:
    """Text that Markdown and HTML show as it is."""
    plain = " ".join(html.escape(text, quote=False).split())
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", plain)


def as_json(view: View) -> dict[str, Any]:
    """Everything in the table as data; fractions, null where nothing is known."""
    ranking = view.ranking
    return {
        "board": view.name,
        "official": view.official,
        "track": view.track and view.track.model_dump(mode="json"),
        "alpha": ranking.alpha,
        "rule": RULE,
        "columns": list(ranking.columns),
        "entries": [standing_json(standing, view) for standing in ranking.standings],
        "published": [entry.model_dump(mode="json") for entry in view.published],
    }


def standing_json(standing: Standing, view: View) -> dict[str, Any]:
    behind = standing.behind
    return {
        "name": standing.name,
        "tier": standing.tier,
        "overall": standing.overall,
        "scores": {c: score_json(score) for c, score in standing.scores.items()},
        "missing": list(standing.missing),
        "behind_leader": behind
        and {"gap": behind.gap, "ci95": finite(behind.ci95), "p_holm": standing.p, "n": behind.n},
        "source_accuracy": view.sources[standing.name],
        "flags": list(view.flags[standing.name]),
        "link": view.links[standing.name],
    }


def score_json(score: Score) -> dict[str, Any]:
    return {"mean": score.mean, "ci95": finite(score.ci95), "n": score.n}


def finite(value: float) -> float | None:
    """JSON knows no NaN."""
    return value if math.isfinite(value) else None
