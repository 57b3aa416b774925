"""The length of a run: stages x rounds x epochs, the same for every method of a comparison.

A stage is a part of the source data: warm start and continual learning have several (SCENARIOS). A
round is what the papers call a generation. An epoch is one pass over the stage's images, or over
`epoch_images` of them. The training loop alone moves the TrainingClock; methods read it.

A round may also be given in optimizer steps (`round_steps`), and it may end early: after
`stop_patience` epochs in a row with a training accuracy of at least `stop_accuracy` ("The Impact of
Reinitialization", section 3.3, trains until convergence within a number of steps). That accuracy is
the one in log.jsonl: on the augmented batches, before their step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.seeding import Name
from fsbench.core.specs import Frozen


class Stage(Frozen):
    """Training on the images [start, stop) of one random order of the source, as fractions."""

    start: float = Field(0.0, ge=0, lt=1)
    stop: float = Field(1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if self.start >= self.stop:
            raise ValueError(f"a stage from {self.start} to {self.stop} holds no image")
        return self


class Plan(Frozen):
    """Stages x rounds x epochs of a run."""

    stages: tuple[Stage, ...] = Field((Stage(),), min_length=1)
    rounds: int = Field(1, ge=1, description="rounds (generations) per stage")
    epochs: int = Field(1, ge=1, description="epochs per round")
    epoch_images: int | None = Field(
        None, ge=1, description="images per epoch, a new random choice each time; null: all"
    )
    round_steps: int | None = Field(
        None, ge=1, description="steps per round; sets epochs and epoch_images; null: not fixed"
    )
    stop_accuracy: float | None = Field(
        None, gt=0, le=1, description="training accuracy that ends a round early; null: never"
    )
    stop_patience: int = Field(1, ge=1, description="epochs in a row at stop_accuracy")

    @property
    def total_rounds(self) -> int:
        return len(self.stages) * self.rounds

    @property
    def total_epochs(self) -> int:
        """Epochs of all rounds, if none ends early."""
        return self.total_rounds * self.epochs


def count_epochs(steps: int, least: int, longest: int) -> int:
    """Return the fewest epochs, from `least` on, of equal whole steps, at most `longest` each."""
    for epochs in range(least, steps + 1):
        if steps % epochs == 0 and steps // epochs <= longest:
            return epochs
    raise UsageError(
        f"plan.round_steps={steps} is fewer than a round has epochs: plan.epochs={least}",
        fix=f"give at least {least} steps, or --set plan.epochs={steps}",
    )


@dataclass
class TrainingClock:
    """Position of a run: the step that comes next.

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
        """Return whether the current round is the first of its stage."""
        return self.round % self.plan.rounds == 0

    @property
    def last_epoch(self) -> bool:
        """Return whether this is the last epoch of its round, by plan or by convergence."""
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
        self.batch += 1
        self.step += 1

    def record_accuracy(self, train_accuracy: float | None) -> None:
        """Count the epoch as converged or not, by its training accuracy (None: not measured)."""
        reached = train_accuracy is not None and train_accuracy >= (self.plan.stop_accuracy or 1)
        self.converged = self.converged + 1 if reached else 0

    def next_epoch(self) -> None:
        """Move to the next epoch, or to the next round after the last epoch of a round."""
        self.batch = 0
        if self.last_epoch:
            self.round, self.epoch, self.converged = self.round + 1, 0, 0
        else:
            self.epoch += 1

    def position(self) -> dict[str, int]:
        """Return step, stage, round and epoch, as logs name them."""
        return {name: getattr(self, name) for name in ("step", "stage", "round", "epoch")}

    def state(self) -> dict[str, int]:
        """Return the counters, for a checkpoint."""
        counters = ("round", "epoch", "batch", "step", "converged")
        return {name: getattr(self, name) for name in counters}


CHUNKS = 10
SCENARIOS: Mapping[str, tuple[Stage, ...]] = {
    "stationary": (Stage(),),
    "warm-start": (Stage(stop=0.5), Stage()),
    "continual-full": tuple(Stage(stop=(k + 1) / CHUNKS) for k in range(CHUNKS)),
    "continual-limited": tuple(
        Stage(start=k / CHUNKS, stop=(k + 1) / CHUNKS) for k in range(CHUNKS)
    ),
}
"""Scenarios of arriving source images ("Soft Weight Rescaling", section 4 and appendix E): all at
once, half first, or in ten parts of which all earlier ones stay available or not."""


def scenario_fields(name: str) -> dict[str, object]:
    """Return the recipe fields that a scenario sets. Raises UnknownName.

    With several stages the optimizer state and the learning rate carry over, as in the paper's
    code: nothing is reset and no schedule runs. The control of a run is `normal` of the same scale
    under the same scenario, with as many images per epoch.
    """
    if name not in SCENARIOS:
        raise UnknownName("scenario", name, SCENARIOS)
    stages = SCENARIOS[name]
    continued = {"opt_reset": "none", "schedule": "constant", "warmup": 0.0}
    return {"plan.stages": stages, **(continued if len(stages) > 1 else {})}
