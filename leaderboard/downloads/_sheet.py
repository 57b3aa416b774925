"""What a table says, before it has a format: numbers, marks of significance, flags.

Best: the highest mean of a column and every entry that is not significantly worse than it (the
leader rule of leaderboard/rank.py on that column alone). Against the control: paired over shared
outcomes, Holm over the column's comparisons with the control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from fsbench import stats
from fsbench.stats import Paired, Score
from leaderboard.outcomes import Outcomes
from leaderboard.pairs import Pairs
from leaderboard.rank import ALPHA, Contenders, against_leader, holm, worse
from leaderboard.standing import View

BETTER, WORSE = "†", "‡"


@dataclass(frozen=True)
class Cell:
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
class Row:
    """An entry: its cells by column, the cell of its mean over all columns, in-domain accuracy.

    overall: None where a column is missing, or where there is only one.
    """

    name: str
    tier: int | None
    cells: Mapping[str, Cell]
    overall: Cell | None
    source: float | None


@dataclass(frozen=True)
class Sheet:
    """One table: entries of one track, best first. notes: what else a reader must know."""

    title: str
    track: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    control: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def has_overall(self) -> bool:
        return any(row.overall for row in self.rows)

    @property
    def has_source(self) -> bool:
        return any(row.source is not None for row in self.rows)

    @property
    def marked(self) -> bool:
        """Whether the control holds a column here, so that others can be marked against it."""
        return any(row.name == self.control for row in self.rows)

    @property
    def flags(self) -> tuple[str, ...]:
        """Every flag of any cell, each once."""
        cells = [cell for row in self.rows for cell in row.cells.values()]
        return tuple(dict.fromkeys(flag for cell in cells for flag in cell.flags))


def sheet(view: View, control: str | None = None, notes: Sequence[str] = ()) -> Sheet:
    """The table of a view; a control that is no entry of it marks nothing."""
    columns, held = view.ranking.columns, view.contenders
    cells = {c: cells_over(held, [c], control) for c in columns}
    overall = cells_over(held, columns, control) if len(columns) > 1 else {}
    rows = []
    for standing in view.ranking.standings:
        name = standing.name
        known = view.cell_flags.get(name, {})
        own = {
            c: replace(cells[c][name], flags=known.get(c, ())) for c in columns if c in held[name]
        }
        mean = overall.get(name)
        mean = mean and replace(mean, flags=tuple(dict.fromkeys(chain(*known.values()))))
        rows.append(Row(name, standing.tier, own, mean, view.sources[name]))
    track = view.track
    title = f"{view.name} {track.data}" if track and track.data else view.name
    return Sheet(title, track.label if track else "", columns, tuple(rows), control, tuple(notes))


def cells_over(held: Contenders, columns: Sequence[str], control: str | None) -> dict[str, Cell]:
    """Cells of all entries that hold these columns: of one column, or of the mean over several."""
    whole = {n: [own[c] for c in columns] for n, own in held.items() if own.keys() >= set(columns)}
    scores = {name: mean_over(own) for name, own in whole.items()}
    order = sorted(scores, key=lambda name: (-scores[name].mean, name))
    pairs = Pairs({name: whole[name] for name in order})
    best = not_worse(pairs, order)
    gaps = over_control(pairs, order, control) if control in whole else {}
    adjusted = dict(zip(gaps, holm([gap.p for gap in gaps.values()]), strict=True))
    return {n: Cell(scores[n], n in best, gaps.get(n), adjusted.get(n)) for n in order}


def mean_over(own: Sequence[Outcomes]) -> Score:
    """Of several columns the mean of their means; its interval knows which share their episodes,
    as that of a gap does: here of the gap over nothing (zeros)."""
    if len(own) == 1:
        return stats.score(own[0].values)
    values = [outcomes.values for outcomes in own]
    nothing = [np.zeros_like(each) for each in values]
    found = stats.paired(values, nothing, [outcomes.draws for outcomes in own])
    return Score(found.gap, found.ci95, found.n)


def not_worse(pairs: Pairs, order: Sequence[str]) -> set[str]:
    """The best entry and those that do not fall significantly behind it."""
    if not order:
        return set()
    gaps, adjusted = against_leader(pairs, order)
    return {n for n in order if not (n in gaps and worse(gaps[n], adjusted[n], ALPHA))}


def over_control(pairs: Pairs, order: Sequence[str], control: str | None) -> dict[str, Paired]:
    """The gap of every other entry over the control."""
    behind = pairs.behind(str(control), [name for name in order if name != control])
    return {name: gap._replace(gap=0.0 - gap.gap) for name, gap in behind.items()}
