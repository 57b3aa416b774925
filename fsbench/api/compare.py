"""Paired comparison of two entries: is one better, and how many episodes would show it?

Per task and for the unweighted mean over the tasks of a track: the gap with its interval, the
p-value of a sign-flip permutation test, and effect sizes. A track here is one head, protocol and
input size: their results, and those of probes, are never averaged together.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, computed_field

from fsbench import data
from fsbench.api.options import CompareOptions, Stored
from fsbench.api.results import Results
from fsbench.core import statistics
from fsbench.core.errors import UsageError
from fsbench.core.options import split_values, takes_options
from fsbench.core.progress import format_count
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodicSpec, Frozen, omitted
from fsbench.core.statistics import episodes_needed, sign_flip
from fsbench.core.tables import ShownAsTables, TextTable
from fsbench.core.tasks import ColumnId, TaskPattern, Track, short_name, strip_digest
from fsbench.results.entry import Loaded
from fsbench.results.table import shorten_columns, warn_of_feature_scale
from fsbench.results.verification import read_loaded
from leaderboard.ranking.gaps import compute_student_interval
from leaderboard.ranking.outcomes import Outcomes, align_outcomes, extract_outcomes
from leaderboard.ranking.tiers import ALPHA
from leaderboard.record import Column, identify_column
from leaderboard.render.notes import SELF_MARK, SELF_NOTE, to_percent
from leaderboard.store import Board

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from fsbench.core.plotting import Columns

FEW = 30
"""Pairs of a task below which intervals are of Student's t."""
NO_GAP = 1e-9
"""A smaller gap is one of rounding: no number of pairs detects it."""
Side = Literal["A", "B"]
SIDES: tuple[Side, Side] = ("A", "B")
COVERAGE = (
    "Interval and p cover the sampling of {unit} only, not pretraining seeds: A and B are one "
    "network each, and other seeds may order the methods behind them otherwise."
)
LEGEND = (
    "Percent points, paired over shared episodes or test images. p: sign-flip permutation test, "
    "p Holm: adjusted over the tasks; d: mean of A - B over its sd; needed: episodes per task that "
    "detect this gap with 80 % power (two-sided z test, alpha 0.05). Heads, protocols and input "
    "sizes are compared apart."
)


class Gap(Frozen):
    """The difference of A and B on one task, or over all tasks of a track; fractions."""

    task: str
    unit: Literal["episodes", "images"] = Field(
        description="what is paired: episodes, or test images of a probe"
    )
    n: int = Field(description="pairs; of the smallest task for the overall line")
    a: float = Field(description="mean of A over the shared outcomes")
    b: float
    gap: float = Field(description="mean of A - B")
    low: float = Field(description="95 % interval: ± 1.96 standard errors; Student's t below 30 n")
    high: float
    se: float = Field(description="standard error of the mean of A - B")
    sd: float = Field(description="standard deviation of A - B over pairs")
    p: float = Field(description="two-sided, by sign flips: A and B swapped per episode")
    p_holm: float | None = Field(None, description="p adjusted over the tasks; null for overall")
    d: float | None = Field(description="mean of A - B over its sd, Cohen's d; null without sd")
    needed: int | None = Field(description="pairs per task that detect the gap, power 0.8")
    better: Side | None = Field(description="A or B where p (adjusted, for one task) is below 0.05")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sentence(self) -> str:
        """The same as a sentence, e.g. 'A is better by 1.22 points (95 % 0.41 to 2.03)'."""
        if self.better:
            sign = 1 if self.better == "A" else -1
            ends = sorted((sign * self.low, sign * self.high))
            gap, low, high = map(to_percent, (abs(self.gap), *ends))
            return f"{self.better} is better by {gap} points (95 % {low} to {high})"
        is_short = self.needed is not None and self.needed > self.n
        needed = f"; about {self.needed:,} would be needed" if is_short else ""
        return f"not distinguishable at {self.n:,} {self.unit}{needed}"


