"""Score frames as a figure: accuracy by shots, tiers, or gaps over a control.

Bars of accuracies by shots are intervals of the paired gap to the first model: it differs, before
any correction, from a model whose bar does not reach it. Bars of tiers are intervals of the mean
itself. Gaps are significant by the rule of the tables (frame.py).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING

from numpy import nan_to_num

from fsbench.core.errors import UsageError
from fsbench.core.forest import Forest, Mark, Panel, Symbol, draw_forests
from fsbench.core.plotting import GAIN, LOSS, MARKERS, SERIES, Columns, draw_views
from fsbench.core.schema import View
from fsbench.core.tasks import ColumnId
from leaderboard.render.frame import (
    BETTER,
    WORSE,
    FrameScore,
    ScoreFrame,
    make_frame,
    make_frames,
    name_columns,
)
from leaderboard.render.notes import format_tier, to_percent
from leaderboard.tables import OVERALL, BoardTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SERIES = 8
"""Most models that a figure tells apart by colour and shape; more are rows of their own."""
SYMBOLS = {
    BETTER: Symbol("significantly better (Holm)", GAIN, "^"),
    WORSE: Symbol("significantly worse (Holm)", LOSS, "v"),
    "": Symbol("not significant"),
}
INTERVAL = "95\N{NO-BREAK SPACE}%\N{NO-BREAK SPACE}interval"


def draw_tables(
    tables: Sequence[BoardTable],
    control: str | None = None,
    columns: Columns | None = 2,
    by_shots: bool = False,
) -> "Figure":
    """Return gaps over the control; without one, accuracy by shots, or the tiers.

    columns: of a paper, None for a screen; by_shots: whether accuracy by shots is drawn where a
    data set has several and the models are few. Raises UnknownName if no table contains the
    control, UsageError if there is nothing to draw.
    """
    frames = make_frames(tables, control)
    models = [*dict.fromkeys(n for frame in frames for n in frame.lines if n != frame.control)]
    if by_shots and control is None and (views := [*view_shots(tables, models)]):
        bars = f"the paired gap to {models[0]}" if len(models) > 1 else "the mean"
        return draw_views(views, f"Bars: {INTERVAL} of {bars}", columns)
    made = (
        make_tier_forest(frame) if control is None else make_gap_forest(frame, models)
        for frame in frames
    )
    if forests := [forest for forest in made if forest]:
        return draw_forests(forests, columns)
    fix = "evaluate all models on the same tasks"
    raise UsageError("no figure: no row has all columns of its table", fix=fix)


def view_shots(tables: Sequence[BoardTable], models: Sequence[str]) -> Iterator[View]:
    """Yield accuracies by shots, a curve per model and a panel per data set with several shots.

    Nothing for too many models.
    """
    columns = [c for t in tables for c in t.ranking.columns if ColumnId.parse(c).task.n_shot]
    names = name_columns(columns)
    panels = {c: ", ".join(filter(None, (n[0], n[2]))) for c, n in zip(columns, names, strict=True)}
    counts = Counter(panels.values())
    curves: dict[tuple[str, str], list[FrameScore]] = {}
    for frame in (make_frame(table, models[0]) for table in tables):
        for score in chain.from_iterable(frame.scores[n].values() for n in frame.lines):
            panel = panels.get(score.column, "")
            if counts[panel] > 1 and len(models) <= MOST_SERIES:
                curves.setdefault((panel, score.entry), []).append(score)
    for (panel, model), scores in curves.items():
        means = [100 * score.mean for score in scores]
        halves = [s.gap_ci95 if len(models) > 1 else s.ci95 for s in scores]
        low, high = (100 * nan_to_num(halves) * sign + means for sign in (-1, 1))
        yield View(
            title=panel,
            x="shots per class",
            y="accuracy (%)",
            at=tuple(ColumnId.parse(score.column).task.n_shot or 0 for score in scores),
            values=tuple(means),
            low=tuple(low),
            high=tuple(high),
            log_x=True,
            label=model,
        )


def make_tier_forest(frame: ScoreFrame) -> Forest | None:
    """Return the ranked rows by their mean; tiers have colours, shapes and texts.

    Rows that are ranked apart are hollow.
    """
    columns = frame.table.ranking.columns
    column = OVERALL if len(columns) > 1 else "".join(columns)
    ranked = [entry for entry in frame.table.ranking.entries if entry.tier]
    marks = []
    for entry in sorted(ranked, key=lambda entry: -frame.scores[entry.name][column].mean):
        score, tier = frame.scores[entry.name][column], f"tier {format_tier(entry)}"
        i = ((entry.tier or 0) - 1) % len(SERIES)
        label = tier + ", of one seed" * bool(entry.reason)
        symbol = Symbol(label, SERIES[i], MARKERS[i], is_hollow=bool(entry.reason))
        text = f"{to_percent(score.mean)}  {tier}"
        marks.append(Mark(entry.name, 100 * score.mean, to_points(score.ci95), symbol, text))
    mean = f"mean accuracy over {len(columns)} columns" if len(columns) > 1 else "accuracy"
    panel = Panel(f"{mean} (%), {INTERVAL}", marks)
    return Forest({m.row: m.row for m in marks}, [panel], frame.table.label) if marks else None


def make_gap_forest(frame: ScoreFrame, models: Sequence[str]) -> Forest | None:
    """Return gaps over the control: rows by data set and shots, and a mark per model.

    Of many models the gaps of the mean over the columns alone, a row per model.
    """
    rows = label_columns(frame.table.ranking.columns)
    is_long = len(models) > MOST_SERIES
    marks = []
    for column in [*rows][-1:] if is_long else rows:
        for i, model in enumerate(models):
            score = frame.scores.get(model, {}).get(column)
            if score is None or isnan(score.gap):
                continue
            symbol = SYMBOLS[score.mark]
            if not is_long:
                symbol = Symbol(model, SERIES[i], MARKERS[i], is_hollow=not score.mark)
            row, text = (model, to_percent(score.gap, "+")) if is_long else (column, "")
            marks.append(Mark(row, 100 * score.gap, to_points(score.gap_ci95), symbol, text))
    if is_long:
        rows = {mark.row: mark.row for mark in sorted(marks, key=lambda mark: -mark.value)}
    rows = {row: name for row, name in rows.items() if row in {mark.row for mark in marks}}
    hollow = "; hollow: not significant" * any(mark.symbol.is_hollow for mark in marks)
    panel = Panel(f"gap to {frame.control} (points), {INTERVAL}{hollow}", marks, 0.0)
    return Forest(rows, [panel], frame.table.label) if marks else None


def label_columns(columns: Sequence[str]) -> dict[str, str]:
    """Return column -> its row: data set, at its first column, and shots; then the mean of all."""
    labels, previous = {}, ""
    for column, (dataset, shots, rest) in zip(columns, name_columns(columns), strict=True):
        labels[column] = " ".join(filter(None, (dataset * (dataset != previous), shots, rest)))
        previous = dataset
    return labels | ({OVERALL: "mean"} if len(columns) > 1 else {})


def to_points(half: float) -> float | None:
    """Return a half-width in points, None where there is none."""
    return None if isnan(half) else 100 * half
