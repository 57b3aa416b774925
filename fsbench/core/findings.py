"""Findings of an analysis of one backbone, and their record, without torch.

Records lie in the results tree beside the model's other results (fsbench/results/store.py).
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from fsbench.core.schema import BackboneFacts, Name, Provenance, Sha256
from fsbench.core.specs import Frozen, digest


class Measure(Frozen):
    """A number of the table. share: a fraction in [0, 1], shown in percent."""

    name: str
    value: float | int
    share: bool = False


class View(Frozen):
    """A curve of the figure; curves of several backbones with one title share a panel.

    at, values (n,): the line; low, high (n,): the range of repeated draws around it, where there is
    one; places (n,): names of the positions, where these are layers or blocks. A line of one point
    is drawn as a bar.
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

    @classmethod
    def bar(cls, title: str, value: float) -> Self:
        """A single number: one bar a backbone."""
        return cls(title=title, x="", y="", at=(0.0,), values=(value,))

    @model_validator(mode="after")
    def _one_length(self) -> Self:
        n = len(self.at)
        optional = (self.low, self.high, self.places)
        if len(self.values) != n or any(len(column) not in (0, n) for column in optional):
            raise ValueError(f"the view '{self.title}' has columns of several lengths")
        return self


class Finding(Frozen):
    """The outcome of one analysis: numbers, and the lines behind them."""

    measures: tuple[Measure, ...] = Field(min_length=1)
    views: tuple[View, ...] = ()


class Images(Frozen):
    """The source that was looked at: which images, at which side (px)."""

    name: str
    fingerprint: str
    input_size: int = Field(ge=1)


class Question(Frozen):
    """Everything that decides a finding except the machine; its digest names the record file.

    weights: sha-256 over all tensors measured, with the head where one takes part.
    """

    what: Name
    version: Literal[1] = 1
    weights: Sha256
    images: Images | None
    settings: dict[str, Any]

    def digest(self) -> str:
        """Return the sha-256 of the question, 64 hexadecimal digits."""
        return digest(self.model_dump(mode="json"), compact=False)

    @property
    def stem(self) -> str:
        """File name without suffix, e.g. hessian-1a2b3c4d."""
        return f"{self.what}-{self.digest()[:8]}"


class Analysis(Frozen):
    """Record of one analysis of one backbone."""

    schema_version: Literal[1] = 1
    question: Question
    backbone: BackboneFacts
    finding: Finding
    provenance: Provenance
