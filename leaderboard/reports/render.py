"""Tables of a board as text, Markdown and JSON; text shows percent, JSON fractions."""

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fsbench.core.statistics import Paired, Score
from fsbench.core.tables import TextTable
from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns
from leaderboard.badges import SELF_REPORTED
from leaderboard.published import PublishedCell, PublishedEntry
from leaderboard.ranking.tiers import RankedEntry, Ranking, average_groups
from leaderboard.tables import BoardTable, group_by_dataset

MEAN_NOTE = "Overall: unweighted mean over the columns."
EPISODES_NOTE = "± is the 95 % interval over episodes or images, not over pretraining seeds."
SEEDS_NOTE = (
    "A row of several seeds is the mean over them, and its ± covers seeds and episodes (two-way "
    "analysis of variance, Student's t); in tiers its seed variance is at least the pooled one."
)
POOLED_NOTE = (
    "Rows of one seed are ranked apart, among each other, with the pooled seed spread of the other "
    "rows (overall {spread} points) in ± and tiers: their own may be wider, and no rule sees it."
)
SINGLE_NOTE = (
    "Rows of one seed are ranked apart, among each other; their ± and tiers cover episodes or "
    "images only, not pretraining seeds (a pooled spread needs three rows of several seeds)."
)
TIER_NOTE = (
    "Entries of one tier are not significantly worse than its leader (paired over shared episodes "
    f"or test images, p adjusted for all pairs of ranked entries, alpha 0.05). {MEAN_NOTE}"
)
HELD_OUT_NOTE = (
    "Probes are ranked at the learning rate chosen on held-out training images; in brackets the "
    "best rate and epoch on the test images, which is optimistic."
)
SELF_MARK = "ˢ"
SELF_NOTE = (
    f"{SELF_MARK} {SELF_REPORTED}: no signed badge, so only the submitter vouches for the number."
)
TRUST_NOTE = (
    "The checks of this board show that an entry fits its own records: means, episodes, classes "
    "and hashes. They do not show that a network gave these outcomes. A fabricated entry whose "
    "hashes fit passes them all and can state any accuracy, first place included. A signed badge "
    "says that somebody whom this board trusts has recomputed episodes, drawn at random, from the "
    "weights; it says nothing about how the weights were trained."
)
"""Warning beside entries without a signed badge."""
SEED_MARK = "↳ "
"""Before the name of a seed below its row."""
ONE_SEED = "◦"
"""Before a row of one seed."""
PUBLISHED_NOTE = "Copied from papers, no per-episode records: for reference only, not ranked."
SPREAD_NOTE = "± over seeds as printed; papers do not state whether SD, SE or CI."
"""The spread of a published accuracy, which is not an interval over episodes."""


def make_board_tables(views: Sequence[BoardTable], seeds: bool = False) -> list[TextTable]:
    """Return a table of measured entries per track, with all columns, then the published ones."""
    return [*(make_measured_table(view, seeds) for view in views), *make_published_tables(views)]


def make_overview_tables(views: Sequence[BoardTable], seeds: bool = False) -> list[TextTable]:
    """Return a table per track with one column per data set, then the published tables once."""
    measured = [make_overview_table(view, seeds) for view in views]
    return [*measured, *make_published_tables(views)]


