"""Which recipes a sweep trains: bases x methods x seeds, each after its controls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import get_args

from fsbench.core.errors import UsageError
from fsbench.core.training import RESTARTING
from fsbench.sweep.file import Runs
from pretrain import METHODS
from pretrain.recipes import registry, scenarios
from pretrain.recipes.recipe import Recipe, Scale

ALL = "all"
SCALES: tuple[str, ...] = get_args(Scale)


def expand(runs: Runs) -> Iterator[Recipe]:
    """The recipes of one block. Raises UsageError, UnknownName."""
    for seed, base, methods in product(runs.seeds, runs.recipes, names(runs)):
        recipe = chosen(base, methods, {**values(runs), "seed": seed})
        if runs.controls:
            yield from controls(recipe)
        yield recipe


def names(runs: Runs) -> tuple[str | None, ...]:
    """Methods of the block; None: those of the recipe itself."""
    if ALL in runs.methods:
        return METHODS.names()
    return runs.methods or (None,)


def values(runs: Runs) -> dict[str, object]:
    """What the block sets, over its scenario. Raises UsageError for a seed, which has its place."""
    if "seed" in runs.set:
        raise UsageError("`set` has a seed", fix="write it as seeds: [0]")
    fixed = scenarios.fields(runs.scenario) if runs.scenario else {}
    return {**fixed, **runs.set}


def chosen(base: str, methods: str | None, fields: dict[str, object]) -> Recipe:
    """The recipe of the scale, or the given one, with these methods if any."""
    if base not in SCALES:
        recipe = registry.get(base)
        return registry.composed(recipe, methods, fields) if methods else recipe.replace(fields)
    if methods is None:
        raise UsageError(f"'{base}' is a scale", fix=f"give `methods`, or a recipe: {base}/normal")
    name = f"{base}/{methods}"
    if "+" not in methods:
        return registry.get(name).replace(fields)
    return registry.composed(registry.get(f"{base}/normal"), methods, fields)


def controls(recipe: Recipe) -> Iterator[Recipe]:
    """Plain training of as many steps on as many images: as the recipe has it, and where its rate
    starts over at every round, with one schedule over all of them."""
    plain = registry.control(recipe)
    yield plain
    restarts = recipe.plan.total_rounds > 1 and recipe.schedule in RESTARTING
    if restarts and recipe.plan.stop_accuracy is None:
        yield plain.replace({"schedule": "single_cycle"})
