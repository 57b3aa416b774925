"""Every record that reaches disk, without torch; fractions lie in [0, 1]."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal, Self
from unicodedata import category

from pydantic import AfterValidator, BaseModel, Field, JsonValue, model_validator

from fsbench.core import specs
from fsbench.core.progress import format_count
from fsbench.core.specs import FeatureSpec, Frozen, Spec, digest, omitted
from fsbench.core.tasks import ColumnId, TaskId

MAX_TEXT = 4000
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Characters that Python prints and that show nothing: what Unicode lets a reader ignore
(Default_Ignorable_Code_Point), and braille without a dot."""


def require_printable(text: str) -> str:
    """Return a text that shows all that it contains. Raise ValueError for another one.

    Not shown are the Unicode categories of control and direction characters, of separators but the
    space, and of code points without a meaning, spaces at the ends, and what many marks cover.
    """
    is_shown = text.isprintable() and text == text.strip() and len(text) <= MAX_TEXT
    if is_shown and not text.isascii():  # most texts are, and a board has tens of thousands
        marks = "".join("m" if category(c) in {"Mn", "Me"} else " " for c in text)
        is_shown = not INVISIBLE.search(text) and "mmmmm" not in marks  # they cover other lines
    if not is_shown:
        raise ValueError("text is too long, or has outer spaces, marks or what shows nothing")
    return text


def make_printable(text: str) -> str:
    """Return a text of the user as records take it: short, in ASCII where it hides something."""
    try:
        return require_printable(text)
    except ValueError:
        return ascii(text)[1:-1][:MAX_TEXT].strip()


def require_date(text: str) -> str:
    """Return a date in UTC, ISO 8601 to the second: such texts sort by time. Raise ValueError."""
    date = datetime.fromisoformat(text)
    if date.utcoffset() != timedelta(0) or date.isoformat(timespec="seconds") != text:
        raise ValueError("it is no date such as 2026-01-31T12:00:00+00:00")
    return text


Printable = Annotated[str, AfterValidator(require_printable)]
Text = Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(require_printable)]
Date = Annotated[str, Field(max_length=40), AfterValidator(require_date)]
Version = Annotated[str, Field(max_length=100, pattern=r"^\d[A-Za-z0-9_.+!-]*$")]
"""Of a Python package, e.g. 2.9.0+cu128."""
Sha256 = Annotated[str, Field(pattern=specs.SHA256)]
MAX_SECONDS = 1e10
"""Longer than any run: 300 years."""
MAX_IMAGES = 20_000_000
"""Of one data set; ImageNet-21k has 14 million."""
Count = Annotated[int, Field(ge=0, le=10**30)]
"""Sums and plots of such numbers do not overflow; the largest ones are FLOPs."""
Word = Annotated[str, Field(max_length=100, pattern=r"^\w[\w/@:.+-]*$")]
"""Bounded by max_length: a repeat count in a pattern takes 10 to 20 ms to compile, per record."""
OF_ITS_MACHINE = frozenset({"seconds", "peak_memory_bytes"})
"""Costs in which a run repeated to the bit differs."""


class _Method(BaseModel):
    name: Word
    code: Sha256 | None = None


class _Plan(BaseModel):
    stages: tuple[JsonValue, ...] = Field(min_length=1, max_length=1000)
    rounds: int = Field(ge=1)
    epochs: int = Field(ge=1)


class RecipeView(BaseModel):
    """The fields of a recipe that a board reads."""

    name: Word
    methods: tuple[_Method, ...] = Field(min_length=1, max_length=20)
    seed: int = Field(ge=0)
    plan: _Plan
    schedule: Word
    loader: Word = "batches"
    source_subset: specs.SourceSubset | None = None


