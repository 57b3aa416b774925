"""Options of an evaluation: one model for Python, the command line, --config and sweep files."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, InstanceOf, ValidationError

from fsbench.api.request import (
    EvaluationRequest,
    parse_head_settings,
    parse_probe_settings,
    parse_tasks,
)
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.specs import BnMode, ImageSpec, Interpolation
from fsbench.core.tasks import Options, TaskId

Side = Annotated[int, Field(ge=8, le=1024)]
"""Side of an image in pixels, as in ImageSpec."""


class EvaluationOptions(Options):
    """Tasks and the choices of their specs, named as on the command line; defaults are official.

    Descriptions are the fix of an error. crop: part of the resized side that the centre crop takes.
    """

    tasks: tuple[InstanceOf[TaskId] | str, ...] = ()
    episodes: int = Field(600, ge=1)
    n_query: int = Field(15, ge=1, le=1000)
    input_size: Literal["auto", "native"] | Side = Field(
        "auto", description="write pixels in 8..1024, auto or native"
    )
    interpolation: Interpolation = "bilinear"
    crop: float | None = Field(
        None, ge=0.5, le=1, description="write a fraction in 0.5..1, e.g. 0.875"
    )
    set: tuple[str, ...] = ()
    bn_mode: BnMode = "eval"
    seed: int = Field(0, ge=0)
    limit: int | None = Field(None, ge=1)

    @classmethod
    def read(cls, **values: Any) -> Self:
        """Return the options of these values. Raise UsageError, or UnknownName for a word."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            name, text = str(problem["loc"][0]), str(problem["input"])
            field, label = cls.model_fields[name], name.replace("_", " ")
            if problem["type"] == "literal_error" and not field.description:
                raise UnknownName(label, text, get_args(field.annotation)) from error
            fix = field.description or problem["msg"]
            raise UsageError(f"{label} '{text}'", fix=fix) from error

    @property
    def image(self) -> ImageSpec:
        """The geometry of images, without a size."""
        factor = {} if self.crop is None else {"resize_factor": 1 / self.crop}
        return ImageSpec(interpolation=self.interpolation, **factor)

    def request(self) -> EvaluationRequest:
        """Return the request of all tasks. Raise UsageError, UnknownName."""
        return EvaluationRequest(
            tasks=parse_tasks(self.tasks, self),
            input_size=self.input_size,
            image=self.image,
            episodes=self.episodes,
            limit=self.limit,
            seed=self.seed,
            bn_mode=self.bn_mode,
            n_query=self.n_query,
            settings=parse_head_settings(self.set),
            probing=parse_probe_settings(self.set),
        )

    @property
    def names_specs(self) -> bool:
        """Return whether anything but tasks and kinds is stated, as spec files do."""
        return self != type(self)(tasks=self.tasks, kinds=self.kinds)
