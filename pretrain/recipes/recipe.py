"""Recipes: everything that decides the weights of a run, as frozen, hashed data without torch.

The methods of a recipe act in the order of their rank, then of their name. REFUSALS are the pairs
that cannot be combined; pairs whose papers do not mention each other but whose effects add up
(`swr` with `lw`, `seal` with `dsd`) are allowed.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from itertools import permutations
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from fsbench.core import registry
from fsbench.core.errors import FsbenchError, UnknownName, UsageError
from fsbench.core.io import explain_errors, refuse_invalid, split_assignments
from fsbench.core.registry import CustomCode, Registry, only_subclass
from fsbench.core.seeding import Name
from fsbench.core.specs import Frozen, SourceSubset
from pretrain.recipes.plan import Plan, count_epochs

Scale = Literal["paper", "full", "pilot", "regime", "toy"]


class ActingOrder(IntEnum):
    """The order in which the methods of a recipe act."""

    INIT = 0
    REPARAMETRIZATION = 1
    ROUND = 2
    STEP = 3


class PublishedFigure(Frozen):
    """An accuracy (fraction) that a paper prints for these overrides; at: which of several."""

    accuracy: float
    at: str = ""
    overrides: tuple[str, ...] = ()


class PaperRecipe(Frozen):
    """A row of a paper's table as a recipe `paper/NAME`: its overrides and published figures.

    row: table and row, or the figure if the paper only draws the result.
    """

    name: str
    paper: str
    row: str
    overrides: Mapping[str, object] = {}
    figures: tuple[PublishedFigure, ...] = ()


def seal_rows(
    name: str, third: float, tenth: float, table: str = "Table 2", redraws: bool = False
) -> tuple[PaperRecipe, ...]:
    """Return a row of SEAL's tables: accuracy after 3 and after 10 generations.

    redraws: the method draws weights anew, by the law of the official code.
    """
    short = PublishedFigure(accuracy=third, at="generation 3", overrides=("plan.rounds=3",))
    figures = (short, PublishedFigure(accuracy=tenth, at="generation 10"))
    law = {"redraw": "kaiming_uniform_sqrt5"} if redraws else {}
    return (PaperRecipe(name=name, paper="SEAL", row=table, overrides=law, figures=figures),)


Neutral = Mapping[str, object] | str
"""Settings at which a method equals `normal`, or the reason why there are none."""


class MethodSettings(Frozen):
    """Settings of a training method, and what a recipe must know about the method.

    pretrain.method.Method adds the hooks that the training loop calls.

    PAPER: its rows in papers. FULL, PILOT, REGIME, TOY: overrides of the base recipe of that scale,
    as `field -> value`; EVERY: of all; `regime` has those of FULL too. NEUTRAL: settings where it
    equals `normal` bit for bit, or the reason why there are none. RANK: its place among combined
    methods. SOURCE: paper and official code. GRAPHS: CUDA graphs may replay a step (compile=true).
    """

    PAPER: ClassVar[tuple[PaperRecipe, ...]] = ()
    EVERY: ClassVar[Mapping[str, object]] = {}
    FULL: ClassVar[Mapping[str, object]] = {}
    PILOT: ClassVar[Mapping[str, object]] = {}
    REGIME: ClassVar[Mapping[str, object]] = {}
    TOY: ClassVar[Mapping[str, object]] = {}
    NEUTRAL: ClassVar[Neutral] = "not declared"
    RANK: ClassVar[ActingOrder]
    SOURCE: ClassVar[str]
    GRAPHS: ClassVar[bool] = True
    NAME: ClassVar[str] = ""
    CODE: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """Public name: that of the method's file."""
        return self.NAME or type(self).__module__.rsplit(".", 1)[-1]

    @property
    def hooks(self) -> tuple[str, ...]:
        """Names of the hooks that the method overrides."""
        return ()

    def check(self, recipe: "Recipe") -> None:
        """Raise UsageError if the method cannot work as described under this recipe."""

    def require_installed(self) -> None:
        """Raise UsageError if a package that the method needs is missing."""

    def phase(self, recipe: "Recipe") -> int:
        """Return the number of epochs at the start of a round that must not be cut off."""
        return 0

    def resolved(self, recipe: "Recipe") -> Mapping[str, object]:
        """Return the values of settings that depend on the network; the run records them."""
        return {}

    def measured(self, memory: Mapping[str, Any]) -> Mapping[str, object]:
        """Return what the method measured during the run; the run records it."""
        return {}

    def init_scales(self, memory: Mapping[str, Any]) -> Mapping[str, float]:
        """Return the factors by which the method scaled initial tensors; fresh draws get them."""
        return {}