class Comparison(Frozen):
    """The gaps of two entries in one track: head, protocol and input size."""

    a: str
    b: str
    track: str
    tasks: tuple[Gap, ...]
    overall: Gap
    self_reported: tuple[Side, ...] = omitted(
        (), description="sides that are entries of a board, and not signed in all of these tasks"
    )
    warning: str = omitted("", description="that gaps may measure the scale of features")

    def gaps(self) -> tuple[Gap, ...]:
        """Return the lines of the table: tasks and their mean."""
        return (*self.tasks, self.overall)

    def plot(self, columns: "Columns | None" = 2) -> "Figure":
        """Return the gaps by data set and shots. columns: of a paper; None for a screen."""
        return Comparisons([self]).plot(columns)

    def table(self) -> TextTable:
        """Return the lines as a table; the result in words and what it covers are its lead."""
        short, _ = shorten_columns([gap.task for gap in self.tasks])
        unit = "episodes" if self.overall.unit == "episodes" else "test images"
        lead = [f"{self.overall.sentence}.", COVERAGE.format(unit=unit)]
        lead += [f"Warning: {self.warning}"] if self.warning else []
        lead += [SELF_NOTE] if self.self_reported else []
        rows = [
            {
                "task": label,
                "pairs": str(gap.n),
                "A": to_percent(gap.a),
                "B": to_percent(gap.b),
                "A - B": to_percent(gap.gap),
                "95 % interval": f"{to_percent(gap.low)} to {to_percent(gap.high)}",
                "p": format_p(gap.p),
                "p Holm": "-" if gap.p_holm is None else format_p(gap.p_holm),
                "d": "-" if gap.d is None else f"{gap.d:.2f}",
                "needed": str(gap.needed or "-"),
                "better": gap.better or "-",
            }
            for label, gap in zip((*short, self.overall.task), self.gaps(), strict=True)
        ]
        a, b = (SELF_MARK * (side in self.self_reported) for side in SIDES)
        return TextTable(
            f"A: {self.a}{a}, B: {self.b}{b}, {self.track}",
            tuple(rows[0]),
            tuple(tuple(row.values()) for row in rows),
            lead=tuple(lead),
            optional=("d", "needed", "pairs", "p"),
        )


class Comparisons(ShownAsTables, tuple[Comparison, ...]):
    """One `Comparison` per track, shown as their tables."""

    def tables(self) -> list[TextTable]:
        return [comparison.table() for comparison in self]

    def plot(self, columns: "Columns | None" = 2) -> "Figure":
        """Return the gaps of all tracks. columns: of a paper; None for a screen."""
        from fsbench.core.forest import Forest, Mark, Panel, Symbol, draw_forests
        from fsbench.core.plotting import GAIN, LOSS
        from leaderboard.render.figure import INTERVAL, label_columns

        forests = []
        for c in self:
            symbols = {
                "A": Symbol(f"{c.a} is better", GAIN, "^"),
                "B": Symbol(f"{c.b} is better", LOSS, "v"),
            }
            rows = label_columns([gap.task for gap in c.tasks])
            marks = [
                Mark(
                    *(row, 100 * gap.gap, 50 * (gap.high - gap.low)),
                    symbols.get(gap.better or "", Symbol("not distinguishable")),
                    to_percent(gap.gap, "+"),
                )
                for row, gap in zip(rows, c.gaps(), strict=False)
            ]
            x = f"{c.a} minus {c.b} (points), {INTERVAL}"
            forests.append(Forest(rows, [Panel(x, marks, 0.0)], c.track))
        return draw_forests(forests, columns)

    def to_frame(self) -> "pandas.DataFrame":
        """Return one row per task of each track, and one for their mean.

        Columns: track, and the fields of `Gap`: n and needed are Int64, other numbers float64, with
        NaN where there is none.
        """
        from pandas import DataFrame

        rows = [{"track": c.track, **gap.model_dump()} for c in self for gap in c.gaps()]
        columns = ["track", *Gap.model_fields, *Gap.model_computed_fields]
        types = {"n": "Int64", "needed": "Int64", "d": "float64", "p_holm": "float64"}
        return DataFrame(rows, columns=columns).astype(types)