class Training(Frozen):
    """Recipe and cost of a run. Seconds and memory are those of its machine, the rest is exact.

    recipe: every field of it; samples: training images, repeats counted; flops: of steps and
    events; peak_memory_bytes: 0 where unknown; device: cpu or the GPU's name.
    """

    recipe: dict[str, JsonValue]
    source_fingerprint: Text
    steps: Count
    samples: Count
    flops: Count
    seconds: float = Field(ge=0, le=MAX_SECONDS)
    peak_memory_bytes: Count
    device: Text

    @model_validator(mode="after")
    def _readable(self) -> Self:
        digest(self.recipe)
        for text in iterate_texts(self.recipe):
            require_printable(text)
        RecipeView.model_validate(self.recipe)
        return self

    @cached_property
    def view(self) -> RecipeView:
        return RecipeView.model_validate(self.recipe)

    @property
    def recipe_digest(self) -> str:
        """sha-256 of the recipe's canonical text: what `Recipe.digest()` gave."""
        return digest(self.recipe)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in the order in which they act."""
        return tuple(method.name for method in self.view.methods)

    @property
    def custom_code(self) -> dict[str, str]:
        """sha-256 of the file of each method that is code of the user, by its name."""
        return {method.name: method.code for method in self.view.methods if method.code}

    @property
    def plain(self) -> bool:
        """Return whether it is plain training, the control of all others."""
        return self.methods == ("normal",) and self.view.loader != "episodes"

    @property
    def plan(self) -> str:
        """In words, e.g. `3 rounds x 4 epochs`."""
        plan = self.view.plan
        parts = ((len(plan.stages), "stage"), (plan.rounds, "round"), (plan.epochs, "epoch"))
        return " x ".join(format_count(n, unit) for n, unit in parts if n > 1 or unit != "stage")

    @property
    def composition(self) -> str:
        """Digest of all but name and seed, and of the source: equal for seeds of one method."""
        return self._digest_without("name", "seed")

    def conditions(self, schedule: str | None = None, leave_out: Sequence[str] = ()) -> str:
        """Return the digest of what runs matched in compute share, or with another schedule.

        Name, seed and methods may differ, and batches count as tasks of as many images. leave_out:
        further fields of the recipe that may differ.
        """
        changes = {"loader": "batches"} if self.view.loader == "episodes" else {}
        changes |= {} if schedule is None else {"schedule": schedule}
        return self._digest_without("name", "seed", "methods", *leave_out, **changes)

    def _digest_without(self, *names: str, **changes: str) -> str:
        """Return the digest of recipe and source without some fields, and with others changed."""
        fields = {name: value for name, value in self.recipe.items() if name not in names}
        return digest({**fields, **changes, "source_fingerprint": self.source_fingerprint})


Flag = Literal["subset", "limited", "short", "custom", "derived", "shard"]
"""Why a result is not official; no flagged result enters an official board.

subset: other counts than official; limited: --limit N; short: fewer episodes than the spec; custom:
a folder of the user, or a data set of a plug-in; derived: train/test split made here; shard: a
part, to be merged.
"""

Name = Annotated[str, Field(max_length=200, pattern=r"^[\w+@=][\w.+@=-]*$")]
"""Safe as one path component, neither hidden nor like an option."""
ImageCount = Annotated[int, Field(ge=0, le=MAX_IMAGES)]


class DatasetRecord(Frozen):
    """The images that a result was computed on.

    class_ids: official, in order; class_counts: images of each class present; images_hash: sha-256
    over the sorted canonical ids; fingerprint: sha-256 over sorted (canonical id, content hash);
    groups: of the disjoint track, sha-256 over which images belong together; test_counts: of a
    probe, test images of each class present, in whose order outcomes are.
    """

    name: Text
    pool: Literal["full", "labeled_80"] = "full"
    class_ids: tuple[ImageCount, ...] = Field(min_length=1)
    class_names: tuple[Printable, ...]
    class_counts: tuple[ImageCount, ...]
    images_hash: Sha256
    fingerprint: Sha256
    flags: tuple[Flag, ...] = ()
    groups: Sha256 | None = omitted(None)
    test_counts: tuple[ImageCount, ...] = omitted(())

    @model_validator(mode="after")
    def _one_per_class(self) -> Self:
        ids, counts = self.class_ids, self.class_counts
        if not len(ids) == len(self.class_names) == len(counts):
            raise ValueError("not as many class ids as names and counts")
        if ids != tuple(sorted(set(ids))) or 0 in counts:
            raise ValueError("class ids do not increase, or a class has no image")
        if sum(counts) > MAX_IMAGES:
            raise ValueError(f"more than {MAX_IMAGES} images")
        return self

    @property
    def identity(self) -> str:
        """Return what two results share if and only if their images and groups are equal."""
        if self.groups is None:
            return self.fingerprint
        return hashlib.sha256(f"{self.fingerprint} {self.groups}".encode()).hexdigest()


def iterate_texts(value: object) -> Iterator[str]:
    """Yield all texts in nested data, keys of mappings included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from iterate_texts([*value.keys(), *value.values()])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from iterate_texts(part)


