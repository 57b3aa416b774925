"""Report tables: numbers, marks of significance, flags, and the caption that explains them.

Best: the highest mean of a column and every entry that is not significantly worse than it (the rule
of the board, leaderboard/ranking/tiers.py, on that column alone). Against the control: paired over
shared outcomes, Student's t with the variance of seeds where rows have several, Holm over the
column's comparisons with the control.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby
from math import isnan

import numpy as np

from fsbench.core import statistics
from fsbench.core.schema import BackboneFacts
from fsbench.core.statistics import Paired, Score
from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns, split_labels
from leaderboard.badges import SELF_REPORTED
from leaderboard.ranking.gaps import compute_student_interval
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.tiers import (
    ALPHA,
    RankedEntry,
    compare_with_leader,
    find_worse,
)
from leaderboard.reports.render import SEED_MARK, describe_coverage, list_unranked, to_percent
from leaderboard.tables import BoardTable

BETTER, WORSE = "†", "‡"
FLAGS = {
    "subset": "other image counts than official",
    "limited": "a quick test on few episodes",
    "short": "fewer episodes than the spec",
    "custom": "user images",
    "derived": "a train/test split made by fsbench",
    "shard": "a part of the episodes",
    SELF_REPORTED: "no signed badge",
}
INTERVAL_NOTE = (
    "Accuracy in percent with the half-width of its 95 % interval, 1.96 s / sqrt(n) over the "
    "episodes or test images, not over pretraining seeds."
)
SEED_INTERVAL_NOTE = "Accuracy in percent with the half-width of its 95 % interval."
BEST_NOTE = (
    "Bold: the best of a column and all that are not significantly worse (paired over shared "
    f"episodes or images, p adjusted for all pairs of entries, alpha {ALPHA:g})."
)
DATASET_TITLES = {
    "chestx": "ChestX",
    "isic": "ISIC",
    "eurosat": "EuroSAT",
    "cropdisease": "CropDisease",
    "flowers102": "Flowers-102",
    "cub200": "CUB-200",
    "aircraft": "Aircraft",
    "mit67": "MIT-67",
    "dogs": "Stanford Dogs",
}
"""Names of data sets in tables of papers, in the order of the papers' columns."""
OVERALL_NOTE = "Overall: unweighted mean over the columns; '-' if one is missing."
SOURCE_NOTE = "Source: accuracy on the pretraining data, which no badge covers."


@dataclass(frozen=True)
class ReportScore:
    """A mean with its interval, as fractions.

    best: highest of its column, or not significantly worse; gap: over the control, None for the
    control itself and without a control; p: of that gap, adjusted by Holm; flags: why the number is
    not official; is_judged: whether the gap may be marked, which no recipe of one seed may.
    """

    score: Score
    best: bool
    gap: Paired | None = None
    p: float | None = None
    flags: tuple[str, ...] = ()
    is_judged: bool = True

    def mark(self, alpha: float = ALPHA) -> str:
        """Return † if significantly better than the control, ‡ if worse, else nothing."""
        if self.gap is None or self.p is None or self.p >= alpha or not self.gap.gap:
            return ""
        if not self.is_judged:
            return ""
        return BETTER if self.gap.gap > 0 else WORSE


@dataclass(frozen=True)
class ReportRow:
    """A row: scores by column, score of the mean over all columns, in-domain accuracy.

    overall: None if a column is missing, or if there is only one; seeds: of a recipe with several,
    by the name of the entry; is_seed: whether it is one of these.
    """

    name: str
    tier: int | None
    cells: Mapping[str, ReportScore]
    overall: ReportScore | None
    source: float | None
    seeds: "Mapping[str, ReportRow]" = field(default_factory=dict)
    is_seed: bool = False


@dataclass(frozen=True)
class ReportTable:
    """One table: entries of one track, best first. notes: further sentences for the caption."""

    title: str
    track: str
    columns: tuple[str, ...]
    rows: tuple[ReportRow, ...]
    control: str | None = None
    notes: tuple[str, ...] = ()
    intervals: str = INTERVAL_NOTE

    @cached_property
    def has_overall(self) -> bool:
        return any(row.overall for row in self.rows)

    @cached_property
    def has_source(self) -> bool:
        return any(row.source is not None for row in self.rows)

    @cached_property
    def compares(self) -> bool:
        """Return whether there are several models, of which one can be the best."""
        return sum(not row.is_seed for row in self.rows) > 1

    def bolds(self, cell: ReportScore) -> bool:
        """Return whether a score is set in bold; never where there is one model only."""
        return self.compares and cell.best

    @property
    def marked(self) -> bool:
        """Return whether the control is in this table, so that rows can be compared with it."""
        return any(row.name == self.control for row in self.rows)

    @cached_property
    def letters(self) -> dict[str, str]:
        """Flag -> the letter that marks it; after 26 flags, numbers."""
        cells = [cell for row in self.rows for cell in row.cells.values()]
        flags = dict.fromkeys(flag for cell in cells for flag in cell.flags)
        return {flag: chr(ord("a") + i) if i < 26 else str(i) for i, flag in enumerate(flags)}


