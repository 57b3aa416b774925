"""Engine of the claims: runs over seeds, conditions, figures, verdicts, means and curves.

A claim is a card and its code. The card, NAME.yaml, says where the paper makes the claim, how it is
tested here, and for every statement its condition and the rule of its figures. The code, NAME.py,
says which arms run with every seed, which quantities are measured of one run, and how conditions
and figures follow from them. All else is here.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal, NamedTuple

from fsbench.core import io
from fsbench.core.io import cache_folder
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Provenance, View
from fsbench.core.specs import Frozen
from fsbench.core.workers import Workers
from fsbench.data.catalog import SOURCES, DataRoots
from fsbench.data.loading import list_source

ClaimVerdict = Literal["reproduced", "direction only", "not reproduced", "not testable here"]
MissFault = Literal["not testable at this scale", "set-up differs", "contradicts the paper"]
"""Whose fault a miss is: that of a small machine, of the set-up here, or of the paper."""
OVERALL = (
    "condition: holds if the mean over seeds meets the bound; its standard error is shown beside."
    " Statement: not testable here if a condition fails; else reproduced if all figures are;"
    " direction only if at least 9 in 10 figures have at least the published direction; otherwise"
    " not reproduced"
)
FITTED = 99.0
"""Training accuracy (%) from which images count as learned by heart."""
FROM_START, FROM_FIRST = ("epoch", range(10**6)), ("epoch", range(1, 10**6))
"""Axes of values by epoch, with and without the value before training."""


class ClaimCondition(Frozen):
    """Condition under which a statement is testable: the requirement and the measurement."""

    what: str
    required: str
    ours: str
    holds: bool


class ClaimFigure(Frozen):
    """A checkable figure of a paper: what it says, what was measured here, and the verdict."""

    what: str
    published: str
    ours: str
    verdict: ClaimVerdict


class StatementOutcome(Frozen):
    """The result of testing one statement; reason: why it has its verdict, in one line.

    fault: whose fault it is that the statement is not reproduced, None if it is.
    """

    name: str
    statement: str
    rule: str
    conditions: tuple[ClaimCondition, ...]
    figures: tuple[ClaimFigure, ...]
    verdict: ClaimVerdict
    fault: MissFault | None = None
    reason: str


class ClaimOutcome(Frozen):
    """The result of re-running a claim; provenance: when, where and by which command."""

    source: str
    seeds: int
    full: bool = False
    statements: tuple[StatementOutcome, ...]
    notes: tuple[str, ...] = ()
    views: tuple[View, ...] = ()
    provenance: Provenance | None = None


class SeedMean(NamedTuple):
    """Mean of a quantity over seeds, and its standard error (0 of a single value)."""

    mean: float
    error: float

    @property
    def is_clear(self) -> bool:
        return self.mean > 2 * self.error

    def __format__(self, spec: str) -> str:
        return f"{self.mean:+{spec or '.2f'}} ± {self.error:{spec or '.2f'}}"

    def show(self, spec: str = ".2f") -> str:
        """Return mean ± error of a quantity that is no difference, so without a sign."""
        return f"{self.mean:{spec}} ± {self.error:{spec}}"

    def judge(self, what: str, published: str = "above 0", spec: str = "") -> ClaimFigure:
        """Return the figure: reproduced if it is clear, direction only if it is above 0."""
        return judge(what, published, f"{self:{spec}}", self.is_clear, self.mean > 0)


def average_seeds(values: Sequence[float]) -> SeedMean:
    """Return the mean of one value a seed, with its standard error."""
    error = stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return SeedMean(mean(values), error)


def compare_pairs(a: Iterable[float], b: Iterable[float]) -> SeedMean:
    """Return the mean over seeds of the paired differences a - b."""
    return average_seeds([x - y for x, y in zip(a, b, strict=True)])


def average(values: Iterable[Sequence[float]]) -> list[float]:
    """Return the mean over runs, point by point."""
    return [mean(point) for point in zip(*values, strict=True)]


def require(
    what: str,
    relation: Literal["at least", "at most"],
    bound: float,
    values: Sequence[float],
    unit: str = " %",
) -> ClaimCondition:
    """Require the mean over seeds to be at least, or at most, the bound.

    values: one a seed, or a single one. The standard error is shown beside the mean.
    """
    value = average_seeds(values)
    shown = f"{value.mean:.4g}" + (f" ± {value.error:.2g}" if len(values) > 1 else "")
    holds = value.mean >= bound if relation == "at least" else value.mean <= bound
    required, ours = f"{relation} {bound:g}{unit}", f"{shown}{unit}"
    return ClaimCondition(what=what, required=required, ours=ours, holds=holds)


def choose_verdict(reproduced: bool, directed: bool) -> ClaimVerdict:
    """Return the first that holds of reproduced, direction only and not reproduced."""
    return "reproduced" if reproduced else "direction only" if directed else "not reproduced"


def judge(
    what: str, published: str, ours: str, reproduced: bool, directed: bool = False
) -> ClaimFigure:
    """Return the figure; directed: it has at least the published direction."""
    verdict = choose_verdict(reproduced, directed)
    return ClaimFigure(what=what, published=published, ours=ours, verdict=verdict)


def judge_gains(what: str, published: str, ours: str, gains: Sequence[float]) -> ClaimFigure:
    """Return the figure: reproduced if the mean over seeds of the gain is above twice its error,
    direction only if it is above 0.
    """
    gain = average_seeds(gains)
    return judge(what, published, f"{ours}; gain {gain:.3g}", gain.is_clear, gain.mean > 0)


class Runs(dict[Any, list[Mapping[str, Any]]]):
    """Quantities of every run by name: by arm, in the order of seeds; arms: one, or a list."""

    def collect(self, quantity: str, arms: Any) -> list[Any]:
        chosen = arms if isinstance(arms, list) else [arms]
        return [run[quantity] for arm in chosen for run in self[arm]]

    def compare(self, quantity: str, a: Any, b: Any = None) -> SeedMean:
        """Compare a quantity of two arms, or of one (b None) with 0, seed by seed."""
        values = self.collect(quantity, a)
        others = [0.0] * len(values) if b is None else self.collect(quantity, b)
        return compare_pairs(values, others)

    def require(
        self, what: str, quantity: str, arms: Any, least: float = FITTED, unit: str = " %"
    ) -> ClaimCondition:
        """Require the quantity of every arm, mean over seeds, to be at least `least`.

        Of several arms, the one with the least mean is shown.
        """
        chosen = arms if isinstance(arms, list) else [arms]
        by_arm = [self.collect(quantity, arm) for arm in chosen]
        return require(what, "at least", least, min(by_arm, key=mean), unit)

    def require_equal(
        self, what: str, quantity: str, a: Any, b: Any, most: float
    ) -> ClaimCondition:
        """Require two arms to differ in a quantity by at most `most` points, mean over seeds."""
        pairs = zip(self.collect(quantity, a), self.collect(quantity, b), strict=True)
        return require(what, "at most", most, [abs(x - y) for x, y in pairs], " points")


Judgements = Iterable[ClaimCondition | ClaimFigure]
"""The conditions of a statement and its figures."""


class ClaimStatement(Frozen):
    """A statement of a paper in one line, the condition that it needs, and the rule of a figure.

    colour: the colour images are needed; searched: the settings come from a search for the printed
    figures, so that agreement is no evidence and the statement stays not reproduced. fault: whose
    fault a miss is if the conditions hold; if one fails, it is that of the scale. fault_reason:
    what differs from the paper, or what contradicts it.
    """

    text: str
    condition: str
    rule: str
    colour: bool = False
    searched: bool = False
    fault: MissFault = "set-up differs"
    fault_reason: str

    def assess(
        self, name: str, judgements: Sequence[ClaimCondition | ClaimFigure]
    ) -> StatementOutcome:
        """Return the verdict by the rule OVERALL, with its reason in one line."""
        conditions = tuple(part for part in judgements if isinstance(part, ClaimCondition))
        figures = tuple(part for part in judgements if isinstance(part, ClaimFigure))
        failed = [condition for condition in conditions if not condition.holds]
        fault: MissFault = "not testable at this scale" if failed else self.fault
        missed = [figure for figure in figures if figure.verdict == "not reproduced"]
        missed += [figure for figure in figures if figure.verdict == "direction only"]
        directed = sum(figure.verdict != "not reproduced" for figure in figures)
        verdict = choose_verdict(not missed, directed >= 0.9 * len(figures))
        reason = f"{len(figures) - len(missed)} of {len(figures)} figures reproduced"
        for first in missed[:1]:
            reason += f"; {first.verdict}: {first.what}: {first.ours} (published {first.published})"
        if failed:
            verdict = "not testable here"
            reason = f"{failed[0].what}: {failed[0].ours}, required {failed[0].required}"
        elif self.searched:
            reason = f"settings found by a search for these figures (alone: {verdict}); {reason}"
            verdict = "not reproduced"
        return StatementOutcome(
            name=name,
            statement=self.text,
            rule=self.rule,
            conditions=conditions,
            figures=figures,
            verdict=verdict,
            fault=None if verdict == "reproduced" else fault,
            reason=reason,
        )


class ClaimCard(Frozen):
    """The text of a claim. source: paper, section, table or figure; statements: by name.

    set_up: how it is tested here, and what was tried. seeds, full_seeds: default numbers of the
    quick and the `--full` run (0: nothing is random); first_seed: the first that no trial used.
    """

    source: str
    set_up: str
    seeds: int = 0
    full_seeds: int = 0
    first_seed: int = 100
    statements: dict[str, ClaimStatement]


def read_claim_card(name: str) -> ClaimCard:
    """Read the card of a claim, NAME.yaml."""
    return ClaimCard.model_validate(io.read_table(Path(__file__).with_name(f"{name}.yaml")))


@dataclass(frozen=True)
class ClaimSettings:
    """Settings of a claim's run. seeds: None for the claim's own number; full: the run that takes
    hours; data: roots of the data sets; processes and device change no rule.
    """

    seeds: int | None = None
    full: bool = False
    data: DataRoots = field(default_factory=DataRoots)
    processes: int = 2
    device: str = "cpu"

    @cached_property
    def colour_images(self) -> int:
        """The number of training images of TinyImageNet that are there, of 100,000."""
        if self.data.find(SOURCES.load("tinyimagenet").FACTS) is None:
            return 0
        return len(list_source("tinyimagenet", self.data, cache_folder(None)).parts["train"])


class ClaimJob(NamedTuple):
    arm: Any
    seed: int
    settings: ClaimSettings = ClaimSettings()


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: its card, and what judges the quantities, by statement.

    measure: returns the quantities of one job, in another process; arms: what runs with every seed;
    colour_arms: those that need the colour images; quick_arms: those left out of `full`. curves:
    axis of the quantities that are drawn; notes: further lines.
    """

    card: ClaimCard
    judges: Mapping[str, Callable[[Runs], Judgements]]
    measure: Callable[[ClaimJob], Mapping[str, Any]] = lambda job: {}
    arms: Collection[Any] = ()
    colour_arms: Collection[Any] = ()
    quick_arms: Collection[Any] = ()
    curves: Mapping[str, tuple[str, Sequence[float]]] = field(default_factory=dict)
    notes: Callable[[], Iterable[str]] = tuple

    def list_jobs(self, settings: ClaimSettings) -> list[ClaimJob]:
        """Return a job for every arm and seed; arms in colour only where their images are."""
        arms = [*self.arms, *(() if settings.full else self.quick_arms)]
        arms += self.colour_arms if settings.colour_images else ()
        number = settings.seeds or (self.card.full_seeds if settings.full else self.card.seeds)
        seeds = range(self.card.first_seed, self.card.first_seed + number)
        return [ClaimJob(arm, seed, settings) for arm in arms for seed in seeds]

    def judge(self, runs: Runs, colour_images: int) -> ClaimOutcome:
        """Return the verdicts on all statements, the means of all arms and the curves.

        colour_images: how many there are to draw from; their number changes the draw of a seed.
        """
        what, required = "colour images (TinyImageNet)", "on disk (--data or FSBENCH_DATA)"
        has_colour, ours = colour_images > 0, f"{colour_images:,} training images"
        colour = ClaimCondition(what=what, required=required, ours=ours, holds=has_colour)
        outcomes = []
        for name, statement in self.card.statements.items():
            judgements: list[ClaimCondition | ClaimFigure] = [colour] if statement.colour else []
            is_testable = has_colour or not statement.colour
            judgements += self.judges[name](runs) if is_testable else ()
            outcomes.append(statement.assess(name, judgements))
        return ClaimOutcome(
            source=self.card.source,
            seeds=0,
            statements=tuple(outcomes),
            notes=(*describe_arms(runs), *self.notes()),
            views=tuple(draw_curves(runs, self.curves)),
        )


