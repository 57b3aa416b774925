"""Schema of a sweep file: recipes, given backbones, evaluations, analyses and entries."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import (
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from fsbench.api.options import AnalysisSelection, ModelOptions, TaskOptions
from fsbench.core.errors import UnknownName, UsageError, ValidationFailed
from fsbench.core.io import explain_errors, read_mapping
from fsbench.core.options import option
from fsbench.core.schema import Declaration, Text, find_code
from fsbench.core.specs import Frozen

JobKind = Literal["pretrain", "evaluate", "analyze", "submit"]
"""evaluate: one backbone on one data set with one head."""


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


@dataclass(frozen=True)
class EvaluationBlock(TaskOptions):
    """Evaluations: tasks x shots x heads of the backbones whose names match one of `only`."""

    _: KW_ONLY
    only: Sequence[str] = option(("*",), "", "Patterns, e.g. pilot-seal-*.")


@dataclass(frozen=True)
class AnalysesBlock(AnalysisSelection):
    """Analyses (`fsbench analyze`) of the backbones whose names match one of `only`.

    Inapplicable analyses are skipped and logged.
    """

    _: KW_ONLY
    only: Sequence[str] = option(("*",), "", "Patterns, e.g. pilot-seal-*.")


class EntriesBlock(Declaration):
    """Board entries, added as soon as they are evaluated; backbones of one name are its seeds."""

    name: str = Field("{recipe}", description="of {recipe} {label} {scale} {method} {seed}")
    targets_seen: tuple[Text, ...] = ()
    pretraining_data: tuple[Text, ...] = Field((), description="of given backbones")


class SweepFile(Frozen):
    """A sweep. threads: torch threads per job (bits depend on it)."""

    pretrain: tuple[RunsBlock, ...] = ()
    backbones: tuple[InstanceOf[ModelOptions], ...] = Field((), description="existing backbones")
    evaluate: tuple[InstanceOf[EvaluationBlock], ...] = ()
    analyze: tuple[InstanceOf[AnalysesBlock], ...] = ()
    submit: EntriesBlock | None = None
    threads: int = Field(1, ge=1, le=1024)

    @field_validator("evaluate", "analyze", mode="before")
    @classmethod
    def _read_options(cls, blocks: Any, field: ValidationInfo) -> Any:
        model = EvaluationBlock if field.field_name == "evaluate" else AnalysesBlock
        return tuple(map(model.read, blocks)) if isinstance(blocks, list) else blocks

    @field_validator("backbones", mode="before")
    @classmethod
    def _read_backbones(cls, blocks: Any) -> Any:
        """Read the options of each backbone. Raise ValueError for code to run."""
        if not isinstance(blocks, list):
            return blocks
        if code := find_code(blocks):
            raise ValueError(f"'{code}' names code to run, which no file may")
        read: list[Any] = [ModelOptions.read(block) for block in blocks]
        return tuple(replace(options, model=(ref,)) for options in read for ref in options.model)

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not (self.pretrain or self.backbones):
            raise ValueError("it names no backbone: give `pretrain` or `backbones`")
        if self.submit and not self.evaluate:
            raise ValueError("`submit` without `evaluate` has no results to submit")
        return self


def read_sweep_file(path: Path) -> SweepFile:
    """Read a sweep file. Raise UsageError, or UnknownName with the nearest key."""
    try:
        data = read_mapping(path, ", ".join(SweepFile.model_fields))
    except ValidationFailed as error:
        raise UsageError(error.message, fix=error.fix) from error
    try:
        return SweepFile.model_validate(data)
    except UsageError as error:
        raise error.within(path) from None
    except ValidationError as error:
        raise usage_error(path, error) from error


def usage_error(path: Path, error: ValidationError) -> UsageError:
    for problem in error.errors(include_url=False):
        if problem["type"] == "extra_forbidden":
            *where, key = problem["loc"]
            annotation = SweepFile.model_fields[str(where[0])].annotation if where else None
            block = get_args(annotation)[0] if where else SweepFile
            kind = f"key of {'.'.join(map(str, where))} in {path}" if where else f"key in {path}"
            return UnknownName(kind, str(key), list(block.model_fields))
    return UsageError(f"{path}: {explain_errors(error)}", fix="see 'Sweeps' in pretrain/README.md")