def make_overview_table(view: BoardTable, seeds: bool = False) -> TextTable:
    """Return tier, entry, overall and one column per data set; `complete` has every column."""
    complete, shared = make_measured_table(view, seeds), SharedMarks.of(view)
    marked = [
        (tier, mark_single_seed(view, name) if name in view.names else name, *rest)
        for tier, name, *rest in complete.rows
    ]
    complete = replace(complete, rows=tuple(marked), keys=2)
    datasets = group_by_dataset(view.ranking.columns)
    has_means = len(datasets) < len(view.ranking.columns)
    note = "A data set is the mean of its columns; --wide prints all of them. " if has_means else ""
    parts = {name: list(by_seed.values()) for name, by_seed in view.seeds.items()} if seeds else {}
    averages = average_groups(
        {seed.name: view.contenders[seed.name] for of_row in parts.values() for seed in of_row},
        datasets,
    ) | {entry.name: entry.averages for entry in view.ranking.entries}
    rows = tuple(
        format_overview(line, view, datasets, averages[line.name], shared)
        for entry in view.ranking.entries
        for line in (entry, *parts.get(entry.name, ()))
    )
    table = TextTable(
        complete.title,
        ("tier", "entry", "seeds", "overall", *datasets, "in-domain", "flags"),
        rows,
        note + complete.note,
        complete.lead,
        keys=2,
        optional=("in-domain", "flags", "seeds"),
        complete=complete,
    ).share()
    table = table if view.seeds else table.without("seeds")
    return replace(table, title=" · ".join([table.title, *shared.words]))


@dataclass(frozen=True)
class SharedMarks:
    """Marks that all of several rows have, so that the title states them once."""

    flags: tuple[str, ...] = ()
    one_seed: bool = False
    self_reported: bool = False

    @classmethod
    def of(cls, view: BoardTable) -> "SharedMarks":
        names = view.names
        if len(names) < 2:
            return cls()
        return cls(
            tuple(f for f in view.flags[names[0]] if all(f in view.flags[name] for name in names)),
            not view.seeds,
            all(
                len(list_self_reported(view, entry.name)) == len(entry.scores)
                for entry in view.ranking.entries
            ),
        )

    @property
    def words(self) -> list[str]:
        reported = [SELF_REPORTED] * self.self_reported
        return [*self.flags, *reported, *["one seed per row"] * self.one_seed]


def format_overview(
    standing: RankedEntry,
    view: BoardTable,
    datasets: Mapping[str, Sequence[str]],
    averages: Mapping[str, Score],
    shared: SharedMarks,
) -> tuple[str, ...]:
    """Return the row of an entry or a seed, without the marks that all rows share."""
    name, source, is_row = standing.name, view.sources[standing.name], standing.name in view.names
    reported = set() if shared.self_reported else set(list_self_reported(view, name))
    mark = SELF_MARK if reported else ""
    hollow = name if shared.one_seed else mark_single_seed(view, name)
    means = [
        format_mean_interval(averages.get(dataset)) + SELF_MARK * (not reported.isdisjoint(columns))
        for dataset, columns in datasets.items()
    ]
    return (
        str(format_tier(standing)) if is_row else "",
        hollow if is_row else SEED_MARK + name,
        str(len(view.seeds.get(name, "1"))) if is_row else "",
        "-" if standing.overall is None else to_percent(standing.overall) + mark,
        *means,
        "-" if source is None else to_percent(source) + mark,
        ", ".join(flag for flag in view.flags[name] if flag not in shared.flags) or "-",
    )


def format_tier(standing: RankedEntry) -> int | str:
    """Return the tier of a row, hollow if it is ranked apart, or a dash."""
    if standing.tier is None:
        return "-"
    return f"{ONE_SEED}{standing.tier}" if standing.reason else standing.tier


def mark_single_seed(view: BoardTable, name: str) -> str:
    """Return the name of a row, hollow if it has one seed."""
    return name if name in view.seeds else f"{ONE_SEED} {name}"


def describe_ranking(view: BoardTable) -> tuple[str, ...]:
    """Return the finding of a table in a sentence, what it does not show, and any warning."""
    warnings = [f"Warning: {view.warning}"] if view.warning else []
    leader = describe_leader(view.ranking)
    return (f"{leader}.", *describe_single_seeds(view), *warnings) if leader else tuple(warnings)


