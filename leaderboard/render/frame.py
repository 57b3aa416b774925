"""The score frame of a table: the numbers, marks of significance and flags that renderings show.

The best of a column follow the rule of the board (ranking/tiers.py) on that column alone. Against
the control: paired over shared outcomes, Student's t with the variance of seeds where rows have
several, Holm over all comparisons of all columns, as `fsbench compare` has it for a pair.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from fsbench.core import statistics
from fsbench.core.errors import UnknownName
from fsbench.core.statistics import Paired, Score
from fsbench.core.tasks import ColumnId
from fsbench.results.table import shorten_columns
from leaderboard.badges import OWN_CODE, SELF_REPORTED
from leaderboard.ranking.gaps import compute_student_interval
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.tiers import ALPHA, RankedEntry, compare_with_leader, find_worse
from leaderboard.render.notes import describe_coverage, describe_single_seeds, list_reasons
from leaderboard.tables import OVERALL, BoardTable, unite

BETTER, WORSE = "†", "‡"
SOURCE = "source"
"""The column of the accuracy on the pretraining data, after the tasks and their mean."""
FLAGS = {
    "subset": "other image counts than official",
    "limited": "a quick test on few episodes",
    "short": "fewer episodes than the spec",
    "custom": "user images",
    "derived": "a train/test split made by fsbench",
    "shard": "a part of the episodes",
    OWN_CODE: "the network is code of its submitter, which nobody else runs",
    SELF_REPORTED: "no signed badge",
}
BEST_RULE = (
    "the best of a column and all that are not significantly worse (paired over shared episodes or "
    f"images, p adjusted for all pairs of entries, alpha {ALPHA:g})."
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


def name_columns(columns: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return data set, shots and what else differs, e.g. EuroSAT, 5-shot, logistic, of columns."""
    ids = [ColumnId.parse(column) for column in columns]
    parts = {i: (i.task.head, i.task.protocol, f"{i.input_size} px", *i.variant) for i in ids}
    ways = {i: f"{i.task.n_way}-way" for i in ids if i.task.n_shot}
    common = set.intersection(*({*parts[i], way} for i, way in ways.items())) if ways else set()
    return [
        (
            DATASET_TITLES.get(i.task.dataset, i.task.dataset),
            f"{i.task.n_shot}-shot" if i.task.n_shot else i.task.shape,
            " ".join(p for p in (ways.get(i), *parts[i]) if p and p not in common),
        )
        for i in ids
    ]


class FrameScore(NamedTuple):
    """One number of a frame, as CSV and pandas have it: fractions, nan where there is no value.

    ci95, gap_ci95: half-widths; best: highest of its column, or not significantly worse; gap: over
    the control; p: of the gap, adjusted by Holm; mark: † if significantly better than the control,
    ‡ if worse, never for a recipe of one seed; flags: why the number is not official; reason: why
    the entry is unranked, or ranked apart; parameters: of the trunk; macs to machine: of the
    entry, see `FeatureCost`.
    """

    table: str
    track: str
    entry: str
    tier: int | None
    overall: float
    column: str
    mean: float
    ci95: float
    n: int
    flags: tuple[str, ...] = ()
    seeds: int = 1
    reason: str = ""
    best: bool = False
    control: str = ""
    gap: float = nan
    gap_ci95: float = nan
    p: float = nan
    mark: str = ""
    parameters: int = 0
    macs: float = nan
    images_per_second: float = nan
    peak_memory_bytes: float = nan
    machine: str = ""

    @property
    def score(self) -> Score:
        return Score(self.mean, self.ci95, self.n)


Fields = dict[str, dict[str, Any]]
"""Row -> the fields of its score in a column that compare it with the control."""