def find_code(value: object) -> str | None:
    """Return the first text in nested data that refers to code: py:... or FILE@py:..."""
    texts = iterate_texts(value)
    return next((t for t in texts if t.strip().startswith("py:") or "@py:" in t), None)


USER = "the user"
"""Who states what nothing else does."""
IN_MEMORY = "module"
"""Source of a backbone made by `Backbone.from_module`; no command line can name it."""


class BackboneFacts(Frozen):
    """Facts of a backbone, and how its features are taken; null where unknown.

    ref: as the user wrote it, e.g. timm/resnet18; source: its scheme, e.g. timm, run or file;
    features: how they are taken, e.g. 'global average pooling'; input_size: side (px) that it was
    trained at; mean, std: of images in [0, 1]; interpolation: of the resizing in training;
    stated_by: who states these four; n_parameters: of the trunk, n_affine of them of normalization
    layers; code: sha-256 of the user's file that made it; random_init: seed of random weights;
    calibration: how their normalisation was set; revision: commit of the hub.

    recipe, recipe_digest, steps, source_accuracy, training: of a run of our own; evaluation_size:
    side (px) at which its study evaluates it; feature_spec: what differs from the source's choices.
    """

    ref: Text
    source: Text
    architecture: Text
    feature_dim: int = Field(ge=1)
    features: Text
    input_size: int | None = Field(ge=1, le=2**14)
    mean: tuple[float, float, float] | None
    std: tuple[float, float, float] | None
    interpolation: Text | None = omitted(None)
    stated_by: dict[Word, Text] = omitted({})
    n_parameters: Count
    n_affine: Count | None = None
    weights_hash: Sha256
    code: Sha256 | None = omitted(None)
    random_init: int | None = None
    calibration: Text | None = omitted(None)
    recipe: Text | None = None
    recipe_digest: Sha256 | None = None
    revision: Text | None = omitted(None)
    pretraining_data: tuple[Text, ...] = ()
    source_accuracy: float | None = Field(None, ge=0, le=1)
    steps: Count | None = None
    training: Training | None = omitted(None)
    evaluation_size: int | None = omitted(None, ge=8, le=1024)
    feature_spec: FeatureSpec = omitted(specs.NATIVE_FEATURES)

    @cached_property
    def identity(self) -> str:
        """Return the sha-256 that backbones share if and only if weights and features are equal."""
        if self.feature_spec == specs.NATIVE_FEATURES:
            return self.weights_hash
        text = f"{self.weights_hash} {self.feature_spec.canonical()}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def preprocessing(self) -> str:
        """Size, mean, std and interpolation in words, each group with who states it."""
        verb = "trained at" if self.random_init is None else "random weights, made for"
        values = {
            "input_size": f"{verb} {self.input_size or 'an unknown number of'} px",
            "mean": self.mean and f"mean {specs.shorten_triple(self.mean)}",
            "std": self.std and f"std {specs.shorten_triple(self.std)}",
            "interpolation": self.interpolation,
        }
        groups: dict[str, list[str]] = {}
        for name, text in values.items():
            if text:
                groups.setdefault(self.stated_by.get(name, ""), []).append(text)
        texts = {source: ", ".join(group) for source, group in groups.items()}
        return ", ".join(f"{text} ({by})" if by else text for by, text in texts.items())

    def __str__(self) -> str:
        size = f"{self.n_parameters / 1e6:.3g} M parameters"
        features = f"{self.feature_dim} features ({self.features})"
        text = f"{self.ref}: {self.architecture}, {size}, {features}, {self.preprocessing}"
        return f"{text}; {self.calibration}" if self.calibration else text

    @property
    def runs_code(self) -> bool:
        """Return whether the backbone is made by code of its author, of a file or in memory."""
        is_code = self.source in {"py", IN_MEMORY} or self.ref.startswith(f"{IN_MEMORY}:")
        return is_code or find_code([self.ref, self.architecture]) is not None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in ("mean", "std"):
            if getattr(self.feature_spec, name) not in (None, getattr(self, name)):
                raise ValueError(f"{name} differs from that of feature_spec")
        run = (self.recipe_digest, self.steps)
        if self.training and (self.training.recipe_digest, self.training.steps) != run:
            raise ValueError("training has another recipe digest or other steps than the backbone")
        return self