def describe_leader(ranking: Ranking) -> str:
    """Return who is first and what that shows, as a sentence without its end; empty if nobody."""
    if not ranking.tiers:
        return ""
    best, ranked = ranking.tiers[0], sum(map(len, ranking.tiers))
    of = " of several seeds" * bool(ranking.apart)
    leader = f"{best[0].name} ({to_percent(best[0].overall or 0.0)} %)"
    if ranked == 1:
        return f"{leader} is the only ranked entry{of}: it is compared with nothing"
    if len(best) == 1:
        return f"{leader} alone is in tier 1 of {ranked} ranked entries{of}"
    return (
        f"{len(best)} of {ranked} ranked entries{of} share tier 1: which of them is best is not "
        f"decided; {leader} has the highest mean"
    )


def describe_single_seeds(view: BoardTable) -> list[str]:
    """Return what a row of one seed does not show; nothing where no row has one."""
    if all(entry.name in view.seeds for entry in view.ranking.entries):
        return []
    covers = "± and tiers cover the draw of episodes or test images, not another seed."
    if view.seeds and view.pooled_spread is not None:
        covers = "± and tiers take the seed spread of the rows with several seeds."
    apart = "ranked apart; " * bool(view.ranking.apart)
    return [f"{ONE_SEED} one pretraining seed: {apart}{covers}"]


def describe_coverage(view: BoardTable) -> str:
    """Return what the intervals of a table cover, in sentences."""
    if not view.seeds:
        return EPISODES_NOTE
    if not view.ranking.apart:
        return SEEDS_NOTE
    spread = view.pooled_spread
    single = SINGLE_NOTE if spread is None else POOLED_NOTE.format(spread=to_percent(spread))
    return f"{SEEDS_NOTE} {single}"


def make_measured_table(view: BoardTable, seeds: bool = False) -> TextTable:
    """Return one line per row: tier, overall and every column in percent, below the finding.

    seeds: whether the seeds of a row are lines below it.
    """
    columns = view.ranking.columns
    short, common = shorten_columns(columns)
    kind = view.track.label if view.track and view.track.data else common
    title = f"{view.name}{' (official)' if view.official else ''}{kind and f': {kind}'}"
    rows = [
        line
        for entry in view.ranking.entries
        for line in (
            format_entry(entry, view),
            *(format_seed(seed, view) for seed in view.seeds.get(entry.name, {}).values() if seeds),
        )
    ]
    notes = [TIER_NOTE, describe_coverage(view), *list_unranked(view.ranking)]
    notes += [HELD_OUT_NOTE] if any(view.best_on_test.values()) else []
    note = " ".join(notes) if rows else "No entries yet: fsbench submit RESULTS --board DIR"
    if any(SELF_MARK in text for row in rows for text in row):
        note = f"{note} {SELF_NOTE}"
    header = ("tier", "entry", "overall", *short, "source", "flags")
    if view.seeds:
        header = ("tier", "entry", "seeds", *header[2:])
    return TextTable(title, header, tuple(rows), note, describe_ranking(view))


def format_entry(standing: RankedEntry, view: BoardTable) -> tuple[str, ...]:
    """Return the row of an entry; numbers without a signed badge are marked."""
    source, self_reported = view.sources[standing.name], list_self_reported(view, standing.name)
    mark = SELF_MARK if self_reported else ""
    return (
        str(format_tier(standing)),
        standing.name,
        *([str(len(view.seeds.get(standing.name, "1")))] if view.seeds else []),
        "-" if standing.overall is None else to_percent(standing.overall) + mark,
        *(
            format_measured(standing, view, column) + (SELF_MARK if column in self_reported else "")
            for column in view.ranking.columns
        ),
        "-" if source is None else to_percent(source) + mark,
        ", ".join(view.flags[standing.name]) or "-",
    )


def format_seed(seed: RankedEntry, view: BoardTable) -> tuple[str, ...]:
    """Return the line of one seed below its row; its intervals cover episodes only."""
    _, name, _, *rest = format_entry(seed, view)
    return ("", f"{SEED_MARK}{name}", "", *rest)


