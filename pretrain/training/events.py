"""What methods that act at round starts share: when there is such an event, and refusing none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fsbench.core.errors import UsageError

if TYPE_CHECKING:
    from pretrain.method import Method
    from pretrain.recipes.recipe import Recipe


def need_rounds(method: Method, recipe: Recipe) -> None:
    """Raises UsageError under a plan of one round, where the method would never act."""
    if recipe.plan.total_rounds < 2:
        raise UsageError(
            f"{method.name} would never act: it acts at the start of every round but the first,"
            " and the plan has one round",
            fix="use at least two rounds (--set plan.rounds=2)",
        )
