"""Registry of all recipes: every method at four scales, built from the method files.

A method file adds `full/NAME`, `pilot/NAME`, `regime/NAME` and `toy/NAME` (base recipe plus its
overrides of that scale) and one `paper/ROW` for every row in its PAPER. `normal` of the
same scale is the control: same plan, same steps, same batches and initial weights.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.registry import CODE
from fsbench.core.specs import SourceSubset
from pretrain.recipes.plan import Plan
from pretrain.recipes.recipe import METHODS, MethodSettings, PaperRecipe, Recipe

BASES: Mapping[str, Mapping[str, Any]] = {
    # SEAL, section 4.1 and official config.py: ten generations of 160 epochs. The code requires
    # torch 1.8 and disables autocast; convolutions and products of torch 1.8 are TF32 by default.
    "paper": {
        "architecture": "seal_resnet50",
        "source": "tinyimagenet",
        "input_size": 64,
        "plan": Plan(rounds=10, epochs=160),
        "precision": "tf32",
        "validate_every": 2,
    },
    # The reinitialization study's setting (https://arxiv.org/abs/2109.00267, section 3) in small:
    # few images, trained to 100 % in every generation, on its simple CNN. A minute of one core;
    # leaderboard/studies/regime/README.md has the search that led here.
    "regime": {
        "architecture": "scnn",
        "width": 12,
        "source": "tinyimagenet",
        "source_subset": SourceSubset(classes=20, images_per_class=25),
        "input_size": 32,
        "plan": Plan(rounds=7, epochs=30),
        "lr": 0.03,
        "weight_decay": 1e-5,
        "schedule": "constant",
        "warmup": 0.0,
        "label_smoothing": 0.0,
        "augmentation": "none",
        "validate_every": 30,
    },
    # 324,000 images (a third for meta-learners, which are two to four times slower): under three
    # minutes on two cores. Six passes over the data are too few for crops or label smoothing to
    # help; bf16 is half again as fast on CPUs that have it.
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


BASES = {**BASES, "full": BASES["paper"]}
"""`full/METHOD` gives every method the budget of SEAL's rows, whatever its own paper used."""

EVALUATION_SIZES = {"SEAL": 224}
"""Paper -> px. SEAL trains at 64 px and does not say how it evaluates on CD-FSL; all code of the
benchmark that it uses evaluates at 224 px (protocols/README.md, "What the papers left open")."""


def scaled(method: type[MethodSettings]) -> dict[str, Mapping[str, object]]:
    """Return what a method overrides at each scale but the papers' own."""
    regime = {**method.FULL, **method.REGIME}
    by_scale = {"full": method.FULL, "pilot": method.PILOT, "regime": regime, "toy": method.TOY}
    return {scale: {**method.EVERY, **overrides} for scale, overrides in by_scale.items()}


