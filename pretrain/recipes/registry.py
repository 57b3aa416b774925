"""All recipes: every method at three scales, made from the method files.

A method file adds `pilot/NAME` and `toy/NAME` (base recipe + its PILOT or TOY overrides) and one
`paper/ROW` for every row in its PAPER. `normal` of the same scale is the control: same Plan, same
steps, same batches and initial weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsbench.core.errors import UnknownName, UsageError
from pretrain.recipes.plan import Plan
from pretrain.recipes.recipe import (
    METHODS,
    MethodSettings,
    PaperRecipe,
    PublishedFigure,
    Recipe,
)

BASES: Mapping[str, Mapping[str, Any]] = {
    # SEAL, section 4.1 and official config.py (methods.md D): ten generations of 160 epochs
    "paper": {
        "architecture": "seal_resnet50",
        "source": "tinyimagenet",
        "input_size": 64,
        "plan": Plan(rounds=10, epochs=160),
        "validate_every": 2,
    },
    # 324,000 images (meta-learners, slower by two to four times, a third): under three minutes on
    # two cores. Six passes over the pack are too few for crops or smoothing to help; bf16 is half
    # again as fast on CPUs that have it.
    "pilot": {
        "architecture": "pilot_resnet",
        "source": "tinyimagenet",
        "input_size": 32,
        "plan": Plan(rounds=3, epochs=4, epoch_images=27_000),
        "batch_size": 64,
        "lr": 0.1,
        "schedule_by": "step",
        "warmup": 0.0,
        "label_smoothing": 0.0,
        "augmentation": "flip",
        "precision": "bf16",
        "validate_every": 4,
    },
    "toy": {
        "architecture": "toy_resnet",
        "source": "toy_source",
        "input_size": 32,
        "plan": Plan(rounds=2, epochs=4, epoch_images=2_000),
        "batch_size": 32,
        "lr": 0.05,
        "schedule_by": "step",
    },
}


def build_recipe(
    scale: str, row: str, method: type[MethodSettings], overrides: Mapping[str, object]
) -> Recipe:
    """The scale's base with one method; its name is <scale>/<row>."""
    plain = Recipe(name=f"{scale}/{row}", methods=(METHODS.load("normal")(),), **BASES[scale])
    fields = {n: v for n, v in overrides.items() if not n.startswith(f"{_name(method)}.")}
    settings = {n.partition(".")[2]: v for n, v in overrides.items() if n not in fields}
    # a method and the fields that it needs are checked together
    draft = Recipe.model_construct(**{**dict(plain), "methods": (method(**settings),)})
    return draft.replace(fields)


def _name(method: type[MethodSettings]) -> str:
    return method.__module__.rsplit(".", 1)[-1]


class RecipeRegistry:
    """Recipes by full name."""

    def __init__(self) -> None:
        self._rows: dict[str, PaperRecipe] = {}
        self._parts: dict[str, tuple[str, str, type[MethodSettings], Mapping[str, object]]] = {}

    def _index(self) -> dict[str, tuple[str, str, type[MethodSettings], Mapping[str, object]]]:
        if not self._parts:
            for name, method in METHODS.items():
                self._parts[f"pilot/{name}"] = ("pilot", name, method, method.PILOT)
                self._parts[f"toy/{name}"] = ("toy", name, method, method.TOY)
                for row in method.PAPER:
                    self._parts[f"paper/{row.name}"] = ("paper", row.name, method, row.overrides)
                    self._rows[f"paper/{row.name}"] = row
        return self._parts

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._index()))

    def load(self, name: str) -> Recipe:
        """The recipe. Raises UsageError for a name without scale, UnknownName for any other."""
        if name in self._index():
            return build_recipe(*self._index()[name])
        full = [known for known in self.names() if known.split("/")[1] == name]
        if full:
            raise UsageError(f"'{name}' names no scale", fix=f"choose one of {', '.join(full)}")
        raise UnknownName("recipe", name, self.names())

    def paper_row(self, name: str) -> PaperRecipe | None:
        """Where a paper has the recipe; None at the other scales."""
        self._index()
        return self._rows.get(name)

    def figures(self, name: str) -> tuple[PublishedFigure, ...]:
        """What the papers print for the recipe."""
        row = self.paper_row(name)
        return row.figures if row else ()


RECIPES = RecipeRegistry()


def load_recipe(name: str) -> Recipe:
    """The recipe called `name`, e.g. `pilot/seal`."""
    return RECIPES.load(name)


def compose_methods(
    recipe: Recipe, names: str, values: Mapping[str, object] | None = None
) -> Recipe:
    """The recipe with these methods, e.g. `swr+weight_compander`, and then with `values`.

    Methods that the recipe has keep their settings, others get those of its scale; its plan and all
    other fields stay. The name is <scale>/<methods in the order in which they act>. Raises
    UnknownName for an unknown method, UsageError for a pair that does not compose.
    """
    had = {method.name: method for method in recipe.methods}
    methods = [had.get(name) or method_at_scale(name, recipe.scale) for name in names.split("+")]
    methods.sort(key=lambda method: (method.RANK, method.name))
    name = f"{recipe.scale}/{'+'.join(method.name for method in methods)}"
    # values may be what makes the methods possible: checked once they are in
    draft = Recipe.model_construct(**{**dict(recipe), "name": name, "methods": tuple(methods)})
    return draft.replace(values or {})


def method_at_scale(name: str, scale: str) -> MethodSettings:
    """A method with its settings for recipes of this scale."""
    method = METHODS.load(name)
    overrides = {"pilot": method.PILOT, "toy": method.TOY}.get(scale, {})
    own = {n.partition(".")[2]: v for n, v in overrides.items() if n.startswith(f"{name}.")}
    return method(**own)


def control_recipe(recipe: Recipe) -> Recipe:
    """Plain training under everything else of the recipe: same Plan, batches, schedule, seed.

    A meta-learner's control has as many images a step, and learns to classify them.
    """
    plain = {"name": f"{recipe.scale}/normal", "methods": (METHODS.load("normal")(),)}
    if recipe.loader == "episodes":
        plain["loader"] = "batches"
    return Recipe.model_validate({**dict(recipe), **plain})