@takes_options(CompareOptions)
def compare(options: CompareOptions) -> Comparisons:
    """Compare two entries on the episodes and test images that both were evaluated on.

    Parameters
    ----------
    {options}

    It returns one `Comparison` per track: head, protocol and input size; probes apart. UsageError:
    a folder holds several models or none, or the two share no task with at least two episodes or
    images; UnknownName: an entry or data set; ValidationFailed: stored results contradict their
    records.

    Examples
    --------
    >>> import fsbench
    >>> tasks = ["eurosat:5w5s/linear"]
    >>> (comparison,) = fsbench.compare("results/seal", "results/normal", tasks=tasks)
    >>> comparison.track, comparison.tasks[0].n
    ('linear ibm 32px', 600)
    """
    patterns = [TaskPattern.parse(str(task)) for task in split_values(options.tasks or ())]
    a, b = (
        read_side(source, options.board, side, patterns)
        for side, source in zip(SIDES, (options.a, options.b), strict=True)
    )
    tracks: dict[str, list[PairedColumn]] = {}
    for pair in pair_columns(a, b):
        track = Track.of(pair.column).model_copy(update={"adaptation": pair.column.adaptation})
        tracks.setdefault(track.label, []).append(pair)
    return Comparisons(compare_track(a, b, *of_track) for of_track in tracks.items())


@dataclass(frozen=True, eq=False)
class ComparedSide:
    """The results of one model; self_reported: columns of an entry without a signed badge."""

    name: str
    results: Mapping[Column, Loaded]
    self_reported: Set[ColumnId]


def read_side(
    source: Stored, board: str | Path | None, side: Side, patterns: Sequence[TaskPattern]
) -> ComparedSide:
    """Return the verified results of one model: of a folder, an entry or loaded results.

    Only those that one of the patterns covers, if there are any.
    """
    reported: set[ColumnId] = set()
    name = next(iter(source.models), side) if isinstance(source, Results) else str(source)
    loaded: Sequence[Loaded]
    if isinstance(source, Results):
        loaded = source.load()
    elif Path(source).exists():
        loaded = list(read_loaded(Path(source)))
    elif board is None:
        raise UsageError(f"{source} does not exist", fix="give a results folder, or --board DIR")
    else:
        entry, network = Board.open(Path(board)).network(name)
        loaded, signed = network.loaded, entry.verification.verdicts
        columns = [x.result.column for x in loaded]
        reported = {c for c in columns if (network.facts.identity, str(c)) not in signed}
    models = {x.result.backbone.identity: x.model for x in loaded}
    if len(models) > 1:
        listed = ", ".join(sorted(models.values()))
        raise UsageError(
            f"{name} holds several models: {listed}", fix="give the folder of one model"
        )
    chosen = [x for x in loaded if not patterns or any(covers(p, x.result) for p in patterns)]
    return ComparedSide(name, {identify_column(x.result): x for x in chosen}, reported)


@dataclass(frozen=True, eq=False)
class PairedColumn:
    """The outcomes of A and B on the episodes or test images of a column that both have."""

    column: ColumnId
    a: Outcomes
    b: Outcomes
    results: tuple[Result, Result]

    @property
    def gaps(self) -> NDArray[np.float64]:
        """A - B (n,)."""
        return self.a.values - self.b.values