def list_self_reported(view: BoardTable, name: str) -> list[str]:
    """Return the columns of an entry that no signed badge covers."""
    flags = view.cell_flags.get(name, {})
    return [column for column in view.ranking.columns if SELF_REPORTED in flags.get(column, ())]


def format_measured(standing: RankedEntry, view: BoardTable, column: str) -> str:
    """Return e.g. 57.75 ± 0.88 [58.10], the last one a probe's best accuracy on test."""
    second = view.best_on_test.get(standing.name, {}).get(column)
    text = format_mean_interval(standing.scores.get(column))
    return text if second is None else f"{text} [{to_percent(second.mean)}]"


def list_unranked(ranking: Ranking) -> list[str]:
    """Return why entries are not ranked, one sentence per reason."""
    names_by_reason: dict[str, list[str]] = {}
    for standing in ranking.unranked:
        names_by_reason.setdefault(standing.reason, []).append(standing.name)
    return [f"Unranked, {', '.join(names)}: {why}." for why, names in names_by_reason.items()]


def make_published_tables(views: Sequence[BoardTable]) -> list[TextTable]:
    """Return the tables of published entries beside these tables that are not empty, each once."""
    cells_by_entry: dict[str, dict[str, PublishedCell]] = {}
    published = {entry.name: entry for view in views for entry in view.published}
    for view in views:
        datasets = {ColumnId.parse(column).task.dataset for column in view.ranking.columns}
        for entry in view.published:
            cells = {c.task: c for c in entry.cells if c.in_domain or c.dataset in datasets}
            cells_by_entry.setdefault(entry.name, {}).update(cells)
    merged = [
        entry.model_copy(update={"cells": tuple(cells_by_entry[name].values())})
        for name, entry in published.items()
    ]
    tables = (make_published_table(merged), make_in_domain_table(merged))
    return [table for table in tables if table.rows]


def make_published_table(published: Sequence[PublishedEntry]) -> TextTable:
    """Return published numbers on the board's data sets: a row per task, a column per entry."""
    entries = [entry for entry in published if entry.transfers]
    tasks = list(dict.fromkeys(cell.task for entry in entries for cell in entry.cells))
    rows = [(task, *(format_published(entry.cell(task)) for entry in entries)) for task in tasks]
    header = ("task", *(entry.name for entry in entries))
    return TextTable("published", header, tuple(rows), make_published_note(entries))


def make_in_domain_table(published: Sequence[PublishedEntry]) -> TextTable:
    """Return published in-domain accuracies: a row per number."""
    entries = [entry for entry in published if not entry.transfers]
    rows = [
        (entry.name, entry.backbone, cell.task, format_published(cell), cell.table)
        for entry in entries
        for cell in entry.cells
    ]
    header = ("entry", "backbone", "task", "accuracy", "table")
    return TextTable("published, in-domain", header, tuple(rows), make_published_note(entries))


def make_published_note(entries: Sequence[PublishedEntry]) -> str:
    spread = any(cell.spread is not None for entry in entries for cell in entry.cells)
    sources = "; ".join(dict.fromkeys(entry.source for entry in entries))
    return f"{PUBLISHED_NOTE} {sources}.{f' {SPREAD_NOTE}' if spread else ''}"


def to_percent(fraction: float, sign: str = "") -> str:
    """Return percent with two decimals; sign: '+' to write it of positive numbers as well."""
    return f"{100 * fraction:{sign}.2f}"


def format_mean_interval(score: Score | None) -> str:
    """Return e.g. 57.75 ± 0.88."""
    if score is None:
        return "-"
    half = "" if math.isnan(score.ci95) else f" ± {to_percent(score.ci95)}"
    return to_percent(score.mean) + half


def format_published(cell: PublishedCell | None) -> str:
    """Return e.g. 57.75 ± 0.88; 65.93 (± 0.12) for a spread over seeds; * marks a note."""
    if cell is None:
        return "-"
    score = Score(cell.mean, math.nan if cell.ci95 is None else cell.ci95, 0)
    spread = "" if cell.spread is None else f" (± {to_percent(cell.spread)})"
    return format_mean_interval(score) + spread + ("*" if cell.note else "")


