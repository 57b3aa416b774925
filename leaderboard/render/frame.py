"""The score frame of a table: the numbers, marks of significance and flags that renderings show.

Best: the highest mean of a column and every entry that is not significantly worse than it (the rule
of the board, leaderboard/ranking/tiers.py, on that column alone). Against the control: paired over
shared outcomes, Student's t with the variance of seeds where rows have several, Holm over the
column's comparisons with the control.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby
from math import isnan, nan
from typing import NamedTuple

import numpy as np

from fsbench.core import statistics
from fsbench.core.errors import UnknownName
from fsbench.core.statistics import Paired, Score
from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns, split_labels
from leaderboard.badges import SELF_REPORTED
from leaderboard.ranking.gaps import compute_student_interval
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.tiers import ALPHA, RankedEntry, compare_with_leader, find_worse
from leaderboard.render.notes import describe_coverage, finite_or_none, list_unranked
from leaderboard.tables import BoardTable, unite

BETTER, WORSE = "†", "‡"
OVERALL, SOURCE = "overall", "source"
"""Columns after the tasks: the mean over them, and the accuracy on the pretraining data."""
FLAGS = {
    "subset": "other image counts than official",
    "limited": "a quick test on few episodes",
    "short": "fewer episodes than the spec",
    "custom": "user images",
    "derived": "a train/test split made by fsbench",
    "shard": "a part of the episodes",
    SELF_REPORTED: "no signed badge",
}
PLAIN_NOTE = (
    "Accuracy in percent with the half-width of its 95 % interval, 1.96 s / sqrt(n) over the "
    "episodes or test images, not over pretraining seeds."
)
SEEDS_NOTE = "Accuracy in percent with the half-width of its 95 % interval."
BEST_NOTE = (
    "Bold: the best of a column and all that are not significantly worse (paired over shared "
    f"episodes or images, p adjusted for all pairs of entries, alpha {ALPHA:g})."
)
OVERALL_NOTE = "Overall: unweighted mean over the columns; '-' if one is missing."
SOURCE_NOTE = "Source: accuracy on the pretraining data, which no badge covers."
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


@dataclass(frozen=True)
class FrameScore:
    """A mean with its interval, as fractions.

    flags: why the number is not official; best: highest of its column, or not significantly worse;
    gap: over the control, None for the control itself and without a control; p: of that gap,
    adjusted by Holm; mark: † if significantly better than the control, ‡ if worse, never for a
    recipe of one seed.
    """

    score: Score
    flags: tuple[str, ...] = ()
    best: bool = False
    gap: Paired | None = None
    p: float | None = None
    mark: str = ""


class Record(NamedTuple):
    """One number of a frame, as CSV and pandas have it: fractions, None where there is no value.

    ci95, gap_ci95: half-widths; gap: over the control; p: of it, adjusted by Holm; flags: why the
    number is not official; reason: why the entry is unranked, or ranked apart.
    """

    table: str
    track: str
    entry: str
    tier: int | None
    overall: float | None
    column: str
    mean: float
    ci95: float | None
    n: int | None
    best: bool
    control: str | None
    gap: float | None
    gap_ci95: float | None
    p: float | None
    flags: str
    seeds: int
    reason: str


@dataclass(frozen=True)
class FrameRow:
    """An entry, or one of its seeds, with its scores by column of the frame.

    seeds: of an entry with several, by number.
    """

    entry: RankedEntry
    scores: Mapping[str, FrameScore]
    seeds: "Mapping[int, FrameRow]" = field(default_factory=dict)
    is_seed: bool = False

    @property
    def name(self) -> str:
        return self.entry.name


@dataclass(frozen=True)
class ScoreFrame:
    """The rows of a table, best first. shows_seeds: whether the seeds of a row follow it."""

    table: BoardTable
    rows: tuple[FrameRow, ...]
    control: str | None = None
    shows_seeds: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The tasks, then `overall` and `source` if a row has them."""
        extra = [c for c in (OVERALL, SOURCE) if any(c in row.scores for row in self.rows)]
        return (*self.table.ranking.columns, *extra)

    @cached_property
    def lines(self) -> tuple[FrameRow, ...]:
        """The rows, each followed by its seeds if they are shown."""
        shown = self.shows_seeds
        return tuple(r for row in self.rows for r in (row, *(row.seeds.values() if shown else ())))

    @property
    def title(self) -> str:
        """The name of the table and what all its columns share."""
        kind = shorten_columns(self.table.ranking.columns)[1] or self.track
        return f"{self.name}: {kind}" if kind else self.name

    @property
    def name(self) -> str:
        track = self.table.track
        return f"{self.table.name} {track.data}" if track and track.data else self.table.name

    @property
    def track(self) -> str:
        return self.table.track.label if self.table.track else ""

    @property
    def compares(self) -> bool:
        """Return whether there are several entries, of which one can be the best."""
        return len(self.rows) > 1

    @cached_property
    def flag_places(self) -> dict[str, set[tuple[str, str]]]:
        """Flag -> where its letter stands: (row, ""), ("", column) or (row, column).

        It stands once at a row or column all of whose numbers have the flag, and nowhere if all
        numbers of the table do.
        """
        cells = {
            (row.name, column): score.flags
            for row in self.lines
            for column, score in row.scores.items()
            if column != SOURCE
        }
        places: dict[str, set[tuple[str, str]]] = {}
        for flag in dict.fromkeys(chain.from_iterable(cells.values())):
            flagged = {cell for cell, flags in cells.items() if flag in flags}
            clean = cells.keys() - flagged
            rows = {row for row, _ in flagged} - {row for row, _ in clean}
            columns = {column for _, column in flagged} - {column for _, column in clean}
            places[flag] = flagged
            if not clean:
                places[flag] = set()
            elif all(column in columns for _, column in flagged):
                places[flag] = {("", column) for column in columns}
            elif all(row in rows for row, _ in flagged):
                places[flag] = {(row, "") for row in rows}
        return places

    @cached_property
    def letters(self) -> dict[str, str]:
        """Flag -> the letter that marks it, if not all numbers have it."""
        marked = [flag for flag, places in self.flag_places.items() if places]
        return {flag: chr(ord("a") + i) if i < 26 else str(i) for i, flag in enumerate(marked)}

    def mark(self, row: str = "", column: str = "") -> str:
        """Return the letters at a row, a column or one number."""
        places = self.flag_places
        return "".join(x for flag, x in self.letters.items() if (row, column) in places[flag])

    def write_caption(self) -> list[str]:
        """Return the sentences below the table: what its numbers, marks and letters mean."""
        table = self.table
        sentences = [SEEDS_NOTE, *describe_coverage(table)] if table.seeds else [PLAIN_NOTE]
        sentences += [BEST_NOTE] if self.compares else []
        if self.control is not None:
            sentences += self._explain_marks(self.control)
        notes = {OVERALL: OVERALL_NOTE, SOURCE: SOURCE_NOTE}
        sentences += [note for column, note in notes.items() if column in self.columns]
        for flag in self.flag_places:
            meaning = f" ({FLAGS[flag]})" if flag in FLAGS else ""
            official = ", not official" * (flag != SELF_REPORTED)
            sentences.append(f"{self.letters.get(flag, 'All numbers')}: {flag}{meaning}{official}.")
        sentences += list_unranked(table.ranking.unranked)
        sentences += [f"{note.removesuffix('.')}." for note in table.notes]
        return [*sentences, *([f"Warning: {table.warning}"] if table.warning else [])]

    def _explain_marks(self, control: str) -> list[str]:
        """Return what the marks against the control mean, those that occur."""
        if all(row.name != control for row in self.rows):
            return [f"{control} has no result here, so nothing is marked against it."]
        marks = {score.mark for row in self.lines for score in row.scores.values()}
        words = {BETTER: f"{BETTER} significantly better", WORSE: f"{WORSE} worse"}
        shown = " and ".join(text for mark, text in words.items() if mark in marks)
        has_runs = any(is_run(self.table, name) for name in self.table.names)
        single = "; not for a recipe of one seed" * has_runs
        return [
            f"{shown or 'Nothing is significantly better or worse'} than {control} (paired, Holm "
            f"over the comparisons with it in a column, alpha {ALPHA:g}{single})."
        ]