class FeatureCost(Frozen):
    """Cost of extracting features; speed and memory are those of its machine, never compared.

    macs: multiply-adds of an image, null where torch cannot count them; images_per_second: of
    forward passes; peak_memory_bytes: of the GPU or the process, 0 where unknown; machine: GPU, or
    processor and threads.
    """

    macs: Count | None
    images_per_second: float = Field(gt=0, le=1e12)
    peak_memory_bytes: Count
    machine: Text

    @property
    def measured(self) -> str:
        """Speed and memory in words, e.g. 90.5 images/s, 716 MiB (AMD EPYC 7763, 2 threads)."""
        memory = f", {self.peak_memory_bytes / 2**20:,.0f} MiB" * (self.peak_memory_bytes > 0)
        return f"{self.images_per_second:,g} images/s{memory} ({self.machine})"


class Environment(Frozen):
    """Environment of a computation, without the time; many results share it.

    batch_size: of a forward pass where the user chose it; halvings: of the episodes of a pass,
    where memory was too small; features_device: that extracted the features, if another; precision:
    torch's fp32_precision; plugins: their packages with versions.
    """

    command: Printable
    fsbench: Version
    git_commit: Printable | None
    python: Version
    packages: dict[Printable, Version]
    platform: Printable
    device: Printable
    features_device: Printable | None = omitted(None)
    cpu_capability: Printable
    threads: int = Field(ge=1, le=4096)
    batch_size: int | None = omitted(None, ge=2, le=4096)  # who verifies an entry uses it
    halvings: int = omitted(0, ge=0, le=64)
    precision: Printable | None = omitted(None)
    plugins: dict[Printable, Version] = omitted({})


class Provenance(Environment):
    """Provenance of a number, part of no hash; cost: of its features, null if not measured."""

    started: Date
    seconds: float = Field(ge=0, le=MAX_SECONDS)
    cost: FeatureCost | None = omitted(None)


class ScoreRecord(Frozen):
    """ci95: half-width, null below two outcomes; n: episodes, or test images of a probe."""

    mean: float = Field(ge=0, le=1)
    ci95: float | None = Field(None, ge=0)
    n: int = Field(ge=1, le=MAX_IMAGES)


class Summary(Frozen):
    """Facts that follow from the outcomes of a result alone; recomputed on every reading.

    collapsed: episodes with one class for all queries, or 1 for such a probe; non_finite: with a
    non-finite logit; details: of a probe; dense: over all images that could have been a query;
    other: of a probe with test_counts, balanced accuracy, or accuracy where `score` is balanced.
    """

    score: ScoreRecord
    collapsed: int = Field(0, ge=0)
    non_finite: int = Field(0, ge=0)
    details: dict[Printable, float | int | Printable] = omitted({})
    dense: ScoreRecord | None = omitted(None)
    other: ScoreRecord | None = omitted(None)


