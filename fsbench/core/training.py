"""Training record of a run: its recipe and cost, part of every result of the run.

Two runs are matched in compute when their `conditions` are equal and they took as many steps over
as many images: the same source, network, plan, optimizer and schedule, whatever the methods. That
follows from the recipe's content, which its digest vouches for, and never from names.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, model_validator

from fsbench.core.specs import SHA256, Frozen, digest

Word = Annotated[str, StringConstraints(pattern=r"^\w[\w/@:.+-]{0,99}$")]
RESTARTING = ("cosine", "step", "plateau")
"""Schedules that fall within a round; the others run through, or stay."""
RUN_ITS_OWN = ("name", "seed", "methods")
"""Fields of a recipe in which matched runs may differ."""


OF_ITS_MACHINE = frozenset({"seconds", "peak_memory_bytes"})
"""Costs in which a run repeated to the bit differs."""


class _Read(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Method(_Read):
    name: Word
    code: Annotated[str, StringConstraints(pattern=SHA256)] | None = None


class _Plan(_Read):
    stages: tuple[JsonValue, ...] = Field(min_length=1, max_length=1000)
    rounds: int = Field(ge=1)
    epochs: int = Field(ge=1)


class RecipeView(_Read):
    """The fields of a recipe that a board reads."""

    name: Word
    methods: tuple[_Method, ...] = Field(min_length=1, max_length=20)
    seed: int = Field(ge=0)
    plan: _Plan
    schedule: Word
    loader: Word = "batches"


class Training(Frozen):
    """Recipe and cost of a run. Seconds and memory are those of its machine, the rest is exact."""

    recipe: dict[str, JsonValue] = Field(description="every field of the recipe")
    source_fingerprint: str = Field(min_length=1, max_length=200)
    steps: int = Field(ge=0, description="optimizer steps")
    samples: int = Field(ge=0, description="training images seen, repeats counted")
    flops: int = Field(
        ge=0, description="of steps and events, as pretrain/training/cost.py counts them"
    )
    seconds: float = Field(ge=0, le=1e10)
    peak_memory_bytes: int = Field(ge=0, description="of the GPU or the process; 0: unknown")
    device: str = Field(min_length=1, max_length=200, description="cpu or the GPU's name")

    @model_validator(mode="after")
    def _readable(self) -> Self:
        digest(self.recipe)
        RecipeView.model_validate(self.recipe)
        return self

    @cached_property
    def view(self) -> RecipeView:
        return RecipeView.model_validate(self.recipe)

    @property
    def recipe_digest(self) -> str:
        """sha-256 of the recipe's canonical text: what `Recipe.digest()` gave."""
        return digest(self.recipe)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in the order in which they act."""
        return tuple(method.name for method in self.view.methods)

    @property
    def custom_code(self) -> dict[str, str]:
        """sha-256 of the file of each method that is code of the user, by its name."""
        return {method.name: method.code for method in self.view.methods if method.code}

    @property
    def plain(self) -> bool:
        """Return whether it is plain training, the control of all others."""
        return self.methods == ("normal",) and self.view.loader != "episodes"

    @property
    def rounds(self) -> int:
        """Return the total over all stages."""
        return len(self.view.plan.stages) * self.view.plan.rounds

    @property
    def restarts(self) -> bool:
        """Return whether the learning rate starts over at every round."""
        return self.rounds > 1 and self.view.schedule in RESTARTING

    @property
    def plan(self) -> str:
        """In words, e.g. `3 rounds x 4 epochs`."""
        plan = self.view.plan
        parts = ((len(plan.stages), "stage"), (plan.rounds, "round"), (plan.epochs, "epoch"))
        shown = [f"{n} {unit}{'s' * (n > 1)}" for n, unit in parts if n > 1 or unit != "stage"]
        return " x ".join(shown)

    @property
    def composition(self) -> str:
        """Digest of all but name and seed, and of the source: equal for seeds of one method."""
        fields = {k: v for k, v in self.recipe.items() if k not in ("name", "seed")}
        return digest({**fields, "source_fingerprint": self.source_fingerprint})

    def conditions(self, schedule: str | None = None) -> str:
        """Digest of all that matched runs share, under another schedule where one is given.

        Tasks and batches of as many images count as the same loader: a meta-learner's control
        learns to classify the images of its tasks.
        """
        fields = {k: v for k, v in self.recipe.items() if k not in RUN_ITS_OWN}
        if self.view.loader == "episodes":
            fields["loader"] = "batches"
        if schedule is not None:
            fields["schedule"] = schedule
        return digest({**fields, "source_fingerprint": self.source_fingerprint})