def render_board(views: Sequence[BoardTable], seeds: bool = False) -> str:
    """Return GitHub Markdown; every text is escaped."""
    return "\n\n".join(map(render_table, make_board_tables(views, seeds))) + "\n"


def render_table(table: TextTable) -> str:
    """Return a heading, the sentences under the title, the table and its note."""
    head = "| " + " | ".join(map(escape_markdown, table.columns)) + " |"
    rule = "|" + "|".join(" --- " for _ in table.columns) + "|"
    body = ["| " + " | ".join(map(escape_markdown, row)) + " |" for row in table.rows]
    texts = [escape_markdown(text) for text in (" ".join(table.lead), table.note)]
    lead, note = ([text, ""] if text else [] for text in texts)
    lines = [f"### {escape_markdown(table.title)}", "", *lead, head, rule, *body, "", *note]
    return "\n".join(lines).rstrip("\n")


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown and HTML show it literally."""
    plain = " ".join(html.escape(text, quote=False).split())
    return re.sub(r"([\\`*_\[\]|#])", r"\\\1", plain)


def build_board_json(view: BoardTable) -> dict[str, Any]:
    """Return everything in the table as data; fractions, null if unknown."""
    ranking = view.ranking
    return {
        "board": view.name,
        "official": view.official,
        "track": view.track and view.track.model_dump(mode="json"),
        "alpha": ranking.alpha,
        "rule": f"{TIER_NOTE} {describe_coverage(view)}",
        **({"warning": view.warning} if view.warning else {}),
        "columns": list(ranking.columns),
        "entries": [build_entry_json(standing, view) for standing in ranking.entries],
        "published": [entry.model_dump(mode="json") for entry in view.published],
    }


def build_entry_json(standing: RankedEntry, view: BoardTable) -> dict[str, Any]:
    scores = {c: build_score_json(score) for c, score in standing.scores.items()}
    for column, second in view.best_on_test.get(standing.name, {}).items():
        scores[column]["best_on_test"] = second.mean
    behind = build_gap_json(standing.behind, standing.p)
    if behind:
        behind["p_adjusted"] = behind.pop("p_holm")
    reason = {"reason": standing.reason} if standing.tier is None or standing.reason else {}
    return {
        "name": standing.name,
        "tier": standing.tier,
        **reason,
        "overall": standing.overall,
        "scores": scores,
        "missing": list(standing.missing),
        "behind_leader": behind,
        "source_accuracy": view.sources[standing.name],
        "flags": list(view.flags[standing.name]),
        "self_reported": list_self_reported(view, standing.name),
        "link": view.links[standing.name],
        **build_seeds_json(standing, view),
    }


def build_seeds_json(standing: RankedEntry, view: BoardTable) -> dict[str, Any]:
    """Return what the intervals of a row cover, and its seeds."""
    seeds = [
        {
            "seed": number,
            "name": seed.name,
            "overall": seed.overall,
            "scores": {c: build_score_json(score) for c, score in seed.scores.items()},
        }
        for number, seed in view.seeds.get(standing.name, {}).items()
    ]
    return {"covers": standing.covers, "seeds": seeds}


def build_score_json(score: Score) -> dict[str, Any]:
    return {"mean": score.mean, "ci95": finite_or_none(score.ci95), "n": score.n}


def build_gap_json(gap: Paired | None, p: float | None) -> dict[str, Any] | None:
    """Return a gap as data. p: of that gap, adjusted by Holm."""
    ends = gap and {"gap": gap.gap, "ci95": finite_or_none(gap.ci95), "p_holm": p, "n": gap.n}
    return ends or None


def finite_or_none(value: float) -> float | None:
    """Return None for nan and infinity, which JSON cannot write."""
    return value if math.isfinite(value) else None
