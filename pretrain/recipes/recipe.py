"""A recipe: everything that decides the weights of a run, as frozen, hashed data without torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.io import explain_errors, split_assignments
from fsbench.core.seeding import Name
from fsbench.core.specs import Frozen
from pretrain.method import Method, hooks_of
from pretrain.recipes.composition import require_composable
from pretrain.recipes.plan import Plan

Scale = Literal["paper", "pilot", "toy"]


def read_method(value: object) -> object:
    """A method from {"name": ..., settings}; anything else is left to the validation."""
    if not isinstance(value, Mapping) or "name" not in value:
        return value
    from pretrain import METHODS

    settings = {key: setting for key, setting in value.items() if key != "name"}
    return METHODS.load(str(value["name"]))(**settings)


def write_method(method: Method) -> dict[str, object]:
    return {"name": method.name, **method.model_dump(mode="json")}


AnyMethod = Annotated[Method, BeforeValidator(read_method), PlainSerializer(write_method)]


class Recipe(Frozen):
    """Data, network, plan, methods and optimizer of one run. Rates are those of one step."""

    name: str = Field(pattern=r"^(paper|pilot|toy)/[a-z0-9_+]+$")
    architecture: str = Field(description="NAME of fsbench/NAME, or timm/NAME")
    width: int | None = Field(None, ge=1, description="null: the architecture's own")
    source: str = Field(description="tinyimagenet, pets, folder:DIR or hf-hub:ORG/NAME")
    input_size: int = Field(ge=8, le=1024, description="side (px) of the training images")
    plan: Plan
    methods: tuple[AnyMethod, ...] = Field(min_length=1)
    batch_size: int = Field(32, ge=2, description="the incomplete last batch is left out")
    optimizer: Literal["sgd", "adam"] = "sgd"
    lr: float = Field(0.01, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(5e-4, ge=0)
    schedule: Literal["cosine", "single_cycle", "step", "plateau", "constant"] = "cosine"
    schedule_by: Literal["epoch", "step"] = "epoch"
    warmup: float = Field(0.125, ge=0, lt=1, description="part of a round's epochs, rounded down")
    milestones: tuple[float, ...] = Field((0.5, 0.75), description="of `step`, parts of a round")
    gamma: float = Field(0.1, gt=0, le=1, description="of `step`")
    plateau_epochs: int = Field(20, ge=1, description="of `plateau`, without a better validation")
    plateau_factor: float = Field(0.5, gt=0, lt=1, description="of `plateau`")
    dropout: float = Field(0.0, ge=0, lt=1, description="in front of the head")
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    augmentation: Literal["crop_flip", "resize_crop_flip", "flip", "none"] = "crop_flip"
    precision: Literal["fp32", "bf16"] = Field("fp32", description="bf16: autocast")
    channels_last: bool = True
    compile: bool = False
    deterministic: bool = Field(False, description="deterministic kernels on a GPU, for resuming")
    seed: int = Field(0, ge=0)
    opt_reset: Literal["none", "touched", "all"] = Field(
        "all", description="whose momentum is dropped at a round start"
    )
    redraw: Literal["init", "kaiming_uniform_sqrt5"] = Field(
        "init", description="what re-drawn weights follow: the initial law, or official codes' own"
    )
    loader: Literal["batches", "full_batch", "episodes"] = "batches"
    validate_every: int = Field(1, ge=1, description="epochs; a round's end is always validated")
    sync_bn: bool = Field(
        False,
        exclude_if=lambda value: value is False,
        description="batch norm over the images of all processes; on GPUs",
    )

    @field_validator("methods")
    @classmethod
    def _in_rank_order(cls, methods: tuple[Method, ...]) -> tuple[Method, ...]:
        if len({method.name for method in methods}) < len(methods):
            raise ValueError("a method is given twice")
        return tuple(sorted(methods, key=lambda method: (method.RANK, method.name)))

    @model_validator(mode="after")
    def _check_methods(self) -> Self:
        own_step = [m.name for m in self.methods if "training_step" in hooks_of(type(m))]
        if len(own_step) > 1:
            raise ValueError(f"{' and '.join(own_step)} both replace the training step")
        if self.loader == "episodes" and not own_step:
            raise ValueError("loader=episodes draws tasks, which only a meta-learner trains on")
        require_composable(self.methods)
        for method in self.methods:
            method.check(self)
        if self.plan.stop_accuracy is not None:
            self._check_stop(own_step)
        return self

    def _check_stop(self, own_step: list[str]) -> None:
        """Raises ValueError where rounds that end early would leave something out."""
        if self.schedule == "single_cycle":
            raise ValueError("plan.stop_accuracy leaves schedule=single_cycle without its length")
        if own_step:
            raise ValueError(f"plan.stop_accuracy: {own_step[0]} measures no training accuracy")
        longest = max(self.methods, key=lambda method: method.phase(self))
        if longest.phase(self) >= self.plan.stop_patience:
            raise ValueError(
                f"plan.stop_accuracy could end a round within the first {longest.phase(self)}"
                f" epochs, which {longest.name} needs: raise plan.stop_patience above that"
            )

    @property
    def scale(self) -> str:
        return self.name.split("/")[0]

    @property
    def label(self) -> str:
        """Folder name of a run: <scale>-<method>-s<seed>."""
        return f"{self.name.replace('/', '-')}-s{self.seed}"

    def stream(self, purpose: str) -> tuple[Name, ...]:
        """Name of a random stream: only the seed keys it, so methods of one seed share it."""
        return ("pretrain", self.seed, purpose)

    @property
    def warmup_epochs(self) -> int:
        return int(self.warmup * self.plan.epochs)

    def method(self, name: str) -> Method:
        """The method called `name` of this recipe."""
        return next(method for method in self.methods if method.name == name)

    def require_installed(self) -> None:
        """Raises UsageError where a package that a method trains with is missing."""
        for method in self.methods:
            method.require_installed()

    def override(self, assignments: Iterable[str]) -> Recipe:
        """A recipe with `field=value` applied, e.g. `plan.rounds=3` or `seal.ascent_factor=.02`.

        Raises UsageError for anything that is no assignment or a value that does not fit, and
        UnknownName with the nearest field.
        """
        return self.replace(parse_assignments(assignments))

    def replace(self, values: Mapping[str, object]) -> Recipe:
        """As `override`, with values instead of text where they are at hand."""
        fields = self._fields()
        data = self.model_dump()
        for name, value in values.items():
            if name not in fields:
                raise UnknownName("recipe field", name, fields)
            holder, leaf = self._holder(data, name)
            holder[leaf] = convert_value(name, fields[name], value)
        try:
            return Recipe.model_validate(data)
        except ValidationError as error:
            raise UsageError(
                f"recipe {self.name}: {explain_errors(error)}", fix="change --set"
            ) from error

    def _fields(self) -> dict[str, Any]:
        """Every settable field by its dotted name, with the type that its value must have."""
        own = {n: f for n, f in Recipe.model_fields.items() if n not in ("plan", "methods", "name")}
        found = {**own, **{f"plan.{n}": f for n, f in Plan.model_fields.items()}}
        for method in self.methods:
            found |= {f"{method.name}.{n}": f for n, f in type(method).model_fields.items()}
        return {n: Annotated[f.annotation, f] for n, f in found.items()}

    @staticmethod
    def _holder(data: dict[str, Any], name: str) -> tuple[dict[str, Any], str]:
        """The dict of the dumped recipe that holds the field, and its key there."""
        part, dot, leaf = name.partition(".")
        if not dot:
            return data, name
        if part == "plan":
            return data["plan"], leaf
        return next(m for m in data["methods"] if m["name"] == part), leaf


def parse_assignments(assignments: Iterable[str]) -> dict[str, object]:
    """`field=value` as field -> text. Raises UsageError for anything that is no assignment."""
    return dict(split_assignments(assignments, "field=value"))


def convert_value(name: str, kind: Any, value: object) -> object:
    """The value as the field's type; text is read as such first and as JSON second."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    candidates = [value]
    if isinstance(value, str):
        try:
            candidates.append(json.loads(value))
        except (ValueError, RecursionError):  # no JSON, digits without end, depth without end
            candidates += [None] if value.lower() == "none" else []
    problem = ""
    for candidate in candidates:
        try:
            return adapter.dump_python(adapter.validate_python(candidate))
        except ValidationError as error:
            problem = explain_errors(error)
    raise UsageError(f"{name}={value} does not fit: {problem}", fix=f"give {name} another value")


