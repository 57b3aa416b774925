"""Runs of `fsbench pretrain`: run:DIR, loaded strictly, with the facts that the run recorded."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator
from torch import nn

from fsbench.backbones import architectures, checkpoint
from fsbench.backbones.architectures import Architecture
from fsbench.backbones.checkpoint import FileReference
from fsbench.backbones.matching import load_weights
from fsbench.backbones.networks import load_architecture
from fsbench.backbones.preprocessing import NEEDED, Preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork, fsbench
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.io import refuse_invalid
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Sha256, Text, Training
from fsbench.core.specs import Triple

FORM = "run:DIR"
PREFIX = "run:"
RECORD, WEIGHTS = "run.json", "model.safetensors"
AGAIN = "run the same `fsbench pretrain` command into a new folder"


class RunRecord(BaseModel):
    """The fields of run.json that a backbone needs, within limits: a run may come from others.

    training: recipe and cost for results; None if the record lacks any of it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    recipe: Text
    recipe_digest: Sha256
    architecture: Text
    width: int | None = Field(None, ge=1, le=fsbench.MAX_WIDTH)
    normalizers: dict[str, tuple[PositiveInt, ...]] = {}
    n_classes: int = Field(ge=2, le=100_000)
    input_size: int = Field(ge=8, le=1024)
    mean: Triple
    std: tuple[PositiveFloat, PositiveFloat, PositiveFloat]
    source: Text
    source_accuracy: float | None = Field(None, ge=0, le=1)
    steps: int = Field(ge=0)
    weights_hash: Sha256 | None = None
    evaluation_size: int | None = Field(None, ge=8, le=1024)
    recipe_fields: dict[str, Any] = Field({}, description="the whole recipe, for analyses")
    source_fingerprint: str | None = None
    training: Training | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_training(cls, data: Any) -> Any:
        fields = dict(data) if isinstance(data, dict) else {}
        fields["recipe"] = fields.get("recipe_fields") or None
        training = {name: fields.get(name) for name in Training.model_fields}
        return data if None in training.values() else {**data, "training": training}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.training and self.training.recipe_digest != self.recipe_digest:
            raise ValueError(f"recipe_fields have the digest {self.training.recipe_digest}")
        return self

    @property
    def name(self) -> str:
        return self.architecture.removeprefix(fsbench.PREFIX)

    @property
    def classifies_source(self) -> bool:
        """Return whether the head separates the classes of the source, not of a task."""
        return self.recipe_fields.get("loader") != "episodes"

    @property
    def network(self) -> Architecture:
        """The architecture at the size of the run. Raises UnknownName where it is gone."""
        return load_architecture(self.name).at(self.input_size)


def check(request: BackboneRequest) -> None:
    """Raise UsageError for a folder without a finished run, CheckpointError for a bad record."""
    read_run(Path(request.name))


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load the trunk of a run, or its architecture with random weights. Raise CheckpointError."""
    folder = Path(request.name)
    record = read_run(folder)
    fresh = fsbench.build_network(record.name, record.width, record.input_size)
    more: dict[str, Any] = {"evaluation_size": record.evaluation_size}
    if request.random_init is None:
        heads = (record.network.roles(fresh.module).head,)
        fill_weights(fresh.module, record, folder, heads, request.report)
        fields = ("recipe", "recipe_digest", "source_accuracy", "steps", "training")
        more |= {name: getattr(record, name) for name in fields}
        more["pretraining_data"] = (record.source,)
    stated = {name: getattr(record, name) for name in NEEDED}
    return replace(fresh, preprocessing=Preprocessing.stated("run record", **stated), more=more)


def read_run(folder: Path) -> RunRecord:
    """Read the record of a finished run.

    Raises UsageError without one, CheckpointError for impossible values and for a network with more
    weights than the file has bytes.
    """
    path = folder / RECORD
    if not path.is_file() or not (folder / WEIGHTS).is_file():
        raise UsageError(
            f"{folder} has no finished run: {RECORD} and {WEIGHTS} are needed",
            fix="finish it with the same `fsbench pretrain` command, or check the path",
        )
    with refuse_invalid(CheckpointError, f"{path} is damaged", AGAIN):
        record = RunRecord.model_validate_json(path.read_bytes())
    with torch.device("meta"):  # so that an edited record cannot exhaust the memory
        model = record.network.build(record.n_classes, record.width)
    count = sum(parameter.numel() for parameter in model.parameters())
    count += sum(map(math.prod, record.normalizers.values()))
    if count > (folder / WEIGHTS).stat().st_size:
        fault = f"it describes {count} weights, more than {WEIGHTS} has bytes"
        raise CheckpointError(f"{path} is damaged: {fault}", fix=AGAIN)
    return record


def fill_weights(
    model: nn.Module,
    record: RunRecord,
    folder: Path,
    heads: tuple[str, ...] = (),
    report: Reporter = SILENT,
) -> None:
    """Insert the normalisers of the run and copy all weights except those of `heads`."""
    try:
        architectures.insert_normalizers(model, record.normalizers)
    except AttributeError as error:
        fault = f"normalizers: {record.architecture} has no such module: {error}"
        raise CheckpointError(f"{folder / RECORD} is damaged: {fault}", fix=AGAIN) from error
    path = folder / WEIGHTS
    tree = checkpoint.read_checkpoint(path)
    load_weights(model, tree, FileReference(str(path)), record.architecture, report, heads)


def load_run_network(folder: Path) -> tuple[nn.Module, RunRecord]:
    """Load trunk and head with all weights of a run, and its record. Raise like `load`."""
    record = read_run(folder)
    model = record.network.build(record.n_classes, record.width)
    fill_weights(model, record, folder)
    return model, record