LINES: Mapping[str, tuple[type, str]] = {
    "SOURCE": (str, 'SOURCE: ClassVar = "paper, section; code"'),
    "RANK": (ActingOrder, "RANK: ClassVar = ActingOrder.STEP  # INIT, REPARAMETRIZATION, ROUND"),
}
"""Type of a field, and the line that a class lacks which does not declare it."""


def require_contract(method: type[MethodSettings], file: object) -> type[MethodSettings]:
    """Return the class. Raise FsbenchError naming the line that it lacks."""
    for name, (kind, line) in LINES.items():
        if not isinstance(getattr(method, name, None), kind):
            raise FsbenchError(
                f"{file}: class {method.__name__} lacks {name}", fix=f"add the line `{line}` to it"
            )
    required = [name for name, field in method.model_fields.items() if field.is_required()]
    if required:
        raise FsbenchError(
            f"{file}: the setting {required[0]} of class {method.__name__} has no default",
            fix=f"give it one: `{required[0]}: float = 1.0`",
        )
    if not hasattr(method, "setup"):
        raise FsbenchError(
            f"{file}: class {method.__name__} has no hooks",
            fix="derive it from Method (from pretrain.method import Method)",
        )
    return method


def pick_method(module: ModuleType) -> type[MethodSettings]:
    """Return the method that a file defines. Raise LookupError, FsbenchError if there is none."""
    return require_contract(only_subclass(MethodSettings)(module), module.__file__)


@cache
def method_of_code(code: CustomCode) -> type[MethodSettings]:
    """Return the method that a class of a user's file defines. Raise FsbenchError for another."""
    method = code.value
    if not (isinstance(method, type) and issubclass(method, MethodSettings)):
        raise FsbenchError(
            f"{code.path}: {method.__name__} is no method",
            fix=f"derive {method.__name__} from Method (from pretrain.method import Method)",
        )
    method.NAME, method.CODE = code.name, code.digest
    return require_contract(method, code.path)


METHODS: Registry[type[MethodSettings]] = Registry(
    "method", "pretrain.methods", pick_method, group=registry.METHODS, adapt=method_of_code
)
"""All methods; the file name in pretrain/methods is the public name."""


def fills_zeros(powerprop: MethodSettings, other: MethodSettings) -> bool:
    """Return whether `other` sets weights to zero that powerprop trains with a power above 1."""
    zeroing = other.name == "imp" or getattr(other, "fill", None) == "zero"
    return zeroing and getattr(powerprop, "alpha", 1.0) > 1


def holds_zeros(pruning: MethodSettings, other: MethodSettings) -> bool:
    """Return whether the pruning method keeps weights at zero while training continues."""
    return pruning.name == "imp" or bool(getattr(pruning, "sparse_epochs", 0))


@dataclass(frozen=True)
class Refusal:
    """No method of `first` may be combined with one of `second`, if `when` holds for both.

    reason: completes the sentence "A and B ..."; fix: what to do instead.
    """

    first: frozenset[str]
    second: frozenset[str]
    reason: str
    fix: str = "use one of them"
    when: Callable[[MethodSettings, MethodSettings], bool] = lambda first, second: True


REDRAWS = frozenset({"dsd", "fc", "imp", "kels", "llf", "lw", "seal_reinit", "wels", "welsr"})
REPARAMETRIZATIONS = frozenset({"powerprop", "weight_compander", "weight_norm"})
INITS = frozenset({"gradinit", "nio"})
SEALS = frozenset({"seal", "seal_freeze", "seal_long_ascent", "seal_reinit", "seal_reverse"})
META = frozenset({"anil", "maml", "metasgd", "protonet"})
INNER_LOOPS = META - {"protonet"}
RESCALERS = frozenset({"swr", "swr_reanchor"})

