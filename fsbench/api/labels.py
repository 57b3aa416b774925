"""Names of runs that state in what they differ: <scale>-<methods>[-what is unusual]-s<seed>."""

from __future__ import annotations

from functools import cache

from fsbench.api.listing import dotted
from fsbench.results.names import safe_name
from pretrain import METHODS
from pretrain.recipes import plan, registry
from pretrain.recipes.recipe import Recipe

MAX_FIELDS = 2
"""Fields that a name spells out at most; more are named by a digest."""


@cache
def label(recipe: Recipe) -> str:
    """Return the name of a run, e.g. toy-full_reset-warm-start-s0.

    It states the settings of methods that are not the defaults of the scale, and in what the plan
    differs from plain training of the scale.
    """
    parts = (recipe.name, *unusual_settings(recipe), *unusual_plan(recipe), f"s{recipe.seed}")
    return safe_name("-".join(parts))


def unusual_settings(recipe: Recipe) -> list[str]:
    """Return METHOD.FIELD=VALUE of method settings that differ from the recipe of the same name."""
    is_named = recipe.name in registry.RECIPES.names()
    methods = {m.name: m for m in registry.load_recipe(recipe.name).methods} if is_named else {}
    changed = []
    for method in recipe.methods:
        default = dict(
            methods.get(method.name) or registry.method_at_scale(method.name, recipe.scale)
        )
        changed += [
            f"{method.name}.{field}={value}" for field, value in method if value != default[field]
        ]
    if len(changed) <= MAX_FIELDS:
        return changed
    return [f"settings-{recipe.model_copy(update={'seed': 0}).digest()[:6]}"]


def unusual_plan(recipe: Recipe) -> list[str]:
    """Return in what the recipe's control differs from plain training of the scale.

    A scenario, FIELD=VALUE, the recipe whose plan it is, or the start of a digest, whichever is the
    first that states it briefly.
    """
    control = registry.control_recipe(recipe)
    plain = registry.build_recipe(f"{recipe.scale}/normal", METHODS.load("normal"), {})
    plain = plain.replace({"seed": recipe.seed})
    if control == plain:
        return []
    for name in plan.SCENARIOS:
        if control == plain.replace(plan.scenario_fields(name)):
            return [name]
    differences = changed_fields(control, plain)
    if len(differences) <= MAX_FIELDS:
        return differences
    same_scale = [n for n in registry.RECIPES.names() if n.startswith(f"{recipe.scale}/")]
    for name in sorted(same_scale, key=lambda name: (name != recipe.name, name)):
        theirs = registry.control_recipe(registry.load_recipe(name)).replace({"seed": recipe.seed})
        differences = changed_fields(control, theirs)
        if len(differences) <= MAX_FIELDS:
            other = [] if name == recipe.name else [f"as-{name.partition('/')[2]}"]
            return [*other, *differences]
    return [f"fields-{control.model_copy(update={'seed': 0}).digest()[:6]}"]


def changed_fields(recipe: Recipe, base: Recipe) -> list[str]:
    """Return FIELD=VALUE of all fields in which a control differs from another."""
    after, before = (dotted(r.model_dump(mode="json")) for r in (recipe, base))
    return [f"{field}={value}" for field, value in after.items() if value != before[field]]
