"""How long a run is: stages x rounds x epochs, owned by the loop so that budgets are equal.

A stage is a part of the source data (warm start and continual learning have several), a round is
what the papers call a generation, an epoch is one pass over the stage's images or over
`epoch_images` of them. Methods read the Clock and never count for themselves.

A budget may be given in steps (`round_steps`, pretrain/recipes/recipe.py), and a round may end once
training
has converged ([000] section 3.3: "until convergence", within a number of steps): after
`stop_patience` epochs in a row whose training accuracy was at least `stop_accuracy`. That is the
accuracy of log.jsonl: on the batches as they were trained on, augmented, before their step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from fsbench.core.errors import UnknownName
from fsbench.core.seeding import Name
from fsbench.core.specs import Frozen


class Stage(Frozen):
    """Trains on the images [start, stop) of one random order of the source, as fractions.

    Warm start is [0, .5) then [0, 1); continual learning with full access [0, k/10), with limited
    access [(k-1)/10, k/10).
    """

    start: float = Field(0.0, ge=0, lt=1)
    stop: float = Field(1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.start >= self.stop:
            raise ValueError(f"a stage from {self.start} to {self.stop} holds no image")
        return self


class Plan(Frozen):
    """Stages x rounds x epochs; every method of a comparison gets the same one."""

    stages: tuple[Stage, ...] = Field((Stage(),), min_length=1)
    rounds: int = Field(1, ge=1, description="rounds (the papers' generations) a stage")
    epochs: int = Field(1, ge=1, description="epochs a round")
    epoch_images: int | None = Field(
        None, ge=1, description="images an epoch, a new random choice each time; null: all"
    )
    round_steps: int | None = Field(
        None, ge=1, description="steps a round: epochs get shorter, or more; null: as many as fit"
    )
    stop_accuracy: float | None = Field(
        None, gt=0, le=1, description="training accuracy that ends a round early; null: none does"
    )
    stop_patience: int = Field(1, ge=1, description="epochs in a row at stop_accuracy")

    @property
    def total_rounds(self) -> int:
        return len(self.stages) * self.rounds

    @property
    def total_epochs(self) -> int:
        return self.total_rounds * self.epochs


@dataclass
class TrainingClock:
    """Where a run stands: the step that comes next. Only the loop moves it.

    round: counts through all stages, 0..plan.total_rounds - 1; epoch: within the round; batch:
    within the epoch; step: optimizer steps since the start; converged: epochs in a row that
    reached plan.stop_accuracy.
    """

    plan: Plan
    round: int = 0
    epoch: int = 0
    batch: int = 0
    step: int = 0
    converged: int = 0

    @property
    def stage(self) -> int:
        return self.round // self.plan.rounds

    @property
    def starts_stage(self) -> bool:
        return self.round % self.plan.rounds == 0

    @property
    def last_epoch(self) -> bool:
        """Whether this is the last epoch of its round, by the plan or because it converged."""
        stops = self.plan.stop_accuracy is not None and self.converged >= self.plan.stop_patience
        return stops or self.epoch == self.plan.epochs - 1

    @property
    def done(self) -> bool:
        return self.round >= self.plan.total_rounds

    @property
    def names(self) -> tuple[Name, ...]:
        """Names of this position for random streams."""
        return (self.stage, self.round, self.epoch, self.batch)

    def tick(self) -> None:
        """One optimizer step was taken."""
        self.batch += 1
        self.step += 1

    def judge(self, train_accuracy: float | None) -> None:
        """The training accuracy (fraction; null: not measured) of the epoch that is just over."""
        reached = train_accuracy is not None and train_accuracy >= (self.plan.stop_accuracy or 1)
        self.converged = self.converged + 1 if reached else 0

    def next_epoch(self) -> None:
        """The epoch is over; after a round's last one the next round follows."""
        self.batch = 0
        if self.last_epoch:
            self.round, self.epoch, self.converged = self.round + 1, 0, 0
        else:
            self.epoch += 1

    def state(self) -> dict[str, int]:
        """The counters, for a checkpoint."""
        return {
            "round": self.round,
            "epoch": self.epoch,
            "batch": self.batch,
            "step": self.step,
            "converged": self.converged,
        }


CHUNKS = 10
SCENARIOS: Mapping[str, tuple[Stage, ...]] = {
    "stationary": (Stage(),),
    "warm-start": (Stage(stop=0.5), Stage()),
    "continual-full": tuple(Stage(stop=k / CHUNKS) for k in range(1, CHUNKS + 1)),
    "continual-limited": tuple(
        Stage(start=(k - 1) / CHUNKS, stop=k / CHUNKS) for k in range(1, CHUNKS + 1)
    ),
}


def scenario_fields(name: str) -> dict[str, object]:
    """What the scenario sets in a recipe. Raises UnknownName."""
    if name not in SCENARIOS:
        raise UnknownName("scenario", name, SCENARIOS)
    stages = SCENARIOS[name]
    carried = {"opt_reset": "none", "schedule": "constant", "warmup": 0.0}
    return {"plan.stages": stages, **(carried if len(stages) > 1 else {})}
