"""The base of every record, and the geometry that all evaluations share (protocol.md 2)."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


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