def build_report_table(
    view: BoardTable, control: str | None = None, notes: Sequence[str] = (), seeds: bool = False
) -> ReportTable:
    """Build the report of a board table; a control that is not in it is ignored.

    control: a row, or a seed of it; seeds: whether the seeds of a row are lines below it.
    """
    columns = view.ranking.columns
    control = control and view.find_row(control)
    cells = {c: score_column(view, c, control) for c in columns}
    overall = score_mean(view, control) if len(columns) > 1 else {}
    # below two seeds no gap of a recipe is marked, as on the method board
    runs = {name for name, facts in view.backbones.items() if is_run(facts)}

    def build_row(entry: RankedEntry) -> ReportRow:
        name, flags = entry.name, view.cell_flags.get(entry.name, {})
        judged = control not in runs and name not in runs
        scores = {
            c: replace(cells[c][name], flags=flags.get(c, ()), is_judged=judged)
            if name in cells[c]
            else ReportScore(score, False, flags=flags.get(c, ()))
            for c, score in entry.scores.items()
        }
        mean = overall.get(name)
        united = tuple(dict.fromkeys(chain(*flags.values())))
        mean = mean and replace(mean, flags=united, is_judged=judged)
        tier = None if entry.reason else entry.tier
        return ReportRow(name, tier, scores, mean, view.sources[name])

    rows = []
    for entry in view.ranking.entries:  # a recursive function would keep the whole board alive
        parts = view.seeds.get(entry.name, {}).values()
        by_entry = {seed.name: replace(build_row(seed), is_seed=True) for seed in parts}
        rows.append(replace(build_row(entry), seeds=by_entry))
    lines = [line for row in rows for line in (row, *(row.seeds.values() if seeds else ()))]
    track = view.track
    title = f"{view.name} {track.data}" if track and track.data else view.name
    label = track.label if track else ""
    warnings = [f"Warning: {view.warning}"] if view.warning else []
    listed = (*list_unranked(view.ranking), *notes, *warnings)
    return ReportTable(
        title,
        label,
        columns,
        tuple(lines),
        control,
        listed,
        f"{SEED_INTERVAL_NOTE} {describe_coverage(view)}" if view.seeds else INTERVAL_NOTE,
    )


def score_column(view: BoardTable, column: str, control: str | None) -> dict[str, ReportScore]:
    """Return the scores of all entries that have this column."""
    entries = [entry for entry in view.ranking.entries if column in entry.scores]
    scores = {entry.name: entry.scores[column] for entry in entries}
    order = sorted(scores, key=lambda name: (-scores[name].mean, name))
    pairs = PairwiseGaps({name: [view.contenders[name][column]] for name in order})
    excluded = {e.name for e in view.ranking.entries if e.reason and not e.missing}
    eligible = [name for name in order if name not in excluded]
    gaps = compare_with_control(pairs, order, control)
    return mark_scores(scores, find_best(pairs, eligible), gaps)


def score_mean(view: BoardTable, control: str | None) -> dict[str, ReportScore]:
    """Return the scores of the mean over all columns, for entries that have them all.

    Entries of the first tier are the best.
    """
    whole = view.seed_errors.outcomes
    gaps = compare_with_control(PairwiseGaps(whole), list(whole), control)
    best = {s.name for tier in view.ranking.tiers[:1] for s in tier}
    return mark_scores(view.seed_errors.scores, best, gaps)


def mark_scores(
    scores: Mapping[str, Score], best: set[str], gaps: Mapping[str, Paired]
) -> dict[str, ReportScore]:
    """Return the scores of one column; Holm over its comparisons with the control."""
    adjusted = dict(zip(gaps, statistics.holm([gap.p for gap in gaps.values()]), strict=True))
    return {n: ReportScore(s, n in best, gaps.get(n), adjusted.get(n)) for n, s in scores.items()}


