"""What a table says, before it has a format: numbers, marks of significance, flags.

Best: the highest mean of a column and every entry that is not significantly worse than it (the
leader rule of leaderboard/ranking/tiers.py on that column alone). Against the control: paired over
shared
outcomes, Holm over the column's comparisons with the control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np

from fsbench.core import statistics
from fsbench.core.statistics import Paired, Score
from leaderboard.board.tables import BoardTable
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.ranking.pairs import PairwiseGaps
from leaderboard.ranking.tiers import ALPHA, compare_with_leader, is_worse

BETTER, WORSE = "†", "‡"


@dataclass(frozen=True)
class ReportScore:
    """A mean with its interval; fractions.

    best: highest of its column, or not significantly worse; gap: over the control, None for the
    control itself or without one; p: of that gap, adjusted by Holm; flags: why it is not official.
    """

    score: Score
    best: bool
    gap: Paired | None = None
    p: float | None = None
    flags: tuple[str, ...] = ()

    def mark(self, alpha: float = ALPHA) -> str:
        """† significantly better than the control, ‡ worse, nothing otherwise."""
        if self.gap is None or self.p is None or self.p >= alpha or not self.gap.gap:
            return ""
        return BETTER if self.gap.gap > 0 else WORSE


@dataclass(frozen=True)
class ReportRow:
    """An entry: its cells by column, the cell of its mean over all columns, in-domain accuracy.

    overall: None where a column is missing, or where there is only one.
    """

    name: str
    tier: int | None
    cells: Mapping[str, ReportScore]
    overall: ReportScore | None
    source: float | None


@dataclass(frozen=True)
class ReportTable:
    """One table: entries of one track, best first. notes: what else a reader must know."""

    title: str
    track: str
    columns: tuple[str, ...]
    rows: tuple[ReportRow, ...]
    control: str | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def has_overall(self) -> bool:
        return any(row.overall for row in self.rows)

    @cached_property
    def has_source(self) -> bool:
        return any(row.source is not None for row in self.rows)

    @property
    def marked(self) -> bool:
        """Whether the control holds a column here, so that others can be marked against it."""
        return any(row.name == self.control for row in self.rows)

    @cached_property
    def letters(self) -> dict[str, str]:
        """Flag of any cell -> the letter that marks it; after 26 they are numbers."""
        cells = [cell for row in self.rows for cell in row.cells.values()]
        flags = dict.fromkeys(flag for cell in cells for flag in cell.flags)
        return {flag: chr(ord("a") + i) if i < 26 else str(i) for i, flag in enumerate(flags)}


def build_report_table(
    view: BoardTable, control: str | None = None, notes: Sequence[str] = ()
) -> ReportTable:
    """The table of a view; a control that is no entry of it marks nothing."""
    columns, held, standings = view.ranking.columns, view.contenders, view.ranking.entries
    cells = {c: score_column(view, c, control) for c in columns}
    overall = score_mean(view, control) if len(columns) > 1 else {}
    rows = []
    for standing in standings:
        name = standing.name
        known = view.cell_flags.get(name, {})
        own = {
            c: replace(cells[c][name], flags=known.get(c, ())) for c in columns if c in held[name]
        }
        mean = overall.get(name)
        mean = mean and replace(mean, flags=tuple(dict.fromkeys(chain(*known.values()))))
        rows.append(ReportRow(name, standing.tier, own, mean, view.sources[name]))
    track = view.track
    title = f"{view.name} {track.data}" if track and track.data else view.name
    return ReportTable(
        title, track.label if track else "", columns, tuple(rows), control, tuple(notes)
    )


def score_column(view: BoardTable, column: str, control: str | None) -> dict[str, ReportScore]:
    """Cells of all entries that hold this column."""
    standings = [s for s in view.ranking.entries if column in s.scores]
    scores = {s.name: s.scores[column] for s in standings}
    order = sorted(scores, key=lambda name: (-scores[name].mean, name))
    pairs = PairwiseGaps({name: [view.contenders[name][column]] for name in order})
    return mark_scores(scores, find_best(pairs, order), compare_with_control(pairs, order, control))


def score_mean(view: BoardTable, control: str | None) -> dict[str, ReportScore]:
    """Cells of the mean over all columns, of the entries that hold them all: those of the first
    tier are the best."""
    ranked = [s for s in view.ranking.entries if s.tier is not None]
    whole = {s.name: [view.contenders[s.name][c] for c in view.ranking.columns] for s in ranked}
    gaps = (
        compare_with_control(PairwiseGaps(whole), list(whole), control) if control in whole else {}
    )
    best = {s.name for s in ranked if s.tier == 1}
    return mark_scores({name: average_outcomes(own) for name, own in whole.items()}, best, gaps)


def mark_scores(
    scores: Mapping[str, Score], best: set[str], gaps: Mapping[str, Paired]
) -> dict[str, ReportScore]:
    """Cells of one column: Holm over its comparisons with the control."""
    adjusted = dict(zip(gaps, statistics.holm([gap.p for gap in gaps.values()]), strict=True))
    return {n: ReportScore(s, n in best, gaps.get(n), adjusted.get(n)) for n, s in scores.items()}


def average_outcomes(own: Sequence[Outcomes]) -> Score:
    """The mean of the columns' means; its interval knows which share their episodes, as that of a
    gap does: here of the gap over nothing (zeros)."""
    values = [outcomes.values for outcomes in own]
    nothing = [np.zeros_like(each) for each in values]
    found = statistics.paired(values, nothing, [outcomes.draws for outcomes in own])
    return Score(found.gap, found.ci95, found.n)


def find_best(pairs: PairwiseGaps, order: Sequence[str]) -> set[str]:
    """The best entry and those that do not fall significantly behind it."""
    if not order:
        return set()
    gaps, adjusted = compare_with_leader(pairs, order)
    return {n for n in order if not (n in gaps and is_worse(gaps[n], adjusted[n], ALPHA))}


def compare_with_control(
    pairs: PairwiseGaps, order: Sequence[str], control: str | None
) -> dict[str, Paired]:
    """The gap of every other entry over the control; nothing where it is not among them."""
    if control not in order:
        return {}
    behind = pairs.behind(str(control), [name for name in order if name != control])
    return {name: gap._replace(gap=0.0 - gap.gap) for name, gap in behind.items()}