REFUSALS = (
    Refusal(
        REDRAWS,
        REDRAWS,
        "both choose what is re-drawn, pruned or rewound at a round start: the result would follow"
        " neither paper",
    ),
    Refusal(
        frozenset({"rescale"}),
        frozenset({"lw"}),
        "both restore initial norms at a round start, which lw does for the blocks it keeps",
        fix="use lw alone",
    ),
    Refusal(
        frozenset({"full_reset"}),
        frozenset({"head_reset", "shrink_perturb"}),
        "both act on new data, where a full reset leaves the other one nothing to do",
    ),
    Refusal(REPARAMETRIZATIONS, REPARAMETRIZATIONS, "both reparametrize the same weights"),
    Refusal(INITS, INITS, "both scale the initial network"),
    Refusal(SEALS, SEALS, "both decide which layers ascend, and when"),
    Refusal(RESCALERS, RESCALERS, "both rescale every layer after every step"),
    Refusal(
        frozenset({"powerprop"}),
        frozenset({"dsd", "imp"}),
        "do not compose: weights are set to zero, where powerprop's gradient is zero for ever",
        fix="leave powerprop out, or fill with fresh draws (--set dsd.fill=init)",
        when=fills_zeros,
    ),
    Refusal(META, META, "both replace the training step"),
    Refusal(
        INITS,
        META,
        "do not compose: its gradients are those of classifying the source's classes, for which a"
        " network that answers tasks has no head",
    ),
    Refusal(
        REPARAMETRIZATIONS,
        INNER_LOOPS,
        "do not compose: no paper says whether a task's gradient steps act on the weights or on"
        " what is trained in their place, and the weight that a step computes once is not adapted",
    ),
    Refusal(
        frozenset({"dsd", "imp"}),
        INNER_LOOPS,
        "do not compose: a task's gradient steps would bring pruned weights back",
        fix="use one of them, or dsd without a sparse phase (--set dsd.sparse_epochs=0)",
        when=holds_zeros,
    ),
)


def require_composable(methods: Iterable[MethodSettings]) -> None:
    """Raise UsageError with the reason if two of the methods cannot share a recipe."""
    for a, b in permutations(methods, 2):
        for pair in REFUSALS:
            if a.name in pair.first and b.name in pair.second and pair.when(a, b):
                raise UsageError(f"{a.name} and {b.name} {pair.reason}", fix=pair.fix)


if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset


def read_method(value: object) -> object:
    """Return a method for {"name": ..., settings}; other values are left to the validation.

    Raise UsageError for a method of a user's file that this process has not loaded, or whose file
    has changed.
    """
    if not isinstance(value, Mapping) or "name" not in value:
        return value
    name, code = str(value["name"]), value.get("code")
    settings = {key: setting for key, setting in value.items() if key not in ("name", "code")}
    loaded = METHODS.custom().get(name)
    if code is not None and (loaded is None or loaded.digest != code):
        state = "which is not loaded" if loaded is None else f"and {loaded.path} differs from it"
        raise UsageError(
            f"method '{name}' is custom code of a file with sha-256 {str(code)[:12]}..., {state}",
            fix="pass the unchanged file: --method py:FILE:CLASS",
        )
    return METHODS.load(name)(**settings)


def write_method(method: MethodSettings) -> dict[str, object]:
    """Return the JSON form of a method: its name, the digest of custom code, and its settings."""
    code = {"code": method.CODE} if method.CODE else {}
    return {"name": method.name, **code, **method.model_dump(mode="json")}


AnyMethod = Annotated[MethodSettings, BeforeValidator(read_method), PlainSerializer(write_method)]