def split_settings(
    overrides: Mapping[str, object],
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the overridden fields of the recipe, and the settings of its method by bare name.

    A method's class may inherit overrides: the part before the dot then names the base class.
    """
    fields = {n: v for n, v in overrides.items() if n.partition(".")[0] in Recipe.model_fields}
    return fields, {n.partition(".")[2]: v for n, v in overrides.items() if n not in fields}


def build_recipe(
    name: str, method: type[MethodSettings], overrides: Mapping[str, object]
) -> Recipe:
    """Return the base recipe of a scale with one method, named <scale>/<row>."""
    base = BASES[name.partition("/")[0]]
    plain = Recipe(name=name, methods=(METHODS.load("normal")(),), **base)
    fields, settings = split_settings(overrides)
    # not validated yet: a method and the fields that it needs are checked together
    draft = Recipe.model_construct(**{**dict(plain), "methods": (method(**settings),)})
    return draft.replace(fields)


@cache
def _recipe_parts() -> dict[str, tuple[type[MethodSettings], Mapping[str, object]]]:
    """Return method and overrides of every recipe by full name."""
    parts: dict[str, tuple[type[MethodSettings], Mapping[str, object]]] = {}
    for name, method in METHODS.usable()[0].items():
        parts |= {
            f"{scale}/{name}": (method, overrides) for scale, overrides in scaled(method).items()
        }
        parts |= {f"paper/{row.name}": (method, row.overrides) for row in method.PAPER}
    return parts


def recipe_names() -> tuple[str, ...]:
    """Return the full names of all recipes."""
    return tuple(sorted(_recipe_parts()))


def load_recipe(name: str) -> Recipe:
    """Return a recipe, e.g. `pilot/seal`. Raises UsageError without a scale, UnknownName."""
    if name in _recipe_parts():
        return build_recipe(name, *_recipe_parts()[name])
    if (method := name.rpartition("/")[2]) in METHODS.plugins():
        METHODS.load(method)  # raises why the plug-in has no recipes
    full = [full_name for full_name in recipe_names() if full_name.split("/")[1] == name.lower()]
    if full:
        raise UsageError(f"'{name}' names no scale", fix=f"choose one of {', '.join(full)}")
    raise UnknownName("recipe", name, recipe_names())


def find_paper_row(name: str) -> PaperRecipe | None:
    """Return the paper's row of a recipe; None at the other scales."""
    rows = (row for method in METHODS.usable()[0].values() for row in method.PAPER)
    return next((row for row in rows if name == f"paper/{row.name}"), None)


def evaluation_size(name: str) -> int | None:
    """Return the resolution (px) at which the study of a recipe evaluates its networks.

    None where it states none: then it is that of training, see `BackboneFacts.auto_size`.
    """
    row = find_paper_row(name)
    return EVALUATION_SIZES.get(row.paper) if row else None


def compose_methods(
    recipe: Recipe, names: str | None, values: Mapping[str, object] | None = None
) -> Recipe:
    """Return the recipe with these methods, e.g. `swr+weight_compander`, and with `values` set.

    Methods that the recipe has keep their settings, others get those of its scale, or of `full/` in
    a paper's recipe with the plan of SEAL; its plan and all other fields stay, without names its
    methods too. The name is <scale>/<methods in the order in which they act>. Raises UnknownName
    for an unknown method, UsageError for methods that cannot be combined.
    """
    if not names:
        return recipe.replace(values or {})
    current = {method.name: method for method in recipe.methods}
    seals = recipe.scale == "paper" and recipe.plan == BASES["paper"]["plan"]
    methods = [
        current[name]
        if isinstance(current.get(name), METHODS.load(name))
        else method_at_scale(name, "full" if seals else recipe.scale)
        for name in names.split("+")
    ]
    methods.sort(key=lambda method: (method.RANK, method.name))
    name = f"{recipe.scale}/{'+'.join(method.name for method in methods)}"
    # not validated yet: the methods may need `values`
    draft = Recipe.model_construct(**{**dict(recipe), "name": name, "methods": tuple(methods)})
    return draft.replace(values or {})


def load_code(names: str) -> str:
    """Return `names` with every py:FILE:CLASS loaded and replaced by its public name.

    It runs code, so `names` must come from the command line or Python, never from a file. Raise
    UsageError, FsbenchError for a file or class that does not fit.
    """
    return "+".join(
        METHODS.add(name) if name.startswith(CODE) else name for name in names.split("+")
    )


def method_at_scale(name: str, scale: str) -> MethodSettings:
    """Return a method with its settings for recipes of this scale."""
    method = METHODS.load(name)
    return method(**split_settings(scaled(method).get(scale, {}))[1])


def control_recipe(recipe: Recipe) -> Recipe:
    """Return plain training with all other fields of the recipe: plan, batches, schedule, seed.

    A meta-learner's control has as many images per step, and classifies them.
    """
    plain = {"name": f"{recipe.scale}/normal", "methods": (METHODS.load("normal")(),)}
    if recipe.loader == "episodes":
        plain["loader"] = "batches"
    return Recipe.model_validate({**dict(recipe), **plain})
