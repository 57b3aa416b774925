"""The `fsbench pretrain` command that trains a run again, from what its results carry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fsbench.core.errors import FsbenchError, UnknownName
from fsbench.core.schema import BackboneFacts
from pretrain.recipes import registry
from pretrain.recipes.recipe import Recipe, parse_assignments

SEEDS = 32
"""Seeds of a recipe that are tried for the one of a run that does not state its fields."""


def command(facts: BackboneFacts) -> tuple[tuple[str, ...], Recipe] | None:
    """The command, and the recipe that it makes of its options; None where none gives the run's.

    What the options make is held against the run's digest, so that a command which is printed
    trains this run and no other.
    """
    if facts.training is not None:
        candidates = [stated(facts.training.recipe)]
    else:
        candidates = [(facts.recipe or "", [f"seed={seed}"]) for seed in range(SEEDS)]
    for base, assignments in candidates:
        try:
            recipe = made(base, assignments)
        except FsbenchError:  # a recipe of another version of the suite
            continue
        if recipe.digest() == facts.recipe_digest:
            return ("fsbench", "pretrain", *words(base, assignments)), recipe
    return None


def stated(fields: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The nearest recipe by name, with its methods in place, and all that differs from it.

    A composition such as toy/nio+swr has no recipe of its own: `toy/normal nio+swr`.
    """
    name, methods = fields["name"], fields["methods"]
    try:
        base = registry.load_recipe(name)
    except UnknownName:
        chosen = "+".join(method["name"] for method in methods)
        name = f"{name.partition('/')[0]}/normal {chosen}"
    try:
        base = made(name, [])
    except FsbenchError:
        return name, []
    held = flat(base.model_dump(mode="json"))
    wanted = flat(fields).items()
    return name, [f"{k}={text(v)}" for k, v in wanted if k != "name" and held.get(k) != v]


def flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names as `--set` takes them: plan.rounds, swr.lam."""
    found = {k: v for k, v in fields.items() if k not in ("plan", "methods")}
    found |= {f"plan.{k}": v for k, v in fields["plan"].items()}
    for method in fields["methods"]:
        found |= {f"{method['name']}.{k}": v for k, v in method.items() if k != "name"}
    return found


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def made(base: str, assignments: list[str]) -> Recipe:
    """What the command line makes of these."""
    name, _, methods = base.partition(" ")
    recipe, values = registry.load_recipe(name), parse_assignments(assignments)
    return registry.compose_methods(recipe, methods, values) if methods else recipe.replace(values)


def words(base: str, assignments: list[str]) -> Iterator[str]:
    """Arguments, the seed as its own option."""
    name, _, methods = base.partition(" ")
    yield name
    yield from (f"--method={methods}",) if methods else ()
    for each in assignments:
        yield f"--{each}" if each.startswith("seed=") else f"--set={each}"
    yield "--output=runs"
