"""The records of a method board, as they are written to JSON.

Accuracies, gaps and variances are fractions. Unknown values are None; a missing control has a
reason.
"""

from typing import Literal

from pydantic import Field

from fsbench.core.specs import Frozen
from leaderboard.ranking.seeds import Coverage

ControlKind = Literal["normal", "other_schedule", "random_init"]
"""Controls of a row. normal: plain training, all else equal; other_schedule: the same, but with a
learning rate that restarts at every round if the row's does not, and vice versa; random_init: the
network before any training."""

CostAxis = Literal["flops", "hours"]


def _ends(middle: float, half: float | None) -> tuple[float | None, float | None]:
    return (None, None) if half is None else (middle - half, middle + half)


class VarianceComponents(Frozen):
    """Variance components of one accuracy (gains.py); for a probe, episodes are test images."""

    seeds: float | None = Field(None, ge=0, description="over pretraining seeds; null for one seed")
    episodes: float | None = Field(
        None, ge=0, description="over episodes; for one seed with the residual"
    )
    residual: float | None = Field(
        None, ge=0, description="what neither explains; null for one seed"
    )


class Gain(Frozen):
    """Row - control over shared episodes. ci95 is the half-width of the interval of `covers`."""

    gap: float
    ci95: float | None = Field(ge=0)
    p: float = Field(ge=0, le=1, description="two-sided, of no gap")
    p_holm: float = Field(
        1.0, ge=0, le=1, description="adjusted over the rows of this board, column and control"
    )
    n: int = Field(ge=0, description="shared episodes or test images")
    seeds: tuple[int, ...] = Field(
        description="pretraining seeds that both sides have; for random_init those of the row"
    )
    covers: Coverage = Field(
        description="pooled: the spread between seeds is that of the rows with several seeds"
    )
    by_seed: tuple[float, ...] = Field(
        (), description="the gap of each of `seeds`; empty where the sides share no seeds"
    )

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Ends of the 95 % interval, None if unknown."""
        return _ends(self.gap, self.ci95)

    def is_significant(self, alpha: float) -> bool:
        """Return whether the gain survives Holm's correction; below two seeds no gain does."""
        return self.covers == "seeds and episodes" and self.p_holm < alpha


class InDomainGain(Frozen):
    """Row - control in accuracy on the source, the mean over the seeds that both have.

    by_seed: of each of `seeds`; runs of one seed share initial weights, batches and validation
    images. The interval and p are of a paired t test over seeds: None and 1 below two.
    """

    gap: float
    ci95: float | None = Field(ge=0, description="half-width over seeds")
    p: float = Field(ge=0, le=1)
    p_holm: float = Field(1.0, ge=0, le=1, description="adjusted over the rows of this board")
    seeds: tuple[int, ...]
    by_seed: tuple[float, ...]

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Ends of the 95 % interval, None if unknown."""
        return _ends(self.gap, self.ci95)

    def is_significant(self, alpha: float) -> bool:
        """Return whether the gain survives Holm's correction."""
        return self.p_holm < alpha


class MethodScore(Frozen):
    """A row in one column, or overall: the unweighted mean over the columns."""

    mean: float = Field(ge=0, le=1, description="over seeds and shared episodes")
    ci95: float | None = Field(ge=0, description="half-width over episodes, for these seeds")
    ci95_seeds: float | None = Field(
        None, ge=0, description="half-width over seeds and episodes; null for one seed"
    )
    n: int = Field(ge=1, description="shared episodes or test images")
    spread: VarianceComponents
    gains: dict[ControlKind, Gain] = Field({})

    @property
    def interval(self) -> tuple[float | None, float | None]:
        """Ends of the 95 % interval over episodes, None if unknown."""
        return _ends(self.mean, self.ci95)


class MethodControl(Frozen):
    """The control of one kind: a row, or the reason why there is none."""

    row: str | None = None
    reason: str | None = None


class MethodCosts(Frozen):
    """Costs of one pretraining run, mean over the seeds."""

    steps: float = Field(ge=0)
    samples: float = Field(ge=0, description="training images seen, repeats counted")
    flops: float = Field(ge=0)
    hours: float = Field(ge=0, description="on `device`")
    peak_memory_bytes: float | None = Field(ge=0)
    device: str | None = Field(description="null if the seeds ran on several, or none was used")


class MethodRow(Frozen):
    """One method under one recipe; its seeds are entries of the board.

    name: unique on the board; method: names of its methods joined by +, or `random init`; overall:
    null for a row that lacks a column; front: the costs for which it is on the Pareto front.
    """

    name: str
    method: str
    recipe: str | None = Field(description="name of the recipe; null for random_init")
    plan: str | None = Field(description="e.g. '3 rounds x 4 epochs'")
    schedule: str | None = None
    restarts: bool | None = Field(None, description="whether the rate restarts at every round")
    architecture: str
    pretraining_data: tuple[str, ...]
    entries: tuple[str, ...]
    seeds: tuple[int, ...]
    n_seeds: int = Field(ge=1)
    cells: dict[str, MethodScore] = Field(
        description="by column; a column that it lacks is missing"
    )
    overall: MethodScore | None
    source_accuracy: float | None = Field(description="in-domain; mean over the seeds")
    source_gain: InDomainGain | None = Field(
        None, exclude_if=lambda value: value is None, description="in-domain, over plain training"
    )
    self_reported: bool = Field(
        False,
        exclude_if=lambda value: not value,
        description="no signed badge covers some result of its entries",
    )
    controls: dict[ControlKind, MethodControl]
    costs: MethodCosts
    front: tuple[CostAxis, ...] = ()


class MethodBoard(Frozen):
    """The fsbench runs on one track of a board; best row first, incomplete rows last.

    left_out: entry -> why it is in no row.
    """

    schema_version: Literal[1] = 1
    board: str
    track: str = Field("", description="what all columns share, e.g. 'ibm 64px'")
    columns: tuple[str, ...]
    alpha: float
    rows: tuple[MethodRow, ...]
    left_out: dict[str, str]