if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset

    pass


def fit_round_steps(recipe: Recipe, source: SourceDataset) -> Recipe:
    """The recipe with epochs and epoch_images that make a round take exactly `round_steps`.

    Without `round_steps` the recipe itself. Raises UsageError for fewer steps than epochs.
    """
    plan = recipe.plan
    if plan.round_steps is None:
        return recipe
    epochs = count_epochs(plan.round_steps, plan.epochs, longest_epoch(recipe, source))
    images = plan.round_steps // epochs * recipe.batch_size
    plan = plan.model_copy(update={"epochs": epochs, "epoch_images": images})
    return type(recipe).model_validate({**dict(recipe), "plan": plan})


def count_epochs(steps: int, least: int, longest: int) -> int:
    """The smallest number of epochs, `least` or more, of equal whole steps up to `longest`."""
    for epochs in range(least, steps + 1):
        if steps % epochs == 0 and steps // epochs <= longest:
            return epochs
    raise UsageError(
        f"plan.round_steps={steps} is fewer than a round has epochs: plan.epochs={least}",
        fix=f"give at least {least} steps, or --set plan.epochs={steps}",
    )


def longest_epoch(recipe: Recipe, source: SourceDataset) -> int:
    """Steps of an epoch that every stage can fill; gradient descent may take any number."""
    if recipe.loader == "full_batch":
        return recipe.plan.round_steps or 1
    n = len(source.train.labels)
    sizes = [round(stage.stop * n) - round(stage.start * n) for stage in recipe.plan.stages]
    images = min(*sizes, recipe.plan.epoch_images or n)
    return max(1, images // recipe.batch_size)
