"""Normalisation and size that a checkpoint file states for itself, in a JSON file beside it.

Looked for in this order: FILE's name with .json (mean, std, input_size); run.json of
`fsbench pretrain`; config.json of timm (pretrained_cfg); preprocessor_config.json of transformers
(image_mean, image_std, crop_size or size). A value that no file states is the architecture's.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, PositiveFloat, ValidationError

from fsbench.backbones.sources import LoadedNetwork
from fsbench.core.errors import CheckpointError, ValidationFailed
from fsbench.core.io import explain_errors, read_json
from fsbench.core.progress import Reporter
from fsbench.core.specs import Triple


class Preprocessing(BaseModel):
    """Preprocessing that a file states; None where it states nothing."""

    mean: Triple | None = None
    std: tuple[PositiveFloat, PositiveFloat, PositiveFloat] | None = None
    input_size: int | None = Field(None, ge=8, le=1024)


def with_stated_preprocessing(loaded: LoadedNetwork, path: Path, report: Reporter) -> LoadedNetwork:
    """Return the network with the values that a JSON file beside `path` states, and log them.

    Raises CheckpointError for values that no image can be normalised by.
    """
    for name in (f"{path.stem}.json", "run.json", "config.json", "preprocessor_config.json"):
        beside = path.with_name(name)
        if not beside.is_file():
            continue
        try:
            stated = Preprocessing.model_validate(stated_values(read_json(beside)))
        except ValidationFailed as error:
            raise CheckpointError(error.message, fix=f"mend {beside}, or move it away") from error
        except ValidationError as error:
            raise CheckpointError(
                f"{beside}: {explain_errors(error)}", fix="mend it, or move it away"
            ) from error
        values = {field: value for field, value in stated if value is not None}
        if values:
            report.log(f"{path}: {', '.join(values)} from {name}")
            return replace(loaded, **values)
    return loaded


def stated_values(content: Any) -> dict[str, Any]:
    """Return mean, std and input_size of any of the known files, as far as they are there."""
    if not isinstance(content, dict):
        return {}
    timm_config = "architecture" in content and "pretrained_cfg" in content
    config = content["pretrained_cfg"] if timm_config else content
    config = config if isinstance(config, dict) else {}
    size: Any = config.get("input_size", config.get("crop_size", config.get("size")))
    if isinstance(size, dict):
        size = size.get("height", size.get("shortest_edge"))
    return {
        "mean": config.get("mean", config.get("image_mean")),
        "std": config.get("std", config.get("image_std")),
        "input_size": size[-1] if isinstance(size, list) and size else size,
    }
