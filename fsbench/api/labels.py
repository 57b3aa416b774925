"""Names of runs that tell apart what differs: <scale>-<methods>[-what is unusual]-s<seed>."""

from __future__ import annotations

from functools import cache

from fsbench.api.listing import dotted
from fsbench.results.names import safe
from pretrain import METHODS
from pretrain.method import Method
from pretrain.recipes import plan, registry
from pretrain.recipes.recipe import Recipe

NAMED = 2
"""Fields at most that a label spells out."""


@cache
def label(recipe: Recipe) -> str:
    """Name of a run, e.g. toy-full_reset-warm-start-s0: with what its plan has of its own, and the
    settings of its methods that are not those of the scale."""
    parts = (recipe.name, *settings(recipe), *conditions(recipe), f"s{recipe.seed}")
    return safe("-".join(parts))


def conditions(recipe: Recipe) -> list[str]:
    """What the recipe's control has and `normal` of the scale has not: a scenario, fields and
    values, the method whose plan it is, or the start of a digest where nothing says it briefly.
    """
    plain = registry.control_recipe(recipe)
    base = registry.build_recipe(recipe.scale, "normal", METHODS.load("normal"), {})
    base = base.replace({"seed": recipe.seed})
    if plain == base:
        return []
    for name in plan.SCENARIOS:
        if plain == base.replace(plan.scenario_fields(name)):
            return [name]
    found = changes(plain, base)
    if len(found) <= NAMED:
        return found
    digest = plain.model_copy(update={"seed": 0}).digest()
    borrowed = (shown for name in owners(recipe) if (shown := plan_of(name, recipe)) is not None)
    return next(borrowed, [f"fields-{digest[:6]}"])


def changes(plain: Recipe, base: Recipe) -> list[str]:
    """field=value of all in which a control differs from another."""
    now, before = dotted(plain.model_dump(mode="json")), dotted(base.model_dump(mode="json"))
    return [f"{field}={value}" for field, value in now.items() if value != before[field]]


def owners(recipe: Recipe) -> list[str]:
    """Recipes of the scale, its own first."""
    scale = [name for name in registry.RECIPES.names() if name.startswith(f"{recipe.scale}/")]
    return sorted(scale, key=lambda name: (name != recipe.name, name))


def plan_of(name: str, recipe: Recipe) -> list[str] | None:
    """Conditions of a recipe told by those of another, which its own need not say; None for far."""
    theirs = registry.control_recipe(registry.load_recipe(name)).replace({"seed": recipe.seed})
    found = changes(registry.control_recipe(recipe), theirs)
    owner = [] if name == recipe.name else [f"as-{name.partition('/')[2]}"]
    return [*owner, *found] if len(found) <= NAMED else None


def settings(recipe: Recipe) -> list[str]:
    """Settings that the methods have not by default, as `conditions` writes them."""
    named = recipe.name in registry.RECIPES.names()
    usual = {m.name: m for m in registry.load_recipe(recipe.name).methods} if named else {}
    changed = [
        f"{method.name}.{field}={value}"
        for method in recipe.methods
        for field, value in unusual(method, usual.get(method.name), recipe.scale)
    ]
    if len(changed) <= NAMED:
        return changed
    whole = recipe.model_copy(update={"seed": 0})
    return [f"settings-{whole.digest()[:6]}"]


def unusual(method: Method, usual: Method | None, scale: str) -> list[tuple[str, object]]:
    """Settings and values in which a method differs from the one of its scale."""
    before = dict(usual or registry.method_at_scale(method.name, scale))
    return [(field, value) for field, value in method if value != before[field]]
