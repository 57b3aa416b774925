"""What a training method is: frozen settings plus hooks that the loop calls (drawn in loop.py).

A method object never changes. All of its state sits in `ctx.memory`, a dict of tensors and plain
values that every checkpoint holds, and all of its random numbers come from `ctx.stream(...)`, so a
method that does nothing leaves the run bit-identical to `normal` and any run resumes exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from torch import Tensor

from fsbench.core.errors import UsageError
from fsbench.core.specs import Frozen

if TYPE_CHECKING:
    from torch import Tensor

    from pretrain.recipes.recipe import Recipe
    from pretrain.training.batches import Batch
    from pretrain.training.context import Context


class ActingOrder(IntEnum):
    """The order in which the methods of a recipe act (design.md 4)."""

    INIT = 0
    REPARAMETRIZATION = 1
    ROUND = 2
    STEP = 3


class PublishedFigure(Frozen):
    """A number printed in a paper: accuracy (fraction) of a recipe under these overrides.

    at: which of the row's numbers, empty if there is one.
    """

    accuracy: float
    at: str = ""
    overrides: tuple[str, ...] = ()


class PaperRecipe(Frozen):
    """A row of a paper's table as a recipe: `paper/NAME`, what it sets, what it reached there.

    row: table and row, or the figure of a row that is only drawn.
    """

    name: str
    paper: str
    row: str
    overrides: Mapping[str, object] = {}
    figures: tuple[PublishedFigure, ...] = ()


Neutral = Mapping[str, object] | str
"""Settings at which a method equals `normal`, or the reason why it has none."""


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters (by name) that share a learning rate and a decay; a name left out is not trained.

    lr_scale and decay multiply the recipe's learning rate and weight decay. decay_on: `effective`
    means that a reparametrization decays the weight it stands for, and the optimizer does not.
    """

    names: tuple[str, ...]
    lr_scale: float = 1.0
    decay: float = 1.0
    decay_on: Literal["trained", "effective"] = "trained"


class Method(Frozen):
    """Settings of a training method; a subclass overrides the hooks that it needs.

    PAPER: its rows in papers; PILOT and TOY: overrides of the base recipe of that scale, as
    `field -> value`; NEUTRAL: settings at which it equals `normal` bit for bit, or the reason why
    there are none; RANK: its place among combined methods; SOURCE: paper and official code.
    PLAIN_ROUND_0: whatever its settings, round 0 is plain training to the bit and leaves nothing
    behind but what `setup` makes anew, so that a run may start from its control's round 0.
    """

    PAPER: ClassVar[tuple[PaperRecipe, ...]] = ()
    PILOT: ClassVar[Mapping[str, object]] = {}
    TOY: ClassVar[Mapping[str, object]] = {}
    NEUTRAL: ClassVar[Neutral] = "not declared"
    RANK: ClassVar[ActingOrder]
    SOURCE: ClassVar[str]
    PLAIN_ROUND_0: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The public name: that of the file."""
        return type(self).__module__.rsplit(".", 1)[-1]

    def check(self, recipe: Recipe) -> None:
        """Raises UsageError when the method cannot do what it promises under this recipe."""

    def require_installed(self) -> None:
        """Raises UsageError where a package that the method trains with is missing."""

    def phase(self, recipe: Recipe) -> int:
        """Epochs at the start of a round before which it must not end: those of a phase."""
        return 0

    def resolved(self, recipe: Recipe) -> Mapping[str, object]:
        """What settings that are left to the network mean in this recipe; the run records it."""
        return {}

    def init_scales(self, memory: Mapping[str, Any]) -> Mapping[str, float]:
        """Factors that fresh draws of these tensors get, because their initial values did."""
        return {}

    def setup(self, ctx: Context) -> None:
        """The model is built, no optimizer yet: reparametrize, record norms, draw masks.

        Called on resuming too (`ctx.resumed`), before weights and memory are restored: then only
        the structure of the model matters.
        """

    def param_groups(self, ctx: Context, groups: list[ParameterGroup]) -> list[ParameterGroup]:
        """The optimizer's groups. A pure function of clock, settings and memory: resuming calls it.

        A method whose groups change inside a round calls `ctx.rebuild_optimizer` at that epoch.
        """
        return groups

    def round_start(self, ctx: Context) -> None:
        """Before the first step of a round, round 0 included; the new optimizer comes after."""

    def stage_start(self, ctx: Context) -> None:
        """New data became available, stage 0 included; the new optimizer comes after."""

    def epoch_start(self, ctx: Context) -> None:
        """Before the first step of an epoch; the optimizer stands."""

    def lr_changed(self, ctx: Context, old: float, new: float) -> None:
        """A `step` or `plateau` schedule dropped the learning rate."""

    def training_step(self, ctx: Context, batch: Batch) -> Tensor:
        """Replaces forward and task loss; returns the loss. One method of a recipe at most."""
        raise NotImplementedError

    def loss_term(self, ctx: Context) -> Tensor:
        """A scalar that is added to the task loss."""
        raise NotImplementedError

    def after_backward(self, ctx: Context) -> None:
        """Edit gradients."""

    def before_step(self, ctx: Context) -> None:
        """The gradients are final: what adaptive optimizers must see before they step."""

    def after_step(self, ctx: Context) -> None:
        """Edit weights."""

    def rewritten(self, ctx: Context, names: tuple[str, ...]) -> None:
        """Another method rewrote these tensors at an event."""

    def round_end(self, ctx: Context) -> None:
        """After the last step and validation of a round."""

    def finalize(self, ctx: Context) -> None:
        """Fuse whatever setup put in: the model must be the plain architecture again."""


HOOKS = (
    "setup", "param_groups", "round_start", "stage_start", "epoch_start", "lr_changed",
    "training_step", "loss_term", "after_backward", "before_step", "after_step", "rewritten",
    "round_end", "finalize",
)  # fmt: skip
"""All hooks in the order of the loop."""


def hooks_of(method: type[Method]) -> tuple[str, ...]:
    """The hooks that a method overrides."""
    return tuple(hook for hook in HOOKS if getattr(method, hook) is not getattr(Method, hook))


def require_rounds(method: Method, recipe: Recipe) -> None:
    """Raises UsageError under a plan of one round, where the method would never act."""
    if recipe.plan.total_rounds < 2:
        raise UsageError(
            f"{method.name} would never act: it acts at the start of every round but the first,"
            " and the plan has one round",
            fix="use at least two rounds (--set plan.rounds=2)",
        )


def require_stages(method: Method, recipe: Recipe) -> None:
    """Raises UsageError where no new data arrives, so that the method would never act."""
    if len(recipe.plan.stages) < 2:
        raise UsageError(
            f"{method.name} would never act: it acts when new data arrive, and the plan has one"
            " stage",
            fix="give the plan more stages (--scenario warm-start)",
        )
