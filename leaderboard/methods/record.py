"""The records of a method board, as they are written to JSON.

Accuracies, gaps and variances are fractions; unknown values are None.
"""

from typing import Literal

from pydantic import Field

from fsbench.core.specs import Frozen
from leaderboard.ranking.seeds import Coverage

ControlKind = Literal["normal", "other_schedule", "random_init"]
"""Controls of a row. normal: plain training, all else equal; other_schedule: the same, but with a
learning rate that restarts at every round if the row's does not, and vice versa; random_init: the
network before any training."""


class Gain(Frozen):
    """Row - control. ci95 is the half-width of the interval of `covers`; by_seed: of each seed.

    On the targets over shared episodes or test images. On the source (covers: seeds) by a paired t
    test over the seeds that both sides have; below two, ci95 is None and p is 1.
    """

    gap: float
    ci95: float | None = Field(ge=0)
    p: float = Field(ge=0, le=1, description="two-sided, of no gap")
    p_holm: float = Field(
        1.0, ge=0, le=1, description="adjusted over the rows of this board, column and control"
    )
    significant: bool = Field(False, description="after Holm; never with one seed on a side")
    n: int = Field(ge=0, description="shared episodes or test images; on the source: seeds")
    seeds: tuple[int, ...] = Field(
        description="pretraining seeds that both sides have; for random_init those of the row"
    )
    covers: Coverage | Literal["seeds"] = Field(
        description="pooled: the spread between seeds is that of the rows with several seeds"
    )
    by_seed: tuple[float, ...] = Field((), description="empty where the sides share no seeds")


class MethodScore(Frozen):
    """A row in one column, or overall: the unweighted mean over the columns."""

    mean: float = Field(ge=0, le=1, description="over seeds and shared episodes")
    ci95: float | None = Field(ge=0, description="half-width over episodes, for these seeds")
    ci95_seeds: float | None = Field(
        ge=0, description="half-width over seeds and episodes; null for one seed"
    )
    n: int = Field(ge=1, description="shared episodes or test images")
    variance_seeds: float | None = Field(
        ge=0, description="component of the pretraining seeds; null for one seed"
    )
    gains: dict[ControlKind, Gain] = Field({})


class MethodCosts(Frozen):
    """Costs of one pretraining run, mean over the seeds; a random initialization has none."""

    steps: float = Field(0, ge=0)
    samples: float = Field(0, ge=0, description="training images seen, repeats counted")
    flops: float = Field(0, ge=0)
    hours: float = Field(0, ge=0, description="on `device`")
    peak_memory_bytes: float | None = Field(None, ge=0)
    device: str | None = Field(None, description="null if the seeds ran on several")


class MethodRow(Frozen):
    """An entry of the board with its seeds.

    method: names of its methods joined by +, or `random init`; overall: null for a row that lacks a
    column.
    """

    name: str
    method: str
    plan: str | None = Field(description="e.g. '3 rounds x 4 epochs'; null for random weights")
    schedule: str | None
    architecture: str
    seeds: tuple[int, ...] = Field(min_length=1)
    scores: dict[str, MethodScore] = Field(
        description="by column; a column that it lacks is missing"
    )
    overall: MethodScore | None
    source_accuracy: float | None = Field(description="in-domain; mean over the seeds")
    source_gain: Gain | None = Field(description="in-domain, over plain training")
    self_reported: bool = Field(description="no signed badge covers some result of the entry")
    controls: dict[ControlKind, str] = Field(description="names of the rows that gains are over")
    missing: dict[ControlKind, str] = Field(description="why there is no control of this kind")
    costs: MethodCosts

    @property
    def gain(self) -> Gain | None:
        """The overall gain over plain training."""
        return self.overall.gains.get("normal") if self.overall else None


class MethodBoard(Frozen):
    """The fsbench runs on one track of a board; best row first, incomplete rows last.

    left_out: entry -> why it is in no row.
    """

    board: str
    track: str = Field("", description="what all columns share, e.g. 'ibm 64px'")
    columns: tuple[str, ...]
    rows: tuple[MethodRow, ...]
    left_out: dict[str, str]
