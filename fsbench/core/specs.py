"""What is evaluated, as frozen data without torch: every choice the protocol left open is a field.

Sources: protocol.md 3 (episodic fine-tuning), 6 (defaults for what the papers do not state); probes
are in fsbench/core/probe_specs.py, the geometry in fsbench/core/frozen.py. A spec's digest is part
of the name of
a result file, so two results that differ in any field can never be mixed up.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from fsbench.core.errors import FsbenchError
from fsbench.core.frozen import Frozen as Frozen
from fsbench.core.frozen import ImageSpec as ImageSpec
from fsbench.core.probe_specs import KnnSpec as KnnSpec
from fsbench.core.probe_specs import ProbeSpec as ProbeSpec
from fsbench.core.registry import Registry, only_subclass

Pool = Literal["full", "labeled_80"]
Track = Literal["classic", "disjoint"]
Protocol = Literal["ibm", "startup", "ibm-disjoint", "startup-disjoint"]
Adaptation = str
"""linear and affine train their head by SGD; every other one is a file of its own (FITTED)."""
SGD = ("linear", "affine")
BnMode = Literal["eval", "train"]
BN_MODES: tuple[BnMode, ...] = get_args(BnMode)

POOLS: dict[str, Pool] = {
    "ibm": "full",
    "startup": "labeled_80",
    "ibm-disjoint": "full",
    "startup-disjoint": "labeled_80",
}
"""Which images a protocol draws episodes from (protocol.md 6, row 2); never mixed in one table."""

TRACKS: dict[str, Track] = {
    "ibm": "classic",
    "startup": "classic",
    "ibm-disjoint": "disjoint",
    "startup-disjoint": "disjoint",
}
"""Whether queries may show a lesion, patient or leaf that the support shows too (classic)."""


class EpisodeSpec(Frozen):
    """All that decides which images an episode holds; nothing else may (design.md 5).

    track: `disjoint` draws no query of a group (lesion, patient, leaf) that is in the support.
    """

    version: Literal[1] = 1
    pool: Pool = "full"
    track: Track = "classic"
    n_way: int = Field(5, ge=2, le=1000)
    k_shot: int = Field(1, ge=1, le=1000)
    n_query: int = Field(15, ge=1, le=1000, description="queries a class")
    seed: int = Field(0, ge=0)

    @property
    def classic(self) -> Self:
        """The same episodes but for the track."""
        return self.model_copy(update={"track": "classic"})

    @property
    def stream(self) -> str:
        """Name of all random draws of these episodes: both tracks share classes, support, heads."""
        return self.classic.digest()


class HeadSpec(Frozen):
    """SGD on a fresh linear head (protocol.md 3: IBM finetune.py and its descendants)."""

    init: Literal["torch_default"] = "torch_default"
    epochs: int = Field(100, ge=1)
    batch_size: int = Field(4, ge=1)
    lr: float = Field(0.01, gt=0)
    momentum: float = Field(0.9, ge=0, lt=1)
    dampening: float = Field(0.9, ge=0, le=1)
    weight_decay: float = Field(0.001, ge=0)
    undamped_first_step: Literal[True] = True
    dtype: Literal["float32", "float64"] = "float32"


class AffineSpec(Frozen):
    """SGD on the affine parameters of a backbone's normalization layers, beside the head's.

    Plain, as in the one public code of it (protocol.md 3 and 6, row 5). The head's epochs, batches
    and dtype hold for both.
    """

    lr: float = Field(0.01, gt=0)
    momentum: float = Field(0.0, ge=0, lt=1)
    dampening: float = Field(0.0, ge=0, le=1)
    weight_decay: float = Field(0.0, ge=0)


class FittedSpec(Frozen):
    """A head fitted to the support in one go, without SGD; its file adds its own settings.

    normalize: l2 scales every feature vector to length 1 first. transductive: a fact of the head
    and no choice: it sees all queries of an episode at once, so it is never compared with others.
    """

    normalize: Literal["none", "l2"] = "none"
    transductive: bool = False

    @model_validator(mode="after")
    def _as_the_head_is(self) -> Self:
        fact = type(self).model_fields["transductive"].default
        if self.transductive != fact:
            raise ValueError(f"transductive is {str(fact).lower()} for this head")
        return self

    @property
    def variant(self) -> tuple[str, ...]:
        """What differs from the defaults, e.g. lam=10.0, after `transductive` where that holds."""
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        changed = [f"{name}={value}" for name, value in self if value != defaults[name]]
        return (*(("transductive",) if self.transductive else ()), *changed)


FITTED: Registry[type[FittedSpec]] = Registry(
    "adaptation", "protocols.episodic", only_subclass(FittedSpec)
)
"""Settings by adaptation, each in the file that also computes it; names are those of all files."""


class EpisodicSpec(Frozen):
    """One cell of the few-shot benchmark, but for the data set.

    head: of linear and affine. fitted: of all other adaptations, the settings that their file
    declares. affine: of the adaptation `affine`. Each is absent where it means nothing, and
    complete where it does. bn_mode: BatchNorm by the source's statistics (eval), or by those of
    each batch while the affine parameters are tuned and by their running means for the queries
    (train; protocol.md 6, row 4).
    """

    kind: Literal["episodic"] = "episodic"
    protocol: Protocol = "ibm"
    adaptation: Adaptation = "linear"
    episode: EpisodeSpec = EpisodeSpec()
    n_episodes: int = Field(600, ge=1, description="official count; fewer is marked `short`")
    image: ImageSpec = ImageSpec()
    head: HeadSpec = HeadSpec()
    bn_mode: BnMode = "eval"
    affine: AffineSpec | None = Field(None, exclude_if=lambda value: value is None)
    fitted: SerializeAsAny[FittedSpec] | None = Field(None, exclude_if=lambda value: value is None)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """An adaptation has its settings even where they are all defaults."""
        if not isinstance(data, dict):
            return data
        adaptation = data.get("adaptation", "linear")
        if adaptation == "affine":
            return {"affine": AffineSpec(), **data}
        return data if adaptation in SGD else _fitted(adaptation, data)

    @model_serializer(mode="wrap")
    def _meant(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without the SGD of a head that knows none."""
        data: dict[str, Any] = dump(self)
        return data if self.fitted is None else {k: v for k, v in data.items() if k != "head"}

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
    def label(self) -> str:
        """Readable part of a file name, e.g. 5w1s-linear-ibm-224px."""
        e, size = self.episode, f"{self.image.input_size}px"
        shape = f"{e.n_way}w{e.k_shot}s"
        return "-".join([shape, self.adaptation, self.protocol, size, *self.variant])

    @property
    def variant(self) -> tuple[str, ...]:
        """Words that a reader must see besides task and size; none for the defaults."""
        tuned = () if self.bn_mode == "eval" else (f"bn-{self.bn_mode}",)
        return (*tuned, *(self.fitted.variant if self.fitted else ()))

    @property
    def transductive(self) -> bool:
        """Whether an outcome depends on the other queries of its episode."""
        return self.fitted is not None and self.fitted.transductive


def _fitted(adaptation: object, data: dict[str, Any]) -> dict[str, Any]:
    """The data with all settings of a fitted head. Raises ValueError for one that none knows."""
    if "head" in data:
        raise ValueError(f"adaptation {adaptation} trains no head by SGD: leave `head` out")
    try:
        settings = FITTED.load(str(adaptation))
    except FsbenchError as error:
        raise ValueError(str(error)) from error
    return {**data, "fitted": settings.model_validate(data.get("fitted") or {})}


Spec = Annotated[EpisodicSpec | ProbeSpec | KnnSpec, Field(discriminator="kind")]