def make_frame(table: BoardTable, control: str | None = None, seeds: bool = False) -> ScoreFrame:
    """Return the frame of a table; a control that is not in it is ignored.

    control: a row, or a seed of it; seeds: whether the seeds of a row are shown below it.
    """
    control = control and table.find_row(control)
    columns = table.ranking.columns
    scores = {column: score_column(table, column, control) for column in columns}
    if len(columns) > 1:
        scores[OVERALL] = score_mean(table, control)
    rows = []
    for entry in table.ranking.entries:
        seeds_of_row = table.seeds.get(entry.name, {})
        of_seeds = {n: make_row(table, seed, {}, is_seed=True) for n, seed in seeds_of_row.items()}
        rows.append(replace(make_row(table, entry, scores), seeds=of_seeds))
    return ScoreFrame(table, tuple(rows), control, seeds)


def make_frames(
    tables: Sequence[BoardTable], control: str | None = None, seeds: bool = False
) -> list[ScoreFrame]:
    """Return the frames of tables. Raises UnknownName if no table contains the control."""
    names = {n for t in tables for n in (*t.names, *chain.from_iterable(t.members.values()))}
    if control is not None and control not in names:
        raise UnknownName("model", control, names)
    return [make_frame(table, control, seeds) for table in tables]


def make_row(
    table: BoardTable,
    entry: RankedEntry,
    scores: Mapping[str, Mapping[str, FrameScore]],
    is_seed: bool = False,
) -> FrameRow:
    """Return the row of an entry or a seed. scores: column -> row -> its score with marks."""
    flags, source = table.cell_flags.get(entry.name, {}), table.sources[entry.name]
    values = {
        column: replace(
            scores.get(column, {}).get(entry.name, FrameScore(score)), flags=flags.get(column, ())
        )
        for column, score in entry.scores.items()
    }
    if overall := scores.get(OVERALL, {}).get(entry.name):
        values[OVERALL] = replace(overall, flags=unite(flags.values()))
    if source is not None:
        values[SOURCE] = FrameScore(Score(source, nan, 0))
    return FrameRow(entry, values, is_seed=is_seed)


