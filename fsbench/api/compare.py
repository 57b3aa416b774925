"""Paired comparison of two entries: is one better, and how many episodes would show it?

Per task and for the unweighted mean over the tasks of a track: the gap with its interval, the
p-value of a sign-flip permutation test, and effect sizes. A track here is one head, protocol and
input size: their results, and those of probes, are never averaged together.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from fsbench import data
from fsbench.api.results import Results
from fsbench.core import statistics
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.records import EpisodeRecords
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodicSpec, Frozen
from fsbench.core.statistics import Goal, detectable, episodes_needed, sign_flip
from fsbench.core.tables import TextTable, draw_table
from fsbench.core.tasks import TaskPattern, Track, strip_digest
from fsbench.results.table import DENSE, shorten_columns, warn_of_scale
from fsbench.results.verification import Loaded, read_cells, read_verified
from leaderboard.board.board import Board
from leaderboard.board.definition import Column, identify_column
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.ranking.tiers import ALPHA, Outcomes
from leaderboard.reports.render import SELF_MARK, SELF_NOTE

if TYPE_CHECKING:
    import pandas

MILLION = 1_000_000
OFFICIAL_EPISODES = 600
Unit = Literal["episodes", "images"]
Side = Literal["A", "B"]
Comparable = str | Path | Results
"""A results folder, the name of an entry on a board, or loaded results."""


class Gap(Frozen):
    """The difference of A and B on one task, or over all tasks of a track; fractions."""

    task: str
    unit: Unit = Field(description="what is paired: episodes, or test images of a probe")
    n: int = Field(description="pairs; of the smallest task for the overall line")
    a: float = Field(description="mean of A over the shared outcomes")
    b: float
    gap: float = Field(description="mean of A - B")
    low: float = Field(description="95 % interval: gap ± 1.96 standard errors")
    high: float
    p: float = Field(description="two-sided, by sign flips: A and B swapped per episode")
    p_holm: float | None = Field(
        None, description="p adjusted over the tasks of the track; null for the overall line"
    )
    d: float | None = Field(
        description="Cohen's d of pairs: mean of A - B over its sd; null without one"
    )
    superiority: float = Field(
        description="share of pairs in which A is above B, half of the ties; mean over tasks"
    )
    needed: int | None = Field(
        description="pairs per task that detect a true gap of this size with power 0.8, level 0.05"
    )
    better: Side | None = Field(description="A or B where p (adjusted, for one task) is below 0.05")
    self_reported: tuple[Side, ...] = Field(
        (),
        exclude_if=lambda value: not value,
        description="sides that are entries of a board without a signed badge for this number",
    )
    words: str = Field("", description="the same as a sentence")

    def row(self) -> tuple[str, ...]:
        """Return the line of a table under COLUMNS, in percent points."""
        a, b, gap = (f"{100 * value:.2f}" for value in (self.a, self.b, self.gap))
        a += SELF_MARK * ("A" in self.self_reported)
        b += SELF_MARK * ("B" in self.self_reported)
        return (
            *(self.task, str(self.n), a, b, gap, f"{100 * self.low:.2f} to {100 * self.high:.2f}"),
            *(format_p(self.p), "-" if self.p_holm is None else format_p(self.p_holm)),
            *("-" if self.d is None else f"{self.d:.2f}", f"{self.superiority:.2f}"),
            *("-" if self.needed is None else str(self.needed), self.better or "-"),
        )


COLUMNS = (
    *("task", "pairs", "A", "B", "A - B", "95 % interval"),
    *("p", "p Holm", "d", "P(A > B)", "needed", "better"),
)
OPTIONAL = (DENSE, "d", "P(A > B)", "needed", "pairs", "p")
"""Parts that a narrow terminal leaves out, in this order."""
TWO_RUNS = (
    "A and B are two runs, one network each: the comparison speaks of these networks, not of the "
    "methods behind them, which other seeds may order otherwise."
)
LEGEND = (
    "Percent points, paired over shared episodes or test images. p: sign-flip permutation test, "
    "p Holm: adjusted over the tasks; d: mean of A - B over its sd; P(A > B): share of pairs, ties "
    "count half; needed: episodes required to detect this gap with 80 % power. Heads, protocols "
    "and input sizes are compared apart."
)


class SignTest(Frozen):
    """Tasks by the sign of their gap; tasks over the same episodes or images count as one."""

    a: int
    b: int
    tied: int
    p: float = Field(description="exact two-sided binomial test of equal chances, without ties")

    def __str__(self) -> str:
        total = self.a + self.b + self.tied
        tied = f", {self.tied} tied" if self.tied else ""
        return (
            f"Sign test over {total} task{'s' if total > 1 else ''}: A ahead on {self.a}, B on "
            f"{self.b}{tied} (p = {format_p(self.p)}; tasks on the same episodes count once)."
        )


class Comparison(Frozen):
    """Two entries in one track; `dense` holds the tasks also scored on all possible queries.

    track: head, protocol and input size.
    """

    a: str
    b: str
    track: str
    alpha: float
    cells: tuple[Gap, ...]
    overall: Gap
    won: SignTest
    dense: tuple[Gap, ...]
    covers: str = Field(
        description="what intervals and p-values cover: the sampling of episodes or test images; "
        "each side is one model, so never pretraining seeds"
    )
    warning: str = Field(
        "",
        exclude_if=lambda value: not value,
        description="that gaps may measure the scale of features",
    )

    @property
    def title(self) -> str:
        return f"A: {self.a}, B: {self.b}, {self.track}"

    def gaps(self) -> tuple[Gap, ...]:
        """Return the lines of the table: tasks, the overall mean, tasks with dense queries."""
        return (*self.cells, self.overall, *self.dense)

    def summary(self) -> str:
        """Return the overall result, the sign test, what they cover and any warning in words."""
        warning = f"\nWarning: {self.warning}" if self.warning else ""
        warning += f"\n{SELF_NOTE}" * any(gap.self_reported for gap in self.gaps())
        covers = f"The interval covers {self.covers}. {TWO_RUNS}"
        return f"{self.overall.words}.\n{self.won}\n{covers}{warning}"

    def table(self) -> TextTable:
        """Return the lines as a table, with the summary under its title."""
        tasks = (*self.cells, *self.dense)
        short = dict(zip(tasks, shorten_columns([gap.task for gap in tasks])[0], strict=True))
        rows = tuple((short.get(gap, gap.task), *gap.row()[1:]) for gap in self.gaps())
        lead = tuple(self.summary().splitlines())
        return TextTable(self.title, COLUMNS, rows, lead=lead, optional=OPTIONAL)


class Comparisons(tuple[Comparison, ...]):
    """One `Comparison` per track, with a readable `repr` and `to_frame()`."""

    def __repr__(self) -> str:
        return "\n\n".join(
            f"{comparison.title}\n{comparison.summary()}\n{draw_table(comparison.table())}"
            for comparison in self
        )

    def to_frame(self) -> "pandas.DataFrame":
        """Return one row per task and overall mean, with the fields of `Gap` and the track."""
        from pandas import DataFrame

        return DataFrame(
            [
                {"track": comparison.track, **gap.model_dump(mode="json")}
                for comparison in self
                for gap in comparison.gaps()
            ]
        )


def compare(
    a: Comparable, b: Comparable, *, tasks: Sequence[str] = (), board: str | Path | None = None
) -> Comparisons:
    """Compare two entries on the episodes and test images that both were evaluated on.

    Parameters
    ----------
    a, b : str, Path or Results
        A results folder of one model, the name of an entry on `board`, or the results of
        `fsbench.evaluate` or `fsbench.load_results`.
    tasks : sequence of str
        Compare on these tasks only, e.g. ``["eurosat", "isic:5w1s"]``; all shared ones if empty.
    board : str or Path, optional
        The folder of the leaderboard that `a` or `b` names an entry of.

    Returns
    -------
    Comparisons
        One `Comparison` per track: head, protocol and input size; probes apart.

    Raises
    ------
    UsageError
        If a folder holds several models or none, or if the two share no task with at least two
        episodes or images.
    UnknownName
        If `board` has no entry of that name.
    ValidationFailed
        If stored results contradict their records.

    Examples
    --------
    >>> import fsbench
    >>> tasks = ["eurosat:5w5s/linear"]
    >>> (comparison,) = fsbench.compare("results/seal", "results/normal", tasks=tasks)
    >>> comparison.track, comparison.cells[0].n
    ('linear ibm 32px', 600)
    """
    names = (name_of(a, "A"), name_of(b, "B"))
    tracks = group_by_head(shared_tasks(a, b, tasks, board))
    return Comparisons(
        compare_track(*names, track.label, members) for track, members in tracks.items()
    )


def group_by_head(shared: "Sequence[SharedTask]") -> "dict[Track, list[SharedTask]]":
    """Return the tasks by head, protocol and input size, which share no mean."""
    tracks: dict[Track, list[SharedTask]] = {}
    for task in shared:
        column = task.column.name
        # The queries per class are fitted to small data sets: no other head.
        words = tuple(word for word in column.variant if not word.startswith("n_query="))
        head = replace(column, variant=words).adaptation
        track = Track.of(column).model_copy(update={"adaptation": head})
        tracks.setdefault(track, []).append(task)
    return tracks


def compare_track(a: str, b: str, track: str, shared: "Sequence[SharedTask]") -> Comparison:
    unit: Unit = "episodes" if shared[0].few_shot else "images"
    pairs = [task.outcomes() for task in shared]
    dense = [pair for pair in (task.dense() for task in shared) if pair is not None]
    parts = statistics.shares(
        [x.index for x in pairs], [x.gaps for x in pairs], [x.draws for x in pairs]
    )
    return Comparison(
        a=a,
        b=b,
        track=track,
        alpha=ALPHA,
        cells=adjusted_gaps(pairs, unit),
        overall=gap_of(
            pairs,
            overall_name(len(pairs)),
            unit,
            sign_flip(parts, "compare", *(pair.task for pair in pairs)),
        ),
        won=sign_test(pairs),
        dense=adjusted_gaps(dense, unit),
        covers=f"the sampling of {'episodes' if unit == 'episodes' else 'test images'} only, not "
        "pretraining seeds",
        warning=warn_of_scale(
            {
                "A": {task.column.name: task.a.result for task in shared},
                "B": {task.column.name: task.b.result for task in shared},
            }
        ),
    )


def adjusted_gaps(pairs: "Sequence[PairedOutcomes]", unit: Unit) -> tuple[Gap, ...]:
    """Return one gap per task, with p-values adjusted by Holm over the tasks."""
    p = [sign_flip(pair.gaps / pair.gaps.size, "compare", pair.task) for pair in pairs]
    return tuple(
        gap_of([pair], pair.task, unit, *ps)
        for pair, *ps in zip(pairs, p, statistics.holm(p), strict=True)
    )


def gap_of(
    pairs: "Sequence[PairedOutcomes]", task: str, unit: Unit, p: float, p_holm: float | None = None
) -> Gap:
    """Return the gap of the unweighted mean over these tasks."""
    a, b, draws = [x.a for x in pairs], [x.b for x in pairs], [x.draws for x in pairs]
    gaps = [x.gaps for x in pairs]
    paired, sd = statistics.paired(a, b, draws), statistics.overall_sd(gaps, draws)
    is_significant = (p if p_holm is None else p_holm) < ALPHA
    needed = episodes_needed(sd, Goal(gap=abs(paired.gap))) if sd > 0 and paired.gap else None
    reported = {side for pair in pairs for side in pair.self_reported}
    gap = Gap(
        task=task,
        self_reported=tuple(side for side in ("A", "B") if side in reported),
        unit=unit,
        n=min(x.size for x in gaps),
        a=float(np.mean([x.mean() for x in a])),
        b=float(np.mean([x.mean() for x in b])),
        gap=paired.gap,
        low=paired.gap - paired.ci95,
        high=paired.gap + paired.ci95,
        p=p,
        p_holm=p_holm,
        d=paired.gap / sd if sd > 0 else None,
        superiority=float(np.mean([((x > 0) + 0.5 * (x == 0)).mean() for x in gaps])),
        needed=needed,
        better=("A" if paired.gap > 0 else "B") if is_significant else None,
    )
    return gap.model_copy(update={"words": sentence(gap)})


def sign_test(pairs: "Sequence[PairedOutcomes]") -> SignTest:
    """Return the exact binomial test over tasks; tasks over the same episodes count as one."""
    from scipy.stats import binomtest

    draws = dict.fromkeys(pair.draws for pair in pairs)
    means = [np.mean([x.gaps.mean() for x in pairs if x.draws == draw]) for draw in draws]
    signs = np.sign(np.round(means, 12))
    a, b, tied = (int((signs == sign).sum()) for sign in (1, -1, 0))
    p = float(binomtest(a, a + b).pvalue) if a + b else 1.0
    return SignTest(a=a, b=b, tied=tied, p=p)


def sentence(gap: Gap) -> str:
    """Return the gap in words, e.g. 'A is better by 1.2 points (95 % 0.4 to 2.0)'."""
    if gap.better:
        sign = 1 if gap.better == "A" else -1
        low, high = (format_points(end) for end in sorted((sign * gap.low, sign * gap.high)))
        return (
            f"{gap.better} is better by {format_points(abs(gap.gap))} points (95 % {low} to {high})"
        )
    n = f"{gap.n:,} {gap.unit}"
    if gap.superiority == 0.5 and gap.low == gap.high == 0:
        return f"no difference in any of {n}"
    undecided = f"not distinguishable at {n}"
    if gap.needed is None or gap.needed <= gap.n:
        return undecided
    return f"{undecided}; {describe_needed(gap.needed)}"


def describe_needed(needed: int) -> str:
    """Return how many pairs would detect a gap, rounded to two digits, in words."""
    if needed > MILLION:
        return "more than a million would be needed"
    rounded = round(needed, 2 - len(str(needed))) if needed >= 100 else needed
    return f"about {rounded:,} would be needed"


def format_points(fraction: float) -> str:
    """Return a fraction in percent points, with two digits below one tenth of a point."""
    value = 100 * fraction
    return f"{value:.2f}" if 0 < abs(value) < 0.1 else f"{value:.1f}"


def format_p(p: float) -> str:
    """Return a p-value with three digits, or one significant digit below 0.001."""
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1g}"


def overall_name(n_tasks: int) -> str:
    return f"overall, {n_tasks} task{'s' if n_tasks > 1 else ''}"


class EpisodesNeeded(Frozen):
    """The episodes that one task, or the mean over tasks, needs; fractions."""

    task: str
    episodes: int = Field(description="shared by both; of the smallest task for the overall line")
    gap: float = Field(description="mean of A - B")
    sd: float = Field(description="standard deviation of A - B over episodes")
    detectable: float = Field(description="gap that these episodes detect")
    detectable_600: float = Field(description="gap that the official number of episodes detects")
    needed: int = Field(description="episodes per task that detect the goal's gap")


class PowerAnalysis(Frozen):
    """The episodes needed per task of a track, for their mean, and for dense queries."""

    a: str
    b: str
    track: str
    goal: Goal
    cells: tuple[EpisodesNeeded, ...]
    overall: EpisodesNeeded
    dense: tuple[EpisodesNeeded, ...]

    def table(self) -> TextTable:
        """Return the lines as a table, in percent points."""
        tasks = (*self.cells, *self.dense)
        short = shorten_columns([line.task for line in tasks])[0]
        lines = (*self.cells, self.overall, *self.dense)
        names = (*short[: len(self.cells)], self.overall.task, *short[len(self.cells) :])
        rows = tuple(
            (
                name,
                str(line.episodes),
                *(f"{100 * v:.2f}" for v in (line.gap, line.sd, line.detectable)),
                f"{100 * line.detectable_600:.2f}",
                str(line.needed),
            )
            for name, line in zip(names, lines, strict=True)
        )
        needed = f"episodes for {100 * self.goal.gap:g}"
        columns = ("task", "episodes", "A - B", "sd of A - B", "detectable", "at 600", needed)
        title = f"A: {self.a}, B: {self.b}, {self.track}"
        return TextTable(title, columns, rows, optional=(DENSE, "sd of A - B"))


def analyze_power(
    a: Comparable,
    b: Comparable,
    goal: Goal,
    *,
    tasks: Sequence[str] = (),
    board: str | Path | None = None,
) -> tuple[PowerAnalysis, ...]:
    """Return how many episodes distinguish two entries, from the spread of their paired outcomes.

    One analysis per track, as `compare`. Raises UsageError, UnknownName and ValidationFailed as it
    does, and UsageError if no few-shot task is shared.
    """
    goal.require_possible()
    names = (name_of(a, "A"), name_of(b, "B"))
    tracks = group_by_head(shared_tasks(a, b, tasks, board, few_shot=True))
    return tuple(
        analyze_track(*names, track.label, members, goal) for track, members in tracks.items()
    )


def analyze_track(
    a: str, b: str, track: str, shared: "Sequence[SharedTask]", goal: Goal
) -> PowerAnalysis:
    pairs = [task.outcomes() for task in shared]
    dense = [pair for pair in (task.dense() for task in shared) if pair is not None]
    return PowerAnalysis(
        a=a,
        b=b,
        track=track,
        goal=goal,
        cells=tuple(episodes_for(pair, goal) for pair in pairs),
        overall=episodes_for_mean(pairs, goal),
        dense=tuple(episodes_for(pair, goal) for pair in dense),
    )


def episodes_for(pair: "PairedOutcomes", goal: Goal) -> EpisodesNeeded:
    sd = float(pair.gaps.std(ddof=1))
    return EpisodesNeeded(
        task=pair.task,
        episodes=pair.gaps.size,
        gap=float(pair.gaps.mean()),
        sd=sd,
        detectable=detectable(sd, pair.gaps.size, goal),
        detectable_600=detectable(sd, OFFICIAL_EPISODES, goal),
        needed=episodes_needed(sd, goal),
    )


def episodes_for_mean(pairs: "Sequence[PairedOutcomes]", goal: Goal) -> EpisodesNeeded:
    draws = [pair.draws for pair in pairs]
    paired = statistics.paired([pair.a for pair in pairs], [pair.b for pair in pairs], draws)
    sd = statistics.overall_sd([pair.gaps for pair in pairs], draws)
    return EpisodesNeeded(
        task=overall_name(len(pairs)),
        episodes=min(pair.gaps.size for pair in pairs),
        gap=paired.gap,
        sd=sd,
        detectable=statistics.standard_errors(goal) * paired.se,
        detectable_600=detectable(sd, OFFICIAL_EPISODES, goal),
        needed=episodes_needed(sd, goal),
    )


@dataclass(frozen=True, eq=False)
class PairedOutcomes:
    """Outcomes (n,) of the episodes or test images of both entries, with their numbers (n,).

    draws: names the random draw of the episodes; tasks with equal draws are not independent;
    self_reported: sides without a signed badge.
    """

    task: str
    index: NDArray[np.int64]
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    draws: str
    self_reported: tuple[Side, ...] = ()

    @property
    def gaps(self) -> NDArray[np.float64]:
        return self.a - self.b


@dataclass(frozen=True, eq=False)
class SharedTask:
    """A task, with spec and images, that both entries have results of."""

    column: Column
    a: Loaded
    b: Loaded
    self_reported: tuple[Side, ...] = ()

    @property
    def few_shot(self) -> bool:
        """Return whether the results are over episodes, not over the test images of a probe."""
        return isinstance(self.a.result.spec, EpisodicSpec)

    def outcomes(self) -> PairedOutcomes:
        """Return the paired outcomes. Raises UsageError below two episodes or images."""
        outcomes = extract_outcomes(self.a), extract_outcomes(self.b)
        return pair_outcomes(str(self.column.name), *outcomes, self.self_reported)

    def dense(self) -> PairedOutcomes | None:
        """Return the outcomes over all possible queries, None unless both have them."""
        a, b = dense_outcomes(self.a), dense_outcomes(self.b)
        if a is None or b is None:
            return None
        return pair_outcomes(str(self.column.name.marked(DENSE)), a, b, self.self_reported)


def shared_tasks(
    a: Comparable,
    b: Comparable,
    texts: Sequence[str],
    board: str | Path | None,
    few_shot: bool = False,
) -> list[SharedTask]:
    """Return the tasks with results of both entries, in the order of a table.

    Only tasks that `texts` names, all if it is empty; without probes if `few_shot`. Raises as
    `compare`.
    """
    patterns = [TaskPattern.parse(text) for text in texts]
    sources = [results_of(source, board) for source in (a, b)]
    left, right = (
        {
            identify_column(loaded.result): loaded
            for loaded in results
            if (not few_shot or isinstance(loaded.result.spec, EpisodicSpec))
            and (not patterns or any(covers(pattern, loaded.result) for pattern in patterns))
        }
        for results, _ in sources
    )
    columns = sorted(left.keys() & right.keys(), key=lambda c: (c.name, c.spec_digest))
    if not columns:
        names = f"{name_of(a, 'A')} and {name_of(b, 'B')}"
        raise nothing_shared(names, left, right, "few-shot task" if few_shot else "task")
    sides: tuple[Side, Side] = ("A", "B")
    return [
        SharedTask(
            column,
            left[column],
            right[column],
            tuple(s for s, (_, r) in zip(sides, sources, strict=True) if str(column.name) in r),
        )
        for column in columns
    ]


def results_of(
    source: Comparable, board: str | Path | None
) -> tuple[Sequence[Loaded], Collection[str]]:
    """Return the verified results of one model: of a folder, an entry or loaded results.

    Returns as well the columns of an entry that no signed badge covers.
    """
    reported: Collection[str] = ()
    if not isinstance(source, str | Path):
        loaded: Sequence[Loaded] = [read_verified(path) for path in source.paths]
    elif Path(source).exists():
        loaded = list(read_cells(Path(source)))
    elif board is None:
        raise UsageError(f"{source} does not exist", fix="give a results folder, or --board DIR")
    else:
        opened = Board.existing(Path(board))
        if str(source) not in opened.names():
            raise UnknownName("entry", str(source), opened.names())
        entry = opened.entry(str(source))
        loaded = entry.cells
        columns = (str(result.result.column) for result in loaded)
        reported = {column for column in columns if column not in entry.verification.verdicts}
    models = {result.result.backbone.identity: result.model for result in loaded}
    if len(models) > 1:
        listed = ", ".join(sorted(models.values()))
        raise UsageError(
            f"{name_of(source, 'the results')} holds several models: {listed}",
            fix="give the folder of one model",
        )
    return loaded, reported


def name_of(source: Comparable, default: str) -> str:
    """Return the name that a table shows for an entry."""
    if isinstance(source, str | Path):
        return str(source)
    return source.models[0] if source.models else default


def covers(pattern: TaskPattern, result: Result) -> bool:
    """Return whether a pattern covers a result. Raise UnknownName for an unknown data set.

    Images of the user may lie elsewhere than they did for the result.
    """
    names = pattern.dataset_names(data.resolve_alias, data.dataset_groups())
    return strip_digest(result.task.dataset) in names and pattern.covers(result.task)


def dense_outcomes(loaded: Loaded) -> Outcomes | None:
    """Return the accuracy of every episode over all possible queries, None if not scored."""
    records = loaded.records
    if not isinstance(records, EpisodeRecords) or records.dense_accuracy is None:
        return None
    return Outcomes(records.index, records.dense_accuracy, extract_outcomes(loaded).draws)


def pair_outcomes(
    task: str, left: Outcomes, right: Outcomes, self_reported: tuple[Side, ...] = ()
) -> PairedOutcomes:
    """Return the outcomes with equal numbers. Raises UsageError below two."""
    index, i, j = np.intersect1d(left.index, right.index, return_indices=True)
    if index.size < 2:
        raise UsageError(
            f"{task}: {left.index.size} and {right.index.size} episodes, {index.size} of them "
            "shared: too few shared episodes to estimate the variance",
            fix="evaluate both on the same episodes (no --shard, equal --episodes)",
        )
    values = left.values[i], right.values[j]
    return PairedOutcomes(task, index, *values, left.draws, self_reported)


def nothing_shared(
    names: str, left: Mapping[Column, Loaded], right: Mapping[Column, Loaded], kind: str
) -> UsageError:
    """Return the error: the tasks differ, or what they were evaluated on does."""
    both = sorted({c.name for c in left} & {c.name for c in right})
    if both:
        return UsageError(
            f"{names} evaluated {both[0]} with other settings, episodes or images: not paired",
            fix="evaluate both with one --seed on the same copy of the data",
        )
    tasks = [", ".join(map(str, sorted(c.name for c in side))) or "none" for side in (left, right)]
    return UsageError(
        f"{names} share no {kind}: {tasks[0]} against {tasks[1]}",
        fix="evaluate both on one task, or leave -t out",
    )
