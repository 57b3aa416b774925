"""Runs of `fsbench pretrain`: run:DIR, loaded strictly, with the facts that the run recorded."""

import math
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError
from torch import nn

from fsbench.backbones import architectures, checkpoint
from fsbench.backbones.architectures import Architecture
from fsbench.backbones.checkpoint import FileReference
from fsbench.backbones.matching import load_weights
from fsbench.backbones.networks import load_architecture
from fsbench.backbones.preprocessing import Preprocessing
from fsbench.backbones.sources import BackboneRequest, LoadedNetwork, fsbench
from fsbench.core.errors import CheckpointError, UsageError
from fsbench.core.schema import Sha256, Training
from fsbench.core.specs import Triple

FORM = "run:DIR"
PREFIX = "run:"
RECORD, WEIGHTS = "run.json", "model.safetensors"
MAX_CLASSES, MAX_SIZE = 100_000, 1024
"""Limits for networks to build: a run may come from others."""


class RunRecord(BaseModel):
    """The fields of run.json that a backbone needs; a run writes more."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    recipe: str
    recipe_digest: Sha256
    architecture: str
    width: int | None = Field(None, ge=1, le=fsbench.MAX_WIDTH)
    normalizers: dict[str, tuple[PositiveInt, ...]] = {}
    n_classes: int = Field(ge=2, le=MAX_CLASSES)
    input_size: int = Field(ge=8, le=MAX_SIZE)
    mean: Triple
    std: tuple[PositiveFloat, PositiveFloat, PositiveFloat]
    source: str
    source_accuracy: float | None = Field(None, ge=0, le=1)
    steps: int = Field(ge=0)
    evaluation_size: int | None = Field(None, ge=8, le=MAX_SIZE)
    recipe_fields: dict[str, Any] = Field({}, description="the whole recipe, for analyses")
    source_fingerprint: str | None = None
    samples: int | None = None
    flops: int | None = None
    seconds: float | None = None
    peak_memory_bytes: int | None = None
    device: str | None = None

    @property
    def name(self) -> str:
        """The name of the architecture, without scheme."""
        return self.architecture.removeprefix(fsbench.PREFIX)

    @property
    def classifies_source(self) -> bool:
        """Return whether the head separates the classes of the source, not of a task."""
        return self.recipe_fields.get("loader") != "episodes"


def check(request: BackboneRequest) -> None:
    """Raise UsageError for a folder without a finished run, CheckpointError for a bad record."""
    read_run(Path(request.name))


def load(request: BackboneRequest) -> LoadedNetwork:
    """Load the trunk of a run, or its architecture with random weights.

    Raises UsageError for a folder without a finished run, CheckpointError for weights that do not
    fit the record.
    """
    folder = Path(request.name)
    record = read_run(folder)
    check_size(record, folder)
    fresh = fsbench.build_network(record.name, record.width, record.input_size)
    more: dict[str, Any] = {"evaluation_size": record.evaluation_size}
    if request.random_init is None:
        load_trunk(fresh.module, record, folder, request)
        more |= {
            "recipe": record.recipe,
            "recipe_digest": record.recipe_digest,
            "pretraining_data": (record.source,),
            "source_accuracy": record.source_accuracy,
            "steps": record.steps,
            "training": read_training(record, folder),
        }
    return LoadedNetwork(
        module=fresh.module,
        architecture=fresh.architecture,
        features=fresh.features,
        preprocessing=Preprocessing.stated(
            "run record", input_size=record.input_size, mean=record.mean, std=record.std
        ),
        more=more,
        blocks=fresh.blocks,
    )


def read_run(folder: Path) -> RunRecord:
    """Read the record of a finished run. Raise UsageError without one, CheckpointError if bad."""
    path = folder / RECORD
    if not path.is_file() or not (folder / WEIGHTS).is_file():
        raise UsageError(
            f"{folder} has no finished run: {RECORD} and {WEIGHTS} are needed",
            fix="finish it with the same `fsbench pretrain` command, or check the path",
        )
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise damaged_record_error(path, error) from error


def damaged_record_error(path: Path, error: ValidationError) -> CheckpointError:
    """Return the error for the first invalid field of a record."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the file"
    return CheckpointError(
        f"{path} is damaged: {field}: {first['msg']}",
        fix="run the same `fsbench pretrain` command into a new folder",
    )


def read_training(record: RunRecord, folder: Path) -> Training | None:
    """Return recipe and cost for results; None if the record lacks any of it.

    Raises CheckpointError if the recipe is invalid or does not match the digest of the record.
    """
    fields = {"recipe": record.recipe_fields or None}
    fields |= {n: getattr(record, n) for n in Training.model_fields if n != "recipe"}
    if None in fields.values():
        return None
    try:
        training = Training.model_validate(fields)
    except ValidationError as error:
        raise damaged_record_error(folder / RECORD, error) from error
    if training.recipe_digest != record.recipe_digest:
        raise CheckpointError(
            f"{folder / RECORD} is damaged: recipe_fields have the digest {training.recipe_digest},"
            f" recipe_digest says {record.recipe_digest}",
            fix="run the same `fsbench pretrain` command into a new folder",
        )
    return training


def architecture_of(record: RunRecord) -> Architecture:
    """Return the architecture of a run. Raise UnknownName if this version lacks it."""
    return load_architecture(record.name).at(record.input_size)


def check_size(record: RunRecord, folder: Path) -> None:
    """Raise CheckpointError for a network with more weights than the file has bytes.

    Weights and normalisers are counted on the meta device, so that an edited record cannot exhaust
    the memory.
    """
    with torch.device("meta"):
        model = architecture_of(record).build(record.n_classes, record.width)
    count = sum(parameter.numel() for parameter in model.parameters())
    count += sum(map(math.prod, record.normalizers.values()))
    if count > (folder / WEIGHTS).stat().st_size:
        raise CheckpointError(
            f"{folder / RECORD} is damaged: it describes {count} weights, more than {WEIGHTS} "
            "has bytes",
            fix="run the same `fsbench pretrain` command into a new folder",
        )


def load_trunk(
    module: nn.Module, record: RunRecord, folder: Path, request: BackboneRequest
) -> None:
    """Copy all weights except those of the head."""
    path = folder / WEIGHTS
    heads = (architecture_of(record).roles(module).head,)
    put_normalizers(module, record, folder)
    load_weights(
        module,
        checkpoint.read_checkpoint(path),
        FileReference(str(path)),
        record.architecture,
        request.report,
        heads,
    )


def put_normalizers(model: nn.Module, record: RunRecord, folder: Path) -> None:
    """Insert the normalisers of the run, whose values are among its weights."""
    try:
        architectures.insert_normalizers(model, record.normalizers)
    except AttributeError as error:
        raise CheckpointError(
            f"{folder / RECORD} is damaged: normalizers: {record.architecture} has no such module:"
            f" {error}",
            fix="run the same `fsbench pretrain` command into a new folder",
        ) from error


def load_run_network(folder: Path) -> tuple[nn.Module, RunRecord]:
    """Load trunk and head with all weights of a run, and its record. Raise like `load`."""
    record = read_run(folder)
    check_size(record, folder)
    model = architecture_of(record).build(record.n_classes, record.width)
    put_normalizers(model, record, folder)
    path = folder / WEIGHTS
    tree = checkpoint.read_checkpoint(path)
    load_weights(model, tree, FileReference(str(path)), record.architecture, heads=())
    return model, record