class ScoredFields(Summary):
    """Facts of a result beside backbone, data set, spec and provenance; null where it has none."""

    flags: tuple[Flag, ...] = omitted(())
    feature_norm: float | None = omitted(None, ge=0, le=1e30)


class Result(ScoredFields):
    """Result of a backbone on a data set under a spec; its outcomes lie in a file of the model."""

    manifest_hash: Sha256 | None = omitted(None)
    backbone: BackboneFacts
    dataset: DatasetRecord
    spec: Spec
    provenance: Provenance

    @cached_property
    def task(self) -> TaskId:
        """The task, e.g. eurosat:5w1s/linear@ibm or eurosat:probe."""
        return TaskId.of(self.dataset.name, self.spec)

    @cached_property
    def spec_digest(self) -> str:
        return self.spec.digest()

    @cached_property
    def column(self) -> ColumnId:
        """The board column, e.g. eurosat:5w1s/affine@ibm 224px bn-train."""
        return ColumnId.of(self.task, self.spec)

    @property
    def custom_code(self) -> dict[str, str]:
        """sha-256 of each file of the user that takes part, by name of the head or method."""
        training, head = self.backbone.training, self.task.head or ""
        fitted = self.spec.fitted if isinstance(self.spec, specs.EpisodicSpec) else None
        code = {head: fitted.code} if fitted and fitted.code else {}
        return {**(training.custom_code if training else {}), **code}


class Declaration(Frozen):
    """Statements of a submitter; link: code or paper; targets_seen: targets in the pretraining."""

    name: Name
    authors: Text
    link: Text
    license: Text
    pretraining_data: tuple[Text, ...]
    targets_seen: tuple[Text, ...]
    statement: Text


class Measure(Frozen):
    """A number of the table. share: a fraction in [0, 1], shown in percent."""

    name: str
    value: float | int
    share: bool = False


class View(Frozen):
    """A curve of a figure; those of several backbones with one title share a panel.

    x, y: axes with units; at, values (n,): the line, a bar if n is 1; low, high (n,): the range of
    repeated draws; places (n,): names of layers or blocks at 1, 2, ...; label: of the curve.
    """

    title: str
    x: str
    y: str
    at: tuple[float, ...]
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    places: tuple[str, ...] = ()
    log_x: bool = False
    y_scale: Literal["linear", "log", "symlog"] = "linear"
    from_zero: bool = False
    label: str = omitted("")

    @classmethod
    def bar(cls, title: str, value: float) -> Self:
        """Return a view of a single number: one bar per backbone."""
        return cls(title=title, x="", y="", at=(0.0,), values=(value,))

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        sizes = {len(self.at), len(self.values), *map(len, (self.low, self.high, self.places))}
        if sizes - {0} != {len(self.at)}:
            raise ValueError(f"the view '{self.title}' has columns of several lengths")
        return self


class Finding(Frozen):
    """The outcome of one analysis: numbers, and the lines behind them."""

    measures: tuple[Measure, ...] = Field(min_length=1)
    views: tuple[View, ...] = ()


class Images(Frozen):
    """The source whose images an analysis measures, at which side (px)."""

    name: str
    fingerprint: str
    input_size: int = Field(ge=1)


class Question(Frozen):
    """Everything that decides a finding but the machine; weights: over all tensors measured."""

    what: Name
    version: Literal[1] = 1
    weights: Sha256
    images: Images | None
    settings: dict[str, Any]


class Analysis(Frozen):
    """Record of one analysis of one backbone."""

    schema_version: Literal[1] = 1
    question: Question
    backbone: BackboneFacts
    finding: Finding
    provenance: Provenance