@dataclass(frozen=True)
class ScoreFrame:
    """The scores of a table: row, or seed of a row -> column -> score; rows best first.

    entries: the same lines as they are ranked; shows_seeds: whether renderings list the seeds of a
    row below it; best: column -> its best rows, filled as a rendering asks for them.
    """

    table: BoardTable
    scores: Mapping[str, Mapping[str, FrameScore]]
    entries: Mapping[str, RankedEntry]
    control: str | None = None
    shows_seeds: bool = False
    best: dict[str, set[str]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The tasks, then `overall` and `source` if a row has them."""
        scored = set(chain.from_iterable(self.scores[name] for name in self.lines))
        return (*self.table.ranking.columns, *(c for c in (OVERALL, SOURCE) if c in scored))

    @cached_property
    def lines(self) -> list[str]:
        """The names of the rows, each followed by its seeds if they are shown."""
        return [n for n in self.scores if self.shows_seeds or not self.is_seed(n)]

    def is_seed(self, name: str) -> bool:
        return name not in self.table.rows

    def records(self) -> Iterator[FrameScore]:
        """Yield the scores of all lines."""
        for scores in (self.scores[name] for name in self.lines):
            in_order = (scores[column] for column in self.columns if column in scores)
            yield from (score._replace(best=self.is_best(score)) for score in in_order)

    @property
    def title(self) -> str:
        """The name of the table and what all its columns share."""
        table, kind, track = self.table, self.table.label, self.table.track
        if not (track and (track.data or track.extra)):
            kind = shorten_columns(table.ranking.columns)[1] or kind
        return f"{table.name}: {kind}" if kind else table.name

    @property
    def compares(self) -> bool:
        """Return whether there are several entries, of which one can be the best."""
        return len(self.table.names) > 1

    def is_best(self, score: FrameScore) -> bool:
        """Return whether no row is significantly better in this column."""
        if score.column not in self.best:
            self.best[score.column] = find_best(self.table, score.column)
        return score.entry in self.best[score.column]

    def is_bold(self, score: FrameScore) -> bool:
        return self.compares and self.is_best(score)

    @cached_property
    def flagged(self) -> dict[str, set[tuple[str, str]]]:
        """Flag -> what its letter marks: (row, ""), ("", column) or (row, column).

        A letter marks a row or column all of whose numbers have the flag, and nothing if all
        numbers of the table do.
        """
        flags_by_number = {
            (name, column): score.flags
            for name in self.lines
            for column, score in self.scores[name].items()
            if column != SOURCE
        }
        marked: dict[str, set[tuple[str, str]]] = {}
        for flag in unite(flags_by_number.values()):
            flagged = {number for number, flags in flags_by_number.items() if flag in flags}
            clean = flags_by_number.keys() - flagged
            rows = {row for row, _ in flagged} - {row for row, _ in clean}
            columns = {column for _, column in flagged} - {column for _, column in clean}
            marked[flag] = flagged if clean else set()
            if clean and all(column in columns for _, column in flagged):
                marked[flag] = {("", column) for column in columns}
            elif clean and all(row in rows for row, _ in flagged):
                marked[flag] = {(row, "") for row in rows}
        return marked

    @cached_property
    def letters(self) -> dict[str, str]:
        """Flag -> the letter that marks it, if not all numbers have it."""
        flags = [flag for flag, numbers in self.flagged.items() if numbers]
        return {flag: chr(ord("a") + i) if i < 26 else str(i) for i, flag in enumerate(flags)}

    def mark(self, row: str = "", column: str = "") -> str:
        """Return the letters of a row, a column or one number."""
        return "".join(x for flag, x in self.letters.items() if (row, column) in self.flagged[flag])

    def write_caption(self) -> list[str]:
        """Return the sentences below the table: what it shows and what not, and any warning."""
        warning = self.table.warning
        sentences = self.explain_numbers() + [f"Bold: {BEST_RULE}"] * self.compares
        sentences += describe_single_seeds(self.table)
        return [*sentences, *([f"Warning: {warning}"] if warning else [])]

    def explain_bold(self) -> list[str]:
        """Return what bold means, for files, if there are several entries."""
        return [f"Bold in files: {BEST_RULE}"] if self.compares else []

    def explain_numbers(self) -> list[str]:
        """Return what numbers, marks and letters mean, one sentence each."""
        table = self.table
        sentences = ["Accuracy in percent.", describe_coverage(table)]
        if self.control is not None:
            sentences += self._explain_marks(self.control)
        notes = {OVERALL: OVERALL_NOTE, SOURCE: SOURCE_NOTE}
        sentences += [note for column, note in notes.items() if column in self.columns]
        for flag in self.flagged:
            meaning = f" ({FLAGS[flag]})" if flag in FLAGS else ""
            official = ", not official" * (flag != SELF_REPORTED)
            sentences.append(f"{self.letters.get(flag, 'All numbers')}: {flag}{meaning}{official}.")
        unranked = {entry.name: entry.reason for entry in table.ranking.unranked}
        sentences += list_reasons("Unranked", unranked)
        return [*sentences, *(f"{note.removesuffix('.')}." for note in table.notes)]

    def _explain_marks(self, control: str) -> list[str]:
        """Return what the marks against the control mean, those that occur."""
        if control not in self.table.names:
            return [f"{control} has no result here, so nothing is marked against it."]
        marks = {score.mark for name in self.lines for score in self.scores[name].values()}
        meanings = {BETTER: f"{BETTER} significantly better", WORSE: f"{WORSE} worse"}
        shown = " and ".join(text for mark, text in meanings.items() if mark in marks)
        single = "; not for a recipe of one seed" * bool(self.table.runs)
        return [
            f"{shown or 'Nothing is significantly better or worse'} than {control} (paired, Holm "
            f"over all comparisons with it by column, alpha {ALPHA:g}{single})."
        ]


def make_frame(table: BoardTable, control: str | None = None, seeds: bool = False) -> ScoreFrame:
    """Return the frame of a table; a control that is not in it is ignored.

    control: a row, or a seed of it; seeds: whether the seeds of a row are shown below it.
    """
    rows_by_seed = {seed.name: name for name, row in table.rows.items() for seed in row.seeds}
    control = rows_by_seed.get(control or "", control)
    gaps = {} if control is None else compare_rows(table, control)
    entries = {
        line.name: line
        for entry in table.ranking.entries
        for line in (entry, *table.seeds.get(entry.name, {}).values())
    }
    scores = {name: make_scores(table, entry, gaps) for name, entry in entries.items()}
    return ScoreFrame(table, scores, entries, control, seeds)


def make_frames(
    tables: Sequence[BoardTable], control: str | None = None, seeds: bool = False
) -> list[ScoreFrame]:
    """Return the frames of tables. Raises UnknownName if no table contains the control."""
    names = {name for table in tables for name in table.lines}
    if control is not None and control not in names:
        raise UnknownName("model", control, names)
    return [make_frame(table, control, seeds) for table in tables]


def make_scores(
    table: BoardTable, entry: RankedEntry, gaps: Mapping[str, Fields]
) -> dict[str, FrameScore]:
    """Return the scores of a row or a seed by column. gaps: of `compare_rows`."""
    row, scores = table.lines[entry.name], dict(entry.scores)
    flags = {**row.column_flags, OVERALL: unite(row.column_flags.values())}
    mean = table.seed_errors.scores.get(row.name) or entry.averages.get(OVERALL)
    if mean is not None and len(table.ranking.columns) > 1:
        scores[OVERALL] = mean
    if row.source is not None:
        scores[SOURCE] = Score(row.source, nan, 0)
    overall = nan if entry.overall is None else entry.overall
    costs: dict[str, Any] = row.cost.model_dump(exclude_none=True) if row.cost else {}
    return {
        column: FrameScore(
            *(table.name, table.label, row.name, entry.tier, overall, column, *score),
            flags=flags.get(column, ()),
            seeds=len(row.networks),
            reason=entry.reason,
            parameters=row.facts.n_parameters,
            **costs | gaps.get(column, {}).get(row.name, {}),
        )
        for column, score in scores.items()
    }


def compare_rows(table: BoardTable, control: str) -> dict[str, Fields]:
    """Return the gaps of rows over the control by column.

    p is adjusted over all gaps of the tasks, and over those of the mean over them.
    """
    pairs = {column: pair_rows(table, column) for column in table.ranking.columns}
    pairs[OVERALL] = PairwiseGaps(table.seed_errors.outcomes)
    fields: dict[str, Fields] = {column: {} for column in pairs}
    for family in (table.ranking.columns, [OVERALL]):
        compared = [
            (column, name, gap)
            for column in family
            for name, gap in compare_with_control(pairs[column], control).items()
        ]
        adjusted = statistics.holm([gap.p for *_, gap in compared])
        for (column, name, gap), p in zip(compared, adjusted, strict=True):
            sign = BETTER if gap.gap > 0 else WORSE if gap.gap < 0 else ""
            is_single = name in table.runs or control in table.runs
            fields[column][name] = {
                "control": control,
                "gap": gap.gap,
                "gap_ci95": gap.ci95,
                "p": p,
                "mark": sign if p < ALPHA and not is_single else "",
            }
    return fields


def pair_rows(table: BoardTable, column: str) -> PairwiseGaps:
    """Return the paired rows that have a column, the best first."""
    entries = [entry for entry in table.ranking.entries if column in entry.scores]
    entries.sort(key=lambda entry: (-entry.scores[column].mean, entry.name))
    return PairwiseGaps({e.name: [table.contenders[e.name][column]] for e in entries})


def find_best(table: BoardTable, column: str) -> set[str]:
    """Return the best row of a column and all that are not significantly worse.

    Of the mean over the columns it is the first tier.
    """
    if column == OVERALL:
        return {entry.name for tier in table.ranking.tiers[:1] for entry in tier}
    excluded = {e.name for e in table.ranking.entries if e.reason and not e.missing}
    pairs = pair_rows(table, column)
    order = [name for name in pairs.seed_errors.outcomes if name not in excluded]
    if not order:
        return set()
    gaps, adjusted = compare_with_leader(pairs, order)
    compared = {gaps.names[i] for i in np.flatnonzero(~np.isnan(adjusted))}
    return {order[0], *compared - find_worse(gaps, adjusted)}


def compare_with_control(pairs: PairwiseGaps, control: str) -> dict[str, Paired]:
    """Return the gap of every other entry over the control; nothing if it is not among them.

    p is of Student's t where the error is finite.
    """
    if control not in pairs.home:
        return {}
    gaps = {}
    for name, gap in pairs.behind(control, [n for n in pairs.home if n != control]).items():
        p = gap.p
        if gap.se > 0 and not isnan(gap.freedom):
            p = compute_student_interval(gap.gap, gap.se, gap.freedom).p
        gaps[name] = gap._replace(gap=0.0 - gap.gap, p=p)
    return gaps