def run_claims(
    claims: Sequence[Claim], settings: ClaimSettings, report: Reporter = SILENT
) -> Iterator[ClaimOutcome]:
    """Yield the outcome of every claim, in order.

    The runs of all claims share a pool of processes with one thread each, so that none waits for
    the last run of a claim while another claim has runs left.
    """
    jobs = [claim.list_jobs(settings) for claim in claims]
    with Workers(settings.processes) as pool:
        # map() submits all jobs at once; its results are waited for below.
        measures = [partial(measure_alone, claim.measure) for claim in claims]
        running = list(map(pool.map, measures, jobs))
        for claim, part, results in zip(claims, jobs, running, strict=True):
            runs = Runs({job.arm: [] for job in part})
            with report.task(claim.card.source, len(part), "runs") as advance:
                for job, quantities in zip(part, results, strict=True):
                    runs[job.arm].append(quantities)
                    advance(1)
            outcome, seeds = claim.judge(runs, settings.colour_images), {job.seed for job in part}
            yield outcome.model_copy(update={"seeds": len(seeds), "full": settings.full})


def measure_alone(
    measure: Callable[[ClaimJob], Mapping[str, Any]], job: ClaimJob
) -> Mapping[str, Any]:
    """Return the quantities of a job, computed by one thread."""
    import torch

    torch.set_num_threads(1)
    return measure(job)