def score_column(table: BoardTable, column: str, control: str | None) -> dict[str, FrameScore]:
    """Return the scores of all entries that have this column."""
    entries = [entry for entry in table.ranking.entries if column in entry.scores]
    scores = {entry.name: entry.scores[column] for entry in entries}
    order = sorted(scores, key=lambda name: (-scores[name].mean, name))
    pairs = PairwiseGaps({name: [table.contenders[name][column]] for name in order})
    excluded = {e.name for e in entries if e.reason and not e.missing}
    best = find_best(pairs, [name for name in order if name not in excluded])
    return mark_scores(table, scores, best, compare_with_control(pairs, order, control), control)


def score_mean(table: BoardTable, control: str | None) -> dict[str, FrameScore]:
    """Return the scores of the mean over all columns, for entries that have them all.

    Entries of the first tier are the best.
    """
    whole = table.seed_errors.outcomes
    gaps = compare_with_control(PairwiseGaps(whole), list(whole), control)
    best = {entry.name for tier in table.ranking.tiers[:1] for entry in tier}
    return mark_scores(table, table.seed_errors.scores, best, gaps, control)


def mark_scores(
    table: BoardTable,
    scores: Mapping[str, Score],
    best: set[str],
    gaps: Mapping[str, Paired],
    control: str | None,
) -> dict[str, FrameScore]:
    """Return the scores of one column; Holm over its comparisons with the control."""
    adjusted = dict(zip(gaps, statistics.holm([gap.p for gap in gaps.values()]), strict=True))
    marked = {}
    for name, score in scores.items():
        gap, p, mark = gaps.get(name), adjusted.get(name), ""
        is_single = is_run(table, name) or is_run(table, control)
        if gap and gap.gap and p is not None and p < ALPHA and not is_single:
            mark = BETTER if gap.gap > 0 else WORSE
        marked[name] = FrameScore(score, best=name in best, gap=gap, p=p, mark=mark)
    return marked


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

    p is of Student's t where the error is finite.
    """
    if control is None or control not in order:
        return {}
    gaps = {}
    for name, gap in pairs.behind(control, [name for name in order if name != control]).items():
        p = gap.p
        if gap.se > 0 and not isnan(gap.freedom):
            p = compute_student_interval(gap.gap, gap.se, gap.freedom).p
        gaps[name] = gap._replace(gap=0.0 - gap.gap, p=p)
    return gaps


def is_run(table: BoardTable, name: str | None) -> bool:
    """Return whether a row is one draw of a recipe or of an initialization."""
    facts = table.backbones.get(name or "")
    return facts is not None and (facts.training is not None or facts.random_init is not None)


def order_columns(columns: Sequence[str]) -> list[str]:
    """Return columns with data sets in the papers' order, other data sets last."""
    places = {name: place for place, name in enumerate(DATASET_TITLES)}
    return sorted(columns, key=lambda c: places.get(ColumnId.parse(c).task.dataset, len(places)))


def group_labels(columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Group neighbouring columns of one data set: [('eurosat', ['5w1s', '5w5s']), ...]."""
    parts = split_labels(columns)[0]
    return [(key, [rest for _, rest in group]) for key, group in groupby(parts, lambda p: p[0])]


def list_records(frame: ScoreFrame) -> Iterator[Record]:
    """Yield one record per row and column."""
    for row in frame.lines:
        entry = row.entry
        for column in (column for column in frame.columns if column in row.scores):
            value = row.scores[column]
            mean, ci95, n = value.score
            yield Record(
                *(frame.name, frame.track, entry.name, entry.tier, entry.overall),
                *(column, mean, finite_or_none(ci95), n or None, value.best),
                control=frame.control if value.gap else None,
                gap=value.gap and value.gap.gap,
                gap_ci95=value.gap and finite_or_none(value.gap.ci95),
                p=value.p,
                flags=" ".join(value.flags),
                seeds=len(row.seeds) or 1,
                reason=entry.reason,
            )
