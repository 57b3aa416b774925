"""Probes of frozen features on whole data sets, as frozen data: linear, and nearest neighbours.

Fields added later are left out of the canonical text at their defaults, so the digests of earlier
specs stay what they were.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from fsbench.core.frozen import Frozen, ImageSpec

Split = Literal["official", "derived_80_20"]
Augmentation = Literal["none", "views", "live"]
Schedule = Literal["constant", "cosine"]
Select = Literal["test", "held_out"]
Metric = Literal["cosine", "euclidean"]
AUGMENTATIONS: tuple[Augmentation, ...] = get_args(Augmentation)
SCHEDULES: tuple[Schedule, ...] = get_args(Schedule)
SELECTS: tuple[Select, ...] = get_args(Select)
METRICS: tuple[Metric, ...] = get_args(Metric)


class ProbeSpec(Frozen):
    """Linear probe (protocol.md 4): what SEAL states, and our choice where it is silent.

    augmentation: `none` trains on features of the centre crop; `views` on those of k random views
    of every image (resize, random resized crop, flip), epoch e on view e mod k; `live` on a new
    view in every epoch. schedule: `cosine` decays the rate to 0, epoch by epoch. held_out: part of
    every training class on which the rate is chosen, beside the choice on the test images that the
    paper reports; None makes none. select: which of the two choices is the score.
    """

    kind: Literal["probe"] = "probe"
    version: Literal[1] = 1
    image: ImageSpec = ImageSpec()
    lrs: tuple[float, ...] = (0.1, 0.01, 0.001)
    epochs: int = Field(120, ge=1)
    batch_size: int = Field(32, ge=1, description="not stated by SEAL; 32 in all its code")
    momentum: float = Field(0.9, ge=0, lt=1)
    weight_decay: float = Field(1e-4, ge=0)
    schedule: Schedule = "constant"
    init: Literal["torch_default"] = "torch_default"
    augmentation: Augmentation = "none"
    views: int | None = Field(None, ge=1, exclude_if=lambda value: value is None)
    label_smoothing: float = Field(0.0, ge=0, lt=1)
    bn_mode: Literal["eval"] = "eval"
    split: Split = "official"
    held_out: float | None = Field(None, gt=0, lt=1, exclude_if=lambda value: value is None)
    select: Select = Field("test", exclude_if=lambda value: value == "test")
    seed: int = Field(0, ge=0)
    transductive: ClassVar[bool] = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.augmentation == "views") != (self.views is not None):
            raise ValueError(f"augmentation {self.augmentation} with views {self.views}")
        if self.select == "held_out" and self.held_out is None:
            raise ValueError("select held_out without a held_out part")
        return self

    @property
    def n_views(self) -> int:
        """Random views of every training image; 0 without augmentation."""
        return {"none": 0, "views": self.views or 0, "live": self.epochs}[self.augmentation]

    @property
    def variant(self) -> tuple[str, ...]:
        """Words that a reader must see besides task and size; none for the defaults."""
        parts = {
            f"views-{self.views}": self.augmentation == "views",
            "live-views": self.augmentation == "live",
            self.schedule: self.schedule != "constant",
            "lr-held-out": self.select == "held_out",
        }
        return tuple(word for word, shown in parts.items() if shown)

    @property
    def label(self) -> str:
        """Readable part of a file name, e.g. probe-224px."""
        return "-".join([self.kind, f"{self.image.input_size}px", *self.variant])


class KnnSpec(Frozen):
    """k-NN probe: the training images nearest in feature space vote.

    Defaults are DINO's (Caron et al. 2021, section 4.1 and its code): k = 20, cosine similarity,
    votes weighted by exp(similarity / 0.07). Euclidean neighbours have one vote each, as in
    scikit-learn. Features are those of the centre crop; nothing is drawn at random.
    """

    kind: Literal["knn"] = "knn"
    version: Literal[1] = 1
    image: ImageSpec = ImageSpec()
    k: int = Field(20, ge=1)
    metric: Metric = "cosine"
    weights: Literal["softmax", "uniform"] = "softmax"
    temperature: float | None = Field(0.07, gt=0)
    bn_mode: Literal["eval"] = "eval"
    split: Split = "official"
    transductive: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Votes that are not weighted by similarity have no temperature."""
        if not isinstance(data, dict):
            return data
        votes = "uniform" if data.get("metric") == "euclidean" else "softmax"
        data = {"weights": votes, **data}
        return data if data["weights"] == "softmax" else {"temperature": None, **data}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        soft = self.weights == "softmax"
        if soft != (self.temperature is not None) or (soft and self.metric != "cosine"):
            raise ValueError(
                f"{self.weights} votes at temperature {self.temperature} for {self.metric}"
            )
        return self

    @property
    def variant(self) -> tuple[str, ...]:
        """Words that a reader must see besides task and size; none for the defaults."""
        fields = type(self).model_fields
        differ = {n: getattr(self, n) for n in ("k", "metric", "weights", "temperature")}
        return tuple(f"{n}={v}" for n, v in differ.items() if v != fields[n].default and v)

    @property
    def label(self) -> str:
        """Readable part of a file name, e.g. knn-224px."""
        return "-".join([self.kind, f"{self.image.input_size}px", *self.variant])