def describe_arms(runs: Runs) -> Iterator[str]:
    """Yield the means over seeds of all quantities that are numbers, one line an arm."""
    for arm, results in runs.items():
        names = [name for name, value in results[0].items() if isinstance(value, int | float)]
        means = (f"{name} {mean(runs.collect(name, arm)):.4g}" for name in names)
        yield f"{arm if isinstance(arm, str) else ', '.join(map(str, arm))}: {', '.join(means)}"


def draw_curves(runs: Runs, axes: Mapping[str, tuple[str, Sequence[float]]]) -> Iterator[View]:
    """Yield the curves of the quantities that have an axis, means over seeds.

    Arms that are tuples share a panel with those that differ in the last part alone. A quantity of
    several curves by label has a panel for every arm.
    """
    for quantity, (x, axis) in axes.items():
        for arm in (arm for arm, results in runs.items() if quantity in results[0]):
            *group, label = [arm] if isinstance(arm, str) else arm
            curves = runs.collect(quantity, arm)
            if isinstance(curves[0], Mapping):
                group.append(label)
            else:
                curves = [{label: curve} for curve in curves]
            title = ": ".join([*group, quantity])
            for label in curves[0]:
                values = average(curve[label] for curve in curves)
                at = tuple(axis[: len(values)])
                yield View(title=title, x=x, y=quantity, at=at, values=values, label=label)
