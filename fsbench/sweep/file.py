"""Schema of a sweep file: recipes, given backbones, evaluations, analyses and entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from fsbench.api.options import AnalysisSelection, ModelOptions, TaskOptions
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import read_mapping, refuse_invalid
from fsbench.core.options import OptionModel, option
from fsbench.core.schema import Declaration, Text, find_code
from fsbench.core.specs import Frozen

T = TypeVar("T")


class RunsBlock(Frozen):
    """Runs: recipes x methods x seeds. A recipe is SCALE/NAME, or SCALE for each method's own."""

    recipes: tuple[str, ...] = Field(min_length=1)
    methods: tuple[str, ...] = Field((), description="`all`, or names as --method; none: its own")
    seeds: tuple[int, ...] = Field((0,), min_length=1)
    scenario: str | None = None
    set: Mapping[str, Any] = Field({}, description="field -> value, as `fsbench pretrain --set`")
    controls: bool = Field(
        False, description="also plain training of equal compute, with and without restarts"
    )


@dataclass(frozen=True, kw_only=True)
class BackboneSelection(OptionModel):
    """The backbones whose names match one of `only`."""

    only: Sequence[str] = option(("*",), "", "Patterns, e.g. pilot-seal-*.")


@dataclass(frozen=True)
class EvaluationBlock(BackboneSelection, TaskOptions):
    """Evaluations: tasks x shots x heads."""


@dataclass(frozen=True)
class AnalysesBlock(BackboneSelection, AnalysisSelection):
    """Analyses (`fsbench analyze`); inapplicable ones are skipped and logged."""


class EntriesBlock(Declaration):
    """Board entries, added as soon as they are evaluated: one per recipe, with all of its seeds."""

    only: tuple[str, ...] = Field(("*",), description="patterns of names of backbones")
    name: Literal[""] = ""  # that of the recipe
    targets_seen: tuple[Text, ...] = ()
    pretraining_data: tuple[Text, ...] = Field((), description="of given backbones")


def select(
    name: str, blocks: Sequence[BackboneSelection | EntriesBlock], values: Sequence[T]
) -> list[T]:
    """Return the values of those blocks that select the backbone of this name."""
    pairs = zip(blocks, values, strict=True)
    return [value for block, value in pairs if any(fnmatchcase(name, p) for p in block.only)]


MOST_GPUS = 64
"""GPUs of a training at most."""


class GpuShares(Frozen):
    """GPUs of one job by its kind: a part of one, which several jobs share, or 0 for the CPU.

    Only `pretrain` takes more than one. heads: on stored features, also probes.
    """

    pretrain: float = Field(1, ge=0, le=MOST_GPUS)
    features: float = Field(1, ge=0, le=1)
    affine: float = Field(1, ge=0, le=1)
    heads: float = Field(0, ge=0, le=1)
    analyses: float = Field(0, ge=0, le=1)

    @model_validator(mode="after")
    def _can_run(self) -> Self:
        if self.pretrain > 1 and self.pretrain % 1:
            raise ValueError(f"pretrain takes a part of one GPU or whole ones: not {self.pretrain}")
        return self


class SweepFile(Frozen):
    """A sweep. threads: torch threads per job (bits depend on it).

    submit: a backbone is submitted as the first block says that selects it.
    """

    pretrain: tuple[RunsBlock, ...] = ()
    backbones: tuple[ModelOptions, ...] = Field((), description="existing backbones")
    evaluate: tuple[EvaluationBlock, ...] = ()
    analyze: tuple[AnalysesBlock, ...] = ()
    submit: tuple[EntriesBlock, ...] = ()
    threads: int = Field(1, ge=1, le=1024)
    gpus: GpuShares = GpuShares()

    @model_validator(mode="before")
    @classmethod
    def _names_no_code(cls, data: Any) -> Any:
        if code := find_code(data):
            raise ValueError(f"'{code}' names code to run, which no file may")
        return data

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not (self.pretrain or self.backbones):
            raise ValueError("it names no backbone: give `pretrain` or `backbones`")
        if self.submit and not self.evaluate:
            raise ValueError("`submit` without `evaluate` has no results to submit")
        return self


def read_sweep_file(path: Path) -> SweepFile:
    """Read a sweep file. Raise UsageError, of an unknown key with the nearest one."""
    keys = {*SweepFile.model_fields, *(f"submit.0.{name}" for name in EntriesBlock.model_fields)}
    keys |= {f"pretrain.0.{name}" for name in RunsBlock.model_fields}
    keys |= {f"gpus.{name}" for name in GpuShares.model_fields}
    try:
        data = read_mapping(path, ", ".join(SweepFile.model_fields))
        with refuse_invalid(UsageError, "sweep", "see 'Sweeps' in pretrain/README.md", keys):
            return SweepFile.model_validate(data)
    except ValidationFailed as error:
        raise UsageError(error.message, fix=error.fix) from error
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", fix=error.fix) from None
