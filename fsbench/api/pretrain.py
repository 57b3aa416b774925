"""Pretrain a backbone by a recipe: `fsbench.pretrain`, the run that it returns, and its name."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Any

from fsbench import backbones
from fsbench.api.machine import RunContext, progress_reporter
from fsbench.api.options import PretrainOptions
from fsbench.backbones.base import Backbone
from fsbench.core import process
from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.io import flatten_mapping, read_mapping, refuse_invalid, split_assignments
from fsbench.core.options import expand_path, takes_options
from fsbench.core.progress import require_consent
from fsbench.core.schema import find_code
from fsbench.data.loading import list_source, load_source
from fsbench.results.names import safe_name
from pretrain import METHODS
from pretrain.recipes import plan, registry
from pretrain.recipes.recipe import Recipe
from pretrain.training import loop, run_folder
from pretrain.training.cost import estimate_training, outline_source

RECIPE_KEYS = (("recipe_fields",), ("recipe",), ("models", 0, "training", "recipe"))
"""Keys under which run.json, recipe.json and entry.json hold the recipe."""


@dataclass(frozen=True)
class Run:
    """A finished pretraining run.

    folder: where the weights, logs and records lie; record: the content of run.json.

    Examples
    --------
    >>> import fsbench
    >>> run = fsbench.pretrain("toy/normal", width=2, plan={"rounds": 1, "epoch_images": 64})
    >>> run.ref, run.recipe.plan.rounds
    ('run:runs/toy-normal-s0', 1)
    """

    folder: Path
    record: Mapping[str, Any] = field(repr=False)

    @classmethod
    def load(cls, folder: str | Path) -> "Run":
        """Return the finished run in a folder. Raises UsageError if there is none."""
        home = expand_path(folder)
        path = home / "run.json"
        if not path.is_file():
            raise UsageError(f"{folder} holds no finished run", fix="fsbench pretrain finishes it")
        return cls(home, json.loads(path.read_text(encoding="utf8")))

    @property
    def ref(self) -> str:
        """The reference of the backbone, for `fsbench.evaluate` or `--model`."""
        return f"run:{self.folder}"

    @property
    def recipe(self) -> Recipe:
        return Recipe.model_validate(self.record["recipe_fields"])

    @property
    def accuracy(self) -> float:
        """Accuracy on the validation images of the source; of tasks for a meta-learner."""
        source = self.record["source_accuracy"]
        return float(self.record["episodic_accuracy"] if source is None else source)

    def backbone(self, device: str = "auto") -> Backbone:
        """Return the frozen backbone, ready for evaluation."""
        return backbones.load_backbone(self.ref, device=process.resolve_device(device))


@takes_options(PretrainOptions, others="overrides")
def pretrain(options: PretrainOptions) -> Run:
    """Pretrain a backbone, or resume a run that was stopped.

    Parameters
    ----------
    {options}

    ``run.backbone()`` of the run is its backbone, ``run.ref`` its reference. UsageError: a field or
    value does not fit the recipe, the folder holds another run, or the run would take over an hour
    without `yes`; UnknownName: a recipe, method, scenario or field; DataError: the source data set
    is missing or incomplete.

    Examples
    --------
    >>> import fsbench
    >>> run = fsbench.pretrain("toy/normal", width=2, plan={"rounds": 1, "epoch_images": 64})
    >>> run.record["steps"], 0 <= run.accuracy <= 1
    (8, True)
    """
    recipe, report = resolve_recipe(**vars(options)), progress_reporter(options.progress)
    device, cache = RunContext.start(options).device, options.cache_folder
    size, subset = recipe.decoded_size, recipe.source_subset
    name = "-".join(filter(None, (recipe.label, options.scenario)))
    folder = options.output / (options.name or name)
    if process.is_first_process() and run_folder.is_finished(folder):
        report.log(f"{folder} is finished already")
    elif process.is_first_process():
        outline = outline_source(recipe, list_source(recipe.source, options.roots, cache))
        cost = estimate_training(recipe, outline, device)
        who, shorter = f"{recipe.name} on {outline.name}", "set plan.epochs=N for a shorter run"
        require_consent(who, [cost], options.yes, report.log, shorter)
    source = load_source(recipe.source, options.roots, cache, size, report, subset)
    loop.train_recipe(recipe, source, folder, device=device, report=report)
    return Run.load(folder)


@takes_options(PretrainOptions, others="overrides")
def resolve_recipe(options: PretrainOptions) -> Recipe:
    """Return the recipe of a run: of this name or file, with scenario, methods and fields.

    Fields win over those of the scenario. Raises UsageError, also for a field that is set twice,
    and UnknownName as `pretrain`.
    """
    overrides, recipe = options.overrides or {}, options.recipe
    accepted = {*PretrainOptions.names(), *Recipe.model_fields, *METHODS.names()}
    for keyword in overrides:
        if "." not in keyword and keyword not in accepted:
            raise UnknownName("option or recipe field", keyword, accepted)
    flags = {"source": options.source, "seed": options.seed}
    stated = {name: value for name, value in flags.items() if value is not None}
    fields, assigned = flatten_mapping(overrides), split_assignments(options.set, "field=value")
    names = [*stated, *fields, *(name for name, _ in assigned)]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"{', '.join(repeated)} is set twice", fix="set every field once")
    methods = registry.load_code(options.method or "")
    if isinstance(recipe, Path) or (isinstance(recipe, str) and recipe.endswith(".json")):
        recipe = read_recipe(Path(recipe))
    elif not isinstance(recipe, Recipe):
        recipe = registry.load_recipe(str(recipe))
    of_scenario = plan.scenario_fields(options.scenario) if options.scenario else {}
    values = {**of_scenario, **stated, **fields, **dict(assigned)}
    return registry.compose_methods(recipe, methods, values)


def read_recipe(path: Path) -> Recipe:
    """Read a recipe from a JSON file: its fields, recipe.json or run.json of a run, or a result.

    The file may come from a stranger: nothing in it is executed, and `py:` code is refused. Raises
    UsageError and ValidationFailed.
    """
    fields: Any = read_mapping(path, ", ".join(Recipe.model_fields))
    for keys in RECIPE_KEYS:
        with suppress(KeyError, IndexError, TypeError):
            inner = reduce(getitem, keys, fields)
            if isinstance(inner, Mapping):
                fields = inner
                break
    if (code := find_code(fields)) is not None:
        raise UsageError(f"{path} names code to run: {code[:100]}", fix="give py: with --set")
    fix = "start from recipe.json of a run"
    with refuse_invalid(ValidationFailed, f"{path} is not a recipe", fix, Recipe.model_fields):
        return Recipe.model_validate(fields)


MAX_FIELDS = 2
"""Fields that a name spells out at most; more are named by a digest."""


@cache
def name_run(recipe: Recipe) -> str:
    """Return the name of a run, e.g. toy-swr-swr.lam=0.1-s0 or toy-normal-as-anil-s0.

    It states the settings of methods that are not the defaults of the scale, and in what the plan
    differs from plain training of the scale.
    """
    parts = (recipe.name, *unusual_settings(recipe), *unusual_plan(recipe), f"s{recipe.seed}")
    return safe_name("-".join(parts))


def unusual_settings(recipe: Recipe) -> list[str]:
    """Return METHOD.FIELD=VALUE of method settings that differ from the recipe of the same name."""
    is_named = recipe.name in registry.recipe_names()
    methods = {m.name: m for m in registry.load_recipe(recipe.name).methods} if is_named else {}
    changed = []
    for method in recipe.methods:
        default = methods.get(method.name) or registry.method_at_scale(method.name, recipe.scale)
        changed += [f"{method.name}.{name}={v}" for name, v in method if v != dict(default)[name]]
    return changed if len(changed) <= MAX_FIELDS else [f"settings-{start_of_digest(recipe)}"]


def unusual_plan(recipe: Recipe) -> list[str]:
    """Return FIELD=VALUE of all in which the recipe's control differs from that of another recipe.

    The other is the first that leaves few differences: plain training of the scale, the recipe of
    the same name, or any of the scale, which is named too. The start of a digest where none does.
    """
    control, scale = registry.control_recipe(recipe), f"{recipe.scale}/"
    values = flatten_mapping(control.model_dump(mode="json"))
    nearest = (f"{scale}normal", recipe.name)
    of_scale = [name for name in registry.recipe_names() if name.startswith(scale)]
    for name in sorted(of_scale, key=lambda name: (*(name != n for n in nearest), name)):
        other = registry.control_recipe(registry.load_recipe(name))
        plain = flatten_mapping(other.replace({"seed": recipe.seed}).model_dump(mode="json"))
        changed = [f"{field}={v}" for field, v in values.items() if v != plain.get(field)]
        if len(changed) <= MAX_FIELDS:
            return [*([] if name in nearest else [f"as-{name.removeprefix(scale)}"]), *changed]
    return [f"fields-{start_of_digest(control)}"]


def start_of_digest(recipe: Recipe) -> str:
    return recipe.model_copy(update={"seed": 0}).digest()[:6]