class Recipe(Frozen):
    """Data, network, plan, methods and optimizer of one run.

    lr and the coefficients of methods apply to one optimizer step. A round is what the papers call
    a generation.
    """

    name: str = Field(pattern=r"^(paper|full|pilot|regime|toy)/[a-z0-9_+]+$")
    architecture: str = Field(description="NAME of fsbench/NAME, cifar/NAME or timm/NAME")
    width: int | None = Field(None, ge=1, description="null: the architecture's own")
    source: str = Field(description="tinyimagenet, pets, folder:DIR or hf-hub:ORG/NAME")
    input_size: int = Field(ge=8, le=1024, description="side (px) of the training images")
    source_size: int | None = Field(
        None,
        ge=8,
        le=1024,
        exclude_if=lambda value: value is None,
        description="side (px) of the images of which input_size is cropped; null: input_size",
    )
    plan: Plan
    methods: tuple[AnyMethod, ...] = Field(min_length=1)
    batch_size: int = Field(32, ge=2, description="the incomplete last batch is left out")
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: float = Field(0.01, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(5e-4, ge=0)
    clip_norm: float | None = Field(
        None,
        gt=0,
        exclude_if=lambda value: value is None,
        description="largest norm of the gradient of all weights; null: not clipped",
    )
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
    precision: Literal["fp32", "tf32", "bf16"] = Field(
        "fp32",
        description="tf32: of convolutions and matrix products on GPUs, float32 on CPUs;"
        " bf16: autocast, the rest in float32",
    )
    channels_last: bool = True
    compile: bool = Field(False, description="weights within 1e-4 + 0.1 % of those of eager steps")
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
    source_subset: SourceSubset | None = Field(
        None, exclude_if=lambda value: value is None, description="part of the source; null: all"
    )

    @field_validator("methods")
    @classmethod
    def _sort_methods(cls, methods: tuple[MethodSettings, ...]) -> tuple[MethodSettings, ...]:
        if len({method.name for method in methods}) < len(methods):
            raise ValueError("a method is given twice")
        return tuple(sorted(methods, key=lambda method: (method.RANK, method.name)))

    @model_validator(mode="after")
    def _check_methods(self) -> Self:
        step_methods = [m.name for m in self.methods if "training_step" in m.hooks]
        if len(step_methods) > 1:
            raise ValueError(f"{' and '.join(step_methods)} both replace the training step")
        if self.source_size is not None:
            self._check_windows(self.source_size)
        if self.loader == "episodes" and not step_methods:
            raise ValueError("loader=episodes draws tasks, which only a meta-learner trains on")
        require_composable(self.methods)
        for method in self.methods:
            method.check(self)
        if self.plan.stop_accuracy is not None:
            self._check_early_stop(step_methods)
        return self

    def _check_windows(self, source_size: int) -> None:
        """Raise ValueError if no windows of input_size can be cropped out of larger images."""
        if source_size < self.input_size:
            raise ValueError(f"source_size={source_size} is below input_size={self.input_size}")
        if self.augmentation == "resize_crop_flip" or self.loader == "episodes":
            raise ValueError(
                "source_size crops windows of input_size, which neither"
                " augmentation=resize_crop_flip nor loader=episodes does"
            )

    def _check_early_stop(self, step_methods: list[str]) -> None:
        """Raise ValueError if a round that ends early would cut something off."""
        if self.schedule == "single_cycle":
            raise ValueError("plan.stop_accuracy leaves schedule=single_cycle without its length")
        if step_methods:
            raise ValueError(f"plan.stop_accuracy: {step_methods[0]} measures no training accuracy")
        longest = max(self.methods, key=lambda method: method.phase(self))
        if longest.phase(self) >= self.plan.stop_patience:
            raise ValueError(
                f"plan.stop_accuracy could end a round within the first {longest.phase(self)}"
                f" epochs, which {longest.name} needs: raise plan.stop_patience above that"
            )

    @property
    def scale(self) -> str:
        """paper, full, pilot, regime or toy."""
        return self.name.split("/")[0]

    @property
    def label(self) -> str:
        """Folder name of a run: <scale>-<method>-s<seed>."""
        return f"{self.name.replace('/', '-')}-s{self.seed}"

    @property
    def decoded_size(self) -> int:
        """Side (px) to which the source's images are resized."""
        return self.source_size or self.input_size

    def stream(self, purpose: str) -> tuple[Name, ...]:
        """Return the name of a random stream; it depends on the seed, not on the methods."""
        return ("pretrain", self.seed, purpose)

    @property
    def warmup_epochs(self) -> int:
        return int(self.warmup * self.plan.epochs)

    def method(self, name: str) -> MethodSettings:
        return next(method for method in self.methods if method.name == name)

    def require_installed(self) -> None:
        for method in self.methods:
            method.require_installed()

    def override(self, assignments: Iterable[str]) -> "Recipe":
        """Return a recipe with `field=value` applied, e.g. `plan.rounds=3` or `seal.lr=.02`.

        Raises UsageError for text that is no assignment and for values that do not fit, UnknownName
        with the nearest field for unknown fields.
        """
        return self.replace(dict(split_assignments(assignments, "field=value")))

    def replace(self, values: Mapping[str, object]) -> "Recipe":
        """Return a recipe with these fields replaced; the values need not be text."""
        fields = self._settable_fields()
        data = self.model_dump()
        for name, value in values.items():
            if name not in fields:
                raise UnknownName("recipe field", name, fields)
            part, _, leaf = name.rpartition(".")
            owners = {"": data, "plan": data["plan"], "source_subset": data.get("source_subset")}
            owners |= {m["name"]: m for m in data["methods"]}
            owners[part][leaf] = convert_value(name, fields[name], value)
        with refuse_invalid(UsageError, f"recipe {self.name}", "change --set"):
            return Recipe.model_validate(data)

    def _settable_fields(self) -> dict[str, Any]:
        """Return the type of every settable field by its dotted name."""
        skipped = ("plan", "methods", "name")
        fields = {name: f for name, f in Recipe.model_fields.items() if name not in skipped}
        fields |= {f"plan.{name}": field for name, field in Plan.model_fields.items()}
        if self.source_subset:
            part = SourceSubset.model_fields.items()
            fields |= {f"source_subset.{name}": field for name, field in part}
        for method in self.methods:
            settings = type(method).model_fields.items()
            fields |= {f"{method.name}.{name}": field for name, field in settings}
        return {name: Annotated[field.annotation, field] for name, field in fields.items()}


def convert_value(name: str, kind: Any, value: object) -> object:
    """Return the value as the field's type; text is tried as it is, then as JSON."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    candidates = [value]
    if isinstance(value, str):
        try:
            candidates.append(json.loads(value))
        except (ValueError, RecursionError):  # no JSON, endless digits or nesting
            candidates += [None] if value.lower() == "none" else []
    problem = ""
    for candidate in candidates:
        try:
            return adapter.dump_python(adapter.validate_python(candidate))
        except ValidationError as error:
            problem = explain_errors(error)
    raise UsageError(f"{name}={value} does not fit: {problem}", fix=f"give {name} another value")


def fit_round_steps(recipe: Recipe, source: "SourceDataset") -> Recipe:
    """Return the recipe with epochs and epoch_images that give `plan.round_steps` steps per round.

    Schedules and methods count in epochs, so a round consists of whole epochs of equal length. The
    number of epochs is the recipe's, or the next larger one whose epochs fit into a pass over the
    images of a stage. Raises UsageError if there are fewer steps than epochs.
    """
    plan = recipe.plan
    if plan.round_steps is None:
        return recipe
    longest = plan.round_steps  # full-batch training repeats the same images without a limit
    if recipe.loader != "full_batch":
        n = len(source.train.labels)
        sizes = [round(stage.stop * n) - round(stage.start * n) for stage in plan.stages]
        longest = max(1, min(*sizes, plan.epoch_images or n) // recipe.batch_size)
    epochs = count_epochs(plan.round_steps, plan.epochs, longest)
    images = plan.round_steps // epochs * recipe.batch_size
    plan = plan.model_copy(update={"epochs": epochs, "epoch_images": images})
    return type(recipe).model_validate({**dict(recipe), "plan": plan})