def pair_columns(a: ComparedSide, b: ComparedSide) -> Iterator[PairedColumn]:
    """Yield the columns with results of both entries, in the order of a table.

    Raises UsageError if there is none, and for one with fewer than two shared outcomes.
    """
    shared = sorted(a.results.keys() & b.results.keys(), key=lambda c: (c.name, c.spec_digest))
    if not shared:
        texts = [", ".join(sorted(str(c.name) for c in x.results)) or "none" for x in (a, b)]
        raise UsageError(
            f"{a.name} and {b.name} share no task with equal settings, episodes and images: "
            f"{' against '.join(texts)}",
            fix="evaluate both on one task, with one --seed, on the same copy of the data",
        )
    for column in shared:
        pair = a.results[column], b.results[column]
        left, right = map(extract_outcomes, pair)
        one, two = align_outcomes([left, right])
        if one.index.size < 2:
            raise UsageError(
                f"{column.name}: {left.index.size} and {right.index.size} episodes, "
                f"{one.index.size} of them shared: too few to estimate the variance",
                fix="evaluate both on the same episodes (no --shard, equal --episodes)",
            )
        yield PairedColumn(column.name, one, two, (pair[0].result, pair[1].result))


def compare_track(
    a: ComparedSide, b: ComparedSide, track: str, pairs: Sequence[PairedColumn]
) -> Comparison:
    """Compare A and B in one track; p-values of single tasks are adjusted by Holm."""
    names = [str(pair.column) for pair in pairs]
    p = [
        sign_flip(pair.gaps / pair.gaps.size, "compare", name)
        for name, pair in zip(names, pairs, strict=True)
    ]
    index, gaps, draws = zip(*((x.a.index, x.gaps, x.a.draws) for x in pairs), strict=True)
    p_overall = sign_flip(statistics.shares(index, gaps, draws), "compare", *names)
    label = f"overall, {format_count(len(pairs), 'task')}"
    columns = {pair.column for pair in pairs}
    return Comparison(
        a=a.name,
        b=b.name,
        track=track,
        tasks=tuple(
            measure_gap([pair], name, *ps)
            for pair, name, *ps in zip(pairs, names, p, statistics.holm(p), strict=True)
        ),
        overall=measure_gap(pairs, label, p_overall),
        self_reported=tuple(
            side for side, x in zip(SIDES, (a, b), strict=True) if columns & x.self_reported
        ),
        warning=warn_of_feature_scale(
            {s: {x.column: x.results[i] for x in pairs} for i, s in enumerate(SIDES)}
        ),
    )


def measure_gap(
    pairs: Sequence[PairedColumn], task: str, p: float, p_holm: float | None = None
) -> Gap:
    """Return the gap of the unweighted mean over these tasks."""
    gaps, draws = [x.gaps for x in pairs], [x.a.draws for x in pairs]
    [paired] = statistics.measure_rows([gaps], [draws])
    sd = paired.se * math.sqrt(paired.fewest)
    half = paired.ci95
    if paired.fewest < FEW and paired.se > 0:
        half = compute_student_interval(paired.gap, paired.se, paired.freedom).ci95
    is_significant = (p if p_holm is None else p_holm) < ALPHA
    gap = abs(paired.gap)
    return Gap(
        task=task,
        unit="episodes" if isinstance(pairs[0].results[0].spec, EpisodicSpec) else "images",
        n=paired.fewest,
        a=float(np.mean([x.a.values.mean() for x in pairs])),
        b=float(np.mean([x.b.values.mean() for x in pairs])),
        gap=paired.gap,
        low=paired.gap - half,
        high=paired.gap + half,
        se=paired.se,
        sd=sd,
        p=p,
        p_holm=p_holm,
        d=paired.gap / sd if sd > 0 else None,
        needed=episodes_needed(sd, gap) if sd > 0 and gap >= NO_GAP else None,
        better=("A" if paired.gap > 0 else "B") if is_significant else None,
    )


def format_p(p: float) -> str:
    """Return a p-value with three digits; 9,999 random swaps give no p below 0.0002."""
    return f"{p:.3f}" if p >= 0.001 else "< .001"


def covers(pattern: TaskPattern, result: Result) -> bool:
    """Return whether a pattern covers a result. Raise UnknownName for an unknown data set.

    Images of the user may lie elsewhere than they did for the result.
    """
    names = map(short_name, data.catalog.find_datasets(pattern.dataset))
    return strip_digest(result.task.dataset) in names and pattern.covers(result.task)
