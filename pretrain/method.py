"""The contract of a training method: frozen settings plus hooks that the training loop calls.

pretrain/training/loop.py draws the order of the hooks. A method object never changes. Its state is
in `ctx.memory`, a dict of tensors and plain values that every checkpoint contains, and its random
numbers come from `ctx.stream(...)`. A method that does nothing therefore leaves a run bit-identical
to `normal`, and any run resumes exactly.
"""

from typing import TYPE_CHECKING, ClassVar

from fsbench.core.errors import UsageError
from pretrain.recipes.plan import scenario_fields
from pretrain.recipes.recipe import ActingOrder, MethodSettings

if TYPE_CHECKING:
    from torch import Tensor

    from pretrain.recipes.recipe import Recipe
    from pretrain.training.batches import Batch
    from pretrain.training.context import Context, ParameterGroup


class Method(MethodSettings):
    """Base class of training methods; a subclass declares settings and overrides hooks."""

    @property
    def hooks(self) -> tuple[str, ...]:
        return hooks_of(type(self))

    def setup(self, ctx: "Context") -> None:
        """Prepare the new model: reparametrize, record norms, draw masks; no optimizer exists yet.

        Also called on resuming (`ctx.resumed`), before weights and memory are restored: then only
        the structure of the model matters.
        """

    def param_groups(
        self, ctx: "Context", groups: "list[ParameterGroup]"
    ) -> "list[ParameterGroup]":
        """Return the optimizer's groups: a pure function of clock, settings and memory.

        Resuming calls it too. A method whose groups change inside a round calls
        `ctx.rebuild_optimizer` at that epoch.
        """
        return groups

    def round_start(self, ctx: "Context") -> None:
        """Act before the first step of a round, also of round 0; the optimizer is rebuilt after."""

    def stage_start(self, ctx: "Context") -> None:
        """Act when new data arrives, also in stage 0; the optimizer is rebuilt after."""

    def epoch_start(self, ctx: "Context") -> None:
        """Act before the first step of an epoch; the optimizer exists."""

    def lr_changed(self, ctx: "Context", old: float, new: float) -> None:
        """Act after a `step` or `plateau` schedule lowered the learning rate."""

    def training_step(self, ctx: "Context", batch: "Batch") -> "Tensor":
        """Return the loss, in place of forward pass and task loss; for one method per recipe."""
        raise NotImplementedError

    def loss_term(self, ctx: "Context") -> "Tensor":
        """Return a scalar that is added to the task loss."""
        raise NotImplementedError

    def after_backward(self, ctx: "Context") -> None:
        """Edit gradients."""

    def before_step(self, ctx: "Context") -> None:
        """Act on the final gradients, before the optimizer step."""

    def after_step(self, ctx: "Context") -> None:
        """Edit weights."""

    def rewritten(self, ctx: "Context", names: tuple[str, ...]) -> None:
        """Act after another method rewrote these tensors at an event."""

    def round_end(self, ctx: "Context") -> None:
        """Act after the last step and the validation of a round."""

    def finalize(self, ctx: "Context") -> None:
        """Remove what `setup` added: the model must be the plain architecture again."""


HOOKS = (
    "setup", "param_groups", "round_start", "stage_start", "epoch_start", "lr_changed",
    "training_step", "loss_term", "after_backward", "before_step", "after_step", "rewritten",
    "round_end", "finalize",
)  # fmt: skip
"""All hooks in the order of the loop."""


def hooks_of(method: type[MethodSettings]) -> tuple[str, ...]:
    """Return the names of the hooks that a method class overrides."""
    return tuple(hook for hook in HOOKS if getattr(method, hook) is not getattr(Method, hook))


def require_rounds(method: MethodSettings, recipe: "Recipe") -> None:
    """Raise UsageError if the plan has one round, so that the method would never act."""
    if recipe.plan.total_rounds < 2:
        raise UsageError(
            f"{method.name} would never act: it acts at the start of every round but the first,"
            " and the plan has one round",
            fix="use at least two rounds (--set plan.rounds=2)",
        )


def require_stages(method: MethodSettings, recipe: "Recipe") -> None:
    """Raise UsageError if no new data arrives, so that the method would never act."""
    if len(recipe.plan.stages) < 2:
        raise UsageError(
            f"{method.name} would never act: it acts when new data arrive, and the plan has one"
            " stage",
            fix="give the plan more stages (--scenario warm-start)",
        )


class RoundMethod(Method):
    """Base of methods that act at the start of every round but the first."""

    RANK: ClassVar = ActingOrder.ROUND

    def check(self, recipe: "Recipe") -> None:
        require_rounds(self, recipe)


class StageMethod(Method):
    """Base of methods that act when new data arrive: at the start of every stage but the first.

    Their recipes have two stages, and epochs of half as many images as those of other methods.
    """

    RANK: ClassVar = ActingOrder.ROUND
    EVERY: ClassVar = scenario_fields("warm-start")
    FULL: ClassVar = {"plan.epoch_images": 50_000}
    PILOT: ClassVar = {"plan.epoch_images": 13_500}
    REGIME: ClassVar = {"plan.epoch_images": 250}

    def check(self, recipe: "Recipe") -> None:
        require_stages(self, recipe)
