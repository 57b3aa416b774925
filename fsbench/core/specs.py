"""Specs: every choice of an evaluation as frozen data, without torch.

The digest of a spec names a result in its folder, so results that differ in any field are never
mixed up. A field added later is not written at its default: digests of earlier specs stay valid.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from inspect import isfunction, signature
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveFloat,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    create_model,
    model_serializer,
    model_validator,
)

from fsbench.core.errors import FsbenchError
from fsbench.core.registry import HEADS, CustomCode, Registry, only_subclass, subclasses_in

Protocol = Literal["ibm", "startup", "ibm-disjoint", "startup-disjoint"]
Pool = Literal["full", "labeled_80"]
Grouping = Literal["classic", "disjoint"]
Adaptation = str
"""Name of a head: linear and affine train it by SGD, every other one is a file of FITTED."""
SGD = ("linear", "affine")
BnMode = Literal["eval", "train"]
Select = Literal["test", "held_out"]
TestScore = Literal["accuracy", "balanced_accuracy"]
"""Share of test images that are right, or its mean over the classes."""
Pooling = Literal["native", "cls", "avg", "cls+avg", "max"]
Interpolation = Literal["bilinear", "bicubic", "lanczos"]
PROTOCOL_SIZE, SMALLEST_LARGE = 224, 128
"""Resolution (px) of the published few-shot protocols, and the smallest own resolution of a network
that is evaluated at it: networks for smaller images lose most of their accuracy there."""
Triple = tuple[float, float, float]


class Sampling(NamedTuple):
    """Images of a protocol: all, or the 80 % that STARTUP keeps labelled; and its track.

    On the disjoint track no query shows a lesion, patient or leaf of the support.
    """

    pool: Pool
    track: Grouping


SAMPLING: dict[Protocol, Sampling] = {
    "ibm": Sampling("full", "classic"),
    "startup": Sampling("labeled_80", "classic"),
    "ibm-disjoint": Sampling("full", "disjoint"),
    "startup-disjoint": Sampling("labeled_80", "disjoint"),
}
"""Results of two protocols are never compared in one table."""


def omitted(default: Any, **facts: Any) -> Any:
    """Return a field that is written only where it differs from its default."""
    return Field(default, exclude_if=lambda value: value == default, **facts)


class Frozen(BaseModel):
    """A record: immutable, no unknown field, no NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    def canonical(self) -> str:
        """Return JSON with sorted keys and no spaces: equal records give equal text."""
        return canonical_json(self.model_dump(mode="json"))

    def digest(self) -> str:
        """Return the sha-256 of the canonical text, 64 hexadecimal digits."""
        return digest(self.model_dump(mode="json"))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values, without cached properties of the old ones."""
        copied = super().model_copy(update=update, deep=deep)
        for name in vars(copied).keys() - type(self).model_fields.keys():
            del vars(copied)[name]
        return copied


class ImageSpec(Frozen):
    """Image geometry: resize to int(resize_factor * s) square, centre crop s (px).

    The aspect ratio is ignored, as in the CD-FSL code of IBM
    (https://github.com/IBM/cdfsl-benchmark, datasets/). Mean and std belong to the backbone.
    """

    input_size: int = Field(224, ge=8, le=1024)
    resize_factor: float = Field(1.15, ge=1.0, le=2.0)
    interpolation: Interpolation = "bilinear"
    antialias: Literal[True] = True

    @property
    def resize(self) -> int:
        """Side of the square before the crop: 224 -> 257, 64 -> 73, 32 -> 36."""
        return int(self.resize_factor * self.input_size)

    @property
    def variant(self) -> tuple[str, ...]:
        """Words that a reader must see besides the size; none for the protocol's geometry."""
        resized = () if self.interpolation == "bilinear" else (self.interpolation,)
        is_default = self.resize_factor == type(self).model_fields["resize_factor"].default
        return resized if is_default else (*resized, f"crop={1 / self.resize_factor:.3g}")

    def __str__(self) -> str:
        resized = f"{self.interpolation} resize to {self.resize} px square"
        return f"{self.input_size} px: {resized}, centre crop"


class FeatureSpec(Frozen):
    """Choice of features of a network, where it differs from what its source states.

    pool: how tokens or maps become one vector; layers: `last`, or the name of a module; head:
    features are the outputs of a classifier that was left on; mean, std: normalisation instead of
    the source's; dtype: bf16 for autocast to bfloat16. Canonical text has no field at its default.
    """

    pool: Pooling = omitted("native")
    layers: str = omitted("last", max_length=200, pattern=r"^[\w.-]+$")
    head: bool = omitted(False)
    mean: Triple | None = omitted(None)
    std: tuple[PositiveFloat, PositiveFloat, PositiveFloat] | None = omitted(None)
    dtype: Literal["fp32", "bf16"] = omitted("fp32")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.head and not self.is_native:
            raise ValueError("the outputs of a classifier have no pooling and no layers")
        return self

    @property
    def is_native(self) -> bool:
        """Return whether the network's own output is taken."""
        return (self.pool, self.layers) == ("native", "last")

    @property
    def variant(self) -> tuple[str, ...]:
        """Return the choices that differ from the defaults, as in names of results."""
        shown = ((self.pool, "native"), (self.layers, "last"), (self.dtype, "fp32"))
        words = [value for value, default in shown if value != default]
        words += ["head"] if self.head else []
        statistics = {"mean": self.mean, "std": self.std}
        return (*words, *(f"{name}={shorten_triple(v)}" for name, v in statistics.items() if v))


NATIVE_FEATURES = FeatureSpec()


def shorten_triple(values: Triple) -> str:
    """Return three numbers as text, or one if they are equal, e.g. 0.485,0.456,0.406."""
    return ",".join(f"{value:g}" for value in (values if len(set(values)) > 1 else values[:1]))


def choose_resolution(trained: int) -> int:
    """Return the resolution (px) at which a network trained at `trained` px is evaluated."""
    return PROTOCOL_SIZE if trained >= SMALLEST_LARGE else trained


class EpisodeSpec(Frozen):
    """Everything that decides which images an episode contains: n_query is that of a class."""

    version: Literal[1] = 1
    pool: Pool = "full"
    track: Grouping = "classic"
    n_way: int = Field(5, ge=2, le=1000)
    k_shot: int = Field(1, ge=1, le=1000)
    n_query: int = Field(15, ge=1, le=1000)
    seed: int = Field(0, ge=0)

    @property
    def protocol(self) -> Protocol:
        """The published protocol that draws from this pool on this track."""
        return next(p for p, chosen in SAMPLING.items() if chosen == (self.pool, self.track))

    @property
    def classic(self) -> Self:
        """The same episodes on the classic track."""
        return self.model_copy(update={"track": "classic"})

    @property
    def stream(self) -> str:
        """Name of all random draws of these episodes: both tracks share classes, support, heads."""
        return self.classic.digest()


class HeadSpec(Frozen):
    """SGD on a fresh linear head, as in finetune.py of https://github.com/IBM/cdfsl-benchmark."""

    init: Literal["torch_default"] = "torch_default"
    epochs: int = Field(100, ge=1, le=10**5)
    batch_size: int = Field(4, ge=1, le=10**5)
    lr: float = Field(0.01, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    dampening: float = Field(0.9, ge=0, le=1)
    weight_decay: float = Field(0.001, ge=0)
    undamped_first_step: Literal[True] = True
    dtype: Literal["float32", "float64"] = "float32"


class AffineSpec(Frozen):
    """SGD on the affine parameters of normalization layers, beside the head's settings.

    Without momentum, as in evaluation/finetune_resnet18.py of
    https://github.com/MuawizChaudhary/STARTUP (branch ResNet10-no-adapt), the one public code of
    it. dtype: of the backbone's kernels, where it differs from the head's; bfloat16 sums in
    float32.
    """

    lr: float = Field(0.01, gt=0)
    momentum: float = Field(0.0, ge=0, lt=1)
    dampening: float = Field(0.0, ge=0, le=1)
    weight_decay: float = Field(0.0, ge=0)
    dtype: Literal["bfloat16"] | None = omitted(None)


SHA256 = r"^[0-9a-f]{64}$"


class FittedSpec(Frozen):
    """A head fitted to the support set in one step, without SGD; its file adds its own settings.

    normalize: l2 scales features to length 1. transductive: the head uses all queries of an episode
    at once; code: sha-256 of the user's file that defines it; both are no choices. SCALE_FREE:
    outcomes do not depend on the scale of features even without normalize.
    """

    SCALE_FREE: ClassVar[bool] = False
    normalize: Literal["none", "l2"] = "none"
    transductive: bool = False
    code: str | None = omitted(None, pattern=SHA256)

    @model_validator(mode="after")
    def _matches_head(self) -> Self:
        for name in ("transductive", "code"):
            field = type(self).model_fields[name]
            if not field.is_required() and getattr(self, name) != field.default:
                raise ValueError(f"{name} is {str(field.default).lower()} for this head")
        return self

    @property
    def variant(self) -> tuple[str, ...]:
        """Settings that differ from the defaults, e.g. lam=10.0; of a user's head all it adds."""
        words = ["transductive"] if self.transductive else []
        fields = (FittedSpec if self.code else type(self)).model_fields
        defaults = {"transductive": self.transductive, "code": self.code}
        defaults = {name: field.default for name, field in fields.items()} | defaults
        changed = [f"{name}={v}" for name, v in self if v != defaults.get(name, ...)]
        if self.code:
            words, changed = [*words, f"custom-code-{self.code[:8]}"], sorted(changed)
        return (*words, *changed)


Setting = bool | int | float | Annotated[str, Field(max_length=40, pattern=r"^[\w.+=-]+$")]


class UnreadSettings(FittedSpec):
    """Settings in a result of a head whose file was not loaded: readable, but not usable."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[
        Annotated[str, Field(max_length=40, pattern=r"^[A-Za-z_]\w*$")], Setting
    ]
    transductive: bool
    code: str = Field(pattern=SHA256)


@cache
def settings_of_code(code: CustomCode) -> type[FittedSpec]:
    """Return the settings of a head `def NAME(settings, support)` in a user's file.

    They are those of the one FittedSpec that the file defines, else a FittedSpec without additions.
    A third parameter makes the head transductive. Raise FsbenchError for another signature.
    """
    name, classes = code.value.__name__, subclasses_in(code.module, FittedSpec)
    parameters = list(signature(code.value).parameters) if isfunction(code.value) else []
    if not 2 <= len(parameters) <= 3 or len(classes) > 1:
        raise FsbenchError(
            f"{code.path}: {name} is no head: it takes ({', '.join(parameters)}), and the file "
            f"defines {len(classes)} classes of settings",
            fix=f"write `def {name}(settings, support):`, with `queries` third if transductive, "
            "and at most one FittedSpec",
        )
    return create_model(
        f"Settings_{code.name}",
        __base__=classes[0] if classes else FittedSpec,
        code=(str | None, Field(code.digest, pattern=SHA256)),
        transductive=(bool, len(parameters) == 3),
    )


FITTED: Registry[type[FittedSpec]] = Registry(
    "adaptation",
    "protocols.episodic",
    only_subclass(FittedSpec),
    group=HEADS,
    adapt=settings_of_code,
)
"""Settings of heads, each in the file that also fits the head; its names are those of all heads."""


class EpisodicSpec(Frozen):
    """A few-shot task without its data set.

    n_episodes: the official count; a result of fewer is marked `short`. head: of linear and affine;
    affine: of affine tuning; fitted: of all other heads; each only where it has a meaning. bn_mode:
    BatchNorm takes the statistics of the source (eval), or of each batch in tuning and their
    running means for queries (train). On disk the protocol is written beside the episodes.
    """

    kind: Literal["episodic"] = "episodic"
    adaptation: Adaptation = "linear"
    episode: EpisodeSpec = EpisodeSpec()
    n_episodes: int = Field(600, ge=1, le=10**7)
    image: ImageSpec = ImageSpec()
    head: HeadSpec = HeadSpec()
    bn_mode: BnMode = "eval"
    affine: AffineSpec | None = omitted(None)
    fitted: SerializeAsAny[FittedSpec] | None = omitted(None)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Compare the protocol with that of the episodes, and add the settings of the head."""
        if not isinstance(data, dict):
            return data
        data = {**data, "episode": EpisodeSpec.model_validate(data.get("episode", {}))}
        drawn = data["episode"].protocol
        if (protocol := data.pop("protocol", drawn)) != drawn:
            raise ValueError(f"protocol {protocol} with episodes of {drawn}")
        adaptation = data.get("adaptation", "linear")
        if adaptation == "affine":
            return {"affine": AffineSpec(), **data}
        return data if adaptation in SGD else _fitted(adaptation, data)

    @model_serializer(mode="wrap")
    def _write(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write the protocol, and no SGD of a head that has none."""
        data: dict[str, Any] = dump(self)
        if self.fitted is not None:
            del data["head"]
        return {"kind": data.pop("kind"), "protocol": self.protocol, **data}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        affine = self.adaptation == "affine"
        if affine != (self.affine is not None):
            raise ValueError(f"adaptation {self.adaptation} with affine settings {self.affine}")
        if self.adaptation in SGD and self.fitted is not None:
            raise ValueError(f"adaptation {self.adaptation} with settings {self.fitted}")
        if self.bn_mode == "train" and not affine:
            raise ValueError("bn_mode train is for affine tuning: features of linear are frozen")
        return self

    @property
    def protocol(self) -> Protocol:
        return self.episode.protocol

    @property
    def label(self) -> str:
        """Readable part of a file name, e.g. 5w1s-linear-ibm-224px."""
        shape = f"{self.episode.n_way}w{self.episode.k_shot}s"
        parts = (shape, self.adaptation, self.protocol, f"{self.image.input_size}px")
        return "-".join([*parts, *self.variant])

    @property
    def variant(self) -> tuple[str, ...]:
        """Words that a reader must see besides task and size; none for the defaults."""
        tuned = () if self.bn_mode == "eval" else (f"bn-{self.bn_mode}",)
        dtype = (self.affine.dtype,) if self.affine and self.affine.dtype else ()
        return (*tuned, *dtype, *(self.fitted.variant if self.fitted else ()), *self.image.variant)

    @property
    def transductive(self) -> bool:
        """Return whether an outcome depends on the other queries of its episode."""
        return self.fitted is not None and self.fitted.transductive

    @property
    def scale_free(self) -> bool:
        """Return whether outcomes stay the same if features are scaled; under SGD they change."""
        return self.fitted is not None and (self.fitted.SCALE_FREE or self.fitted.normalize == "l2")


def _fitted(adaptation: object, data: dict[str, Any]) -> dict[str, Any]:
    """Return the data with all settings of a fitted head. Raise ValueError for an unknown head."""
    if "head" in data:
        raise ValueError(f"adaptation {adaptation} trains no head by SGD: leave `head` out")
    name, fitted = str(adaptation), data.get("fitted") or {}
    code = fitted.get("code") if isinstance(fitted, dict) else getattr(fitted, "code", None)
    loaded = FITTED.custom().get(name)
    is_loaded = loaded is not None and code == loaded.digest
    try:
        is_readable = code is None or is_loaded or name in FITTED.suite_names()
        settings = FITTED.load(name) if is_readable else UnreadSettings
    except FsbenchError as error:
        raise ValueError(str(error)) from error
    return {**data, "fitted": settings.model_validate(fitted)}


BALANCED = "balanced"
"""Word of a column whose score is balanced accuracy."""


class _DatasetSpec(Frozen):
    """Fields of a probe, which is fitted and scored on a whole data set without episodes."""

    kind: str
    version: Literal[1] = 1
    image: ImageSpec = ImageSpec()
    bn_mode: Literal["eval"] = "eval"
    split: Literal["official", "derived_80_20"] = "official"
    score: TestScore = omitted("accuracy")
    transductive: ClassVar[bool] = False
    scale_free: ClassVar[bool] = False

    @property
    def variant(self) -> tuple[str, ...]:
        """Words that a reader must see besides task and size; none for the defaults."""
        score = (BALANCED,) if self.score == "balanced_accuracy" else ()
        return (*score, *self.image.variant)

    @property
    def label(self) -> str:
        """Readable part of a file name, e.g. probe-224px or knn-224px."""
        return "-".join([self.kind, f"{self.image.input_size}px", *self.variant])


class ProbeSpec(_DatasetSpec):
    """Linear probe as in SEAL (section 4.2), with defaults of this suite where the paper is silent.

    batch_size: 32 in all code of SEAL. schedule: `cosine` decays the rate to 0, epoch by epoch.
    held_out: part of every training class on which rate and, by `epoch`, epoch are chosen, beside
    the paper's choice on the test images; select: which of the two choices is the score.
    """

    kind: Literal["probe"] = "probe"
    lrs: tuple[float, ...] = (0.1, 0.01, 0.001)
    epochs: int = Field(120, ge=1, le=10**5)
    batch_size: int = Field(32, ge=1, le=10**5)
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(1e-4, ge=0)
    schedule: Literal["constant", "cosine"] = "constant"
    init: Literal["torch_default"] = "torch_default"
    augmentation: Literal["none"] = "none"
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    held_out: float | None = omitted(None, gt=0, lt=1)
    select: Select = omitted("test")
    epoch: Literal["last", "best"] = omitted("last")
    seed: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.select == "held_out" and self.held_out is None:
            raise ValueError("select held_out without a held_out part")
        if self.epoch == "best" and self.select == "test":
            raise ValueError("epoch best is for select held_out; select test always takes it")
        return self

    @property
    def variant(self) -> tuple[str, ...]:
        parts = {
            self.schedule: self.schedule != "constant",
            "lr-held-out": self.select == "held_out" and self.epoch == "last",
            "held-out": self.epoch == "best",
        }
        return (*(word for word, is_shown in parts.items() if is_shown), *super().variant)


class KnnSpec(_DatasetSpec):
    """k-NN probe: the training images nearest in feature space vote.

    Defaults are DINO's (Caron et al. 2021, section 4.1): cosine similarity, votes weighted by
    exp(similarity / temperature). Euclidean neighbours have one vote each, as in scikit-learn.
    """

    kind: Literal["knn"] = "knn"
    k: int = Field(20, ge=1, le=10**7)
    metric: Literal["cosine", "euclidean"] = "cosine"
    temperature: float = Field(0.07, gt=0)
    scale_free: ClassVar[bool] = True

    @property
    def variant(self) -> tuple[str, ...]:
        changed = self.model_dump(include={"k", "metric", "temperature"}, exclude_defaults=True)
        return (*(f"{name}={v}" for name, v in changed.items()), *super().variant)


Spec = Annotated[EpisodicSpec | ProbeSpec | KnnSpec, Field(discriminator="kind")]


def canonical_json(value: Any) -> str:
    """Return JSON in ASCII with sorted keys, without spaces. Raise ValueError for NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(value: Any) -> str:
    """Return the sha-256 of the canonical JSON, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


class SourceSubset(Frozen):
    """A small part of a pretraining source: some classes, and some training images of each.

    Each has the smallest hashes of name or position, so larger parts contain smaller ones. Others
    of these classes are for validation.
    """

    classes: int = Field(ge=2)
    images_per_class: int = Field(ge=1)

    def __str__(self) -> str:
        return f"{self.classes} classes x {self.images_per_class} images"
