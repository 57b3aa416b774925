"""What is evaluated, as frozen data without torch: every choice the protocol left open is a field.

Sources: protocol.md 2 (geometry), 3 (episodic fine-tuning), 4 (linear probe), 6 (defaults for what
the papers do not state). A spec's digest is part of the name of a result file, so two results that
differ in any field can never be mixed up.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

Pool = Literal["full", "labeled_80"]
Track = Literal["classic", "disjoint"]
Protocol = Literal["ibm", "startup", "ibm-disjoint", "startup-disjoint"]
Adaptation = Literal["linear", "affine"]
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


class Frozen(BaseModel):
    """A record: immutable, no unknown field, no NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def canonical(self) -> str:
        """JSON with sorted keys and no spaces: equal records give equal text."""
        data: dict[str, Any] = self.model_dump(mode="json")
        return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)

    def digest(self) -> str:
        """sha-256 of the canonical text, 64 hex digits."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()


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


class ImageSpec(Frozen):
    """From a file to pixels: resize to int(resize_factor * s) square, centre crop s (px).

    The aspect ratio is ignored, as IBM's code does. Mean and std are the backbone's own.
    """

    input_size: int = Field(224, ge=8, le=1024)
    resize_factor: float = Field(1.15, ge=1.0, le=2.0)
    interpolation: Literal["bilinear"] = "bilinear"
    antialias: Literal[True] = True

    @property
    def resize(self) -> int:
        """Side of the square before the crop: 224 -> 257, 64 -> 73, 32 -> 36."""
        return int(self.resize_factor * self.input_size)


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


class EpisodicSpec(Frozen):
    """One cell of the few-shot benchmark, but for the data set.

    affine: of the adaptation `affine`, whose default it gets; absent for others. bn_mode: BatchNorm
    by the source's statistics (eval), or by those of each batch while the affine parameters are
    tuned and by their running means for the queries (train; protocol.md 6, row 4).
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

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Affine tuning has its settings even where they are all defaults."""
        if isinstance(data, dict) and data.get("adaptation") == "affine":
            return {"affine": AffineSpec(), **data}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        affine = self.adaptation == "affine"
        if affine != (self.affine is not None):
            raise ValueError(f"adaptation {self.adaptation} with affine settings {self.affine}")
        if self.bn_mode == "train" and not affine:
            raise ValueError("bn_mode train is for affine tuning: features of linear are frozen")
        return self

    @property
    def label(self) -> str:
        """Readable part of a file name, e.g. 5w1s-linear-ibm-224px."""
        e, mode = self.episode, self.variant.replace(" ", "-")
        size = self.image.input_size
        return f"{e.n_way}w{e.k_shot}s-{self.adaptation}-{self.protocol}-{size}px{mode}"

    @property
    def variant(self) -> str:
        """What a reader must see besides task and size; empty for the defaults."""
        return "" if self.bn_mode == "eval" else f" bn-{self.bn_mode}"


class ProbeSpec(Frozen):
    """Linear probe (protocol.md 4): what SEAL states, and our choice where it is silent."""

    kind: Literal["probe"] = "probe"
    version: Literal[1] = 1
    image: ImageSpec = ImageSpec()
    lrs: tuple[float, ...] = (0.1, 0.01, 0.001)
    epochs: int = Field(120, ge=1)
    batch_size: int = Field(32, ge=1, description="not stated by SEAL; 32 in all its code")
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(1e-4, ge=0)
    schedule: Literal["constant"] = "constant"
    init: Literal["torch_default"] = "torch_default"
    augmentation: Literal["none"] = "none"
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    bn_mode: Literal["eval"] = "eval"
    split: Literal["official", "derived_80_20"] = "official"
    seed: int = Field(0, ge=0)
    variant: ClassVar[str] = ""

    @property
    def label(self) -> str:
        """Readable part of a file name, e.g. probe-224px."""
        return f"probe-{self.image.input_size}px"


Spec = Annotated[EpisodicSpec | ProbeSpec, Field(discriminator="kind")]