def find_best(pairs: PairwiseGaps, order: Sequence[str]) -> set[str]:
    """Return the best entry and all that are not significantly worse."""
    if not order:
        return set()
    gaps, adjusted = compare_with_leader(pairs, order)
    compared = {gaps.names[i] for i in np.flatnonzero(~np.isnan(adjusted))}
    return {order[0], *compared - find_worse(gaps, adjusted, ALPHA)}


def compare_with_control(
    pairs: PairwiseGaps, order: Sequence[str], control: str | None
) -> dict[str, Paired]:
    """Return the gap of every other entry over the control; nothing if it is not in `order`.

    p is of Student's t.
    """
    if control not in order:
        return {}
    behind = pairs.behind(str(control), [name for name in order if name != control])
    gaps = {name: gap._replace(gap=0.0 - gap.gap) for name, gap in behind.items()}
    return {name: judge_by_student(gap) for name, gap in gaps.items()}


def judge_by_student(gap: Paired) -> Paired:
    """Return the gap with p by Student's t; as it is without a finite error."""
    if not gap.se > 0 or isnan(gap.freedom):
        return gap
    return gap._replace(p=compute_student_interval(gap.gap, gap.se, gap.freedom).p)


def is_run(facts: BackboneFacts) -> bool:
    """Return whether a backbone is one draw of a recipe or of an initialization."""
    return facts.training is not None or facts.random_init is not None


def make_caption_title(table: ReportTable) -> str:
    """Return the name of the table and what all its columns share."""
    kind = shorten_columns(table.columns)[1] or table.track
    return f"{table.title}: {kind}" if kind else table.title


def order_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return columns with data sets in the papers' order, other data sets last."""
    order = list(DATASET_TITLES)

    def place(column: str) -> int:
        dataset = ColumnId.parse(column).task.dataset
        return order.index(dataset) if dataset in order else len(order)

    return tuple(sorted(columns, key=place))


def group_labels(columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Group neighbouring columns of one data set: [('eurosat', ['5w1s', '5w5s']), ...]."""
    parts = split_labels(columns)[0]
    return [(key, [rest for _, rest in group]) for key, group in groupby(parts, lambda p: p[0])]


def write_caption(table: ReportTable) -> list[str]:
    """Return the sentences below the table."""
    sentences = [table.intervals, *([BEST_NOTE] if table.compares else [])]
    if table.marked:
        scores = [score for row in table.rows for score in (*row.cells.values(), row.overall)]
        judged = all(score.is_judged for score in scores if score)
        sentences.append(
            f"{BETTER} significantly better and {WORSE} worse than {table.control} (paired, Holm "
            f"over the comparisons with it in a column, alpha {ALPHA:g}"
            f"{'' if judged else '; not for a recipe of one seed'})."
        )
    elif table.control is not None:
        sentences.append(f"{table.control} has no result here, so nothing is marked against it.")
    sentences += [OVERALL_NOTE] if table.has_overall else []
    sentences += [SOURCE_NOTE] if table.has_source else []
    for flag, letter in table.letters.items():
        meaning = f" ({FLAGS[flag]})" if flag in FLAGS else ""
        sentences.append(f"{letter}: {flag}{meaning}{', not official' * (flag != SELF_REPORTED)}.")
    return sentences + [f"{note.removesuffix('.')}." for note in table.notes]


def list_extra_columns(table: ReportTable) -> list[str]:
    """Return the names of the columns after the tasks."""
    extras = (("overall", table.has_overall), ("source", table.has_source))
    return [name for name, shown in extras if shown]


def format_row(
    table: ReportTable,
    row: ReportRow,
    number: Callable[[ReportScore | None, ReportTable], str],
    escape: Callable[[str], str],
) -> list[str]:
    """Return the texts of a row: the name, a number per task, then the extra columns."""
    cells = [number(row.cells.get(column), table) for column in table.columns]
    cells += [number(row.overall, table)] if table.has_overall else []
    if table.has_source:
        cells.append("-" if row.source is None else to_percent(row.source))
    return [escape(f"{SEED_MARK if row.is_seed else ''}{row.name}"), *cells]


def format_superscript(cell: ReportScore, table: ReportTable) -> str:
    """Return the mark of significance and the letters of the flags."""
    return cell.mark() + "".join(table.letters[flag] for flag in cell.flags)
