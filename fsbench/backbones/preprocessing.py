"""Preprocessing of a backbone: input size, normalisation and resizing, with who states each.

A value that nobody states is None: it is never replaced by a default. Of the files beside a
checkpoint, config.json of timm beside the weights that timm writes states values.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fsbench.core.errors import CheckpointError, UsageError, ValidationFailed
from fsbench.core.io import read_json
from fsbench.core.schema import USER as USER
from fsbench.core.specs import Triple

IMAGENET_MEAN: Triple = (0.485, 0.456, 0.406)
IMAGENET_STD: Triple = (0.229, 0.224, 0.225)
STATISTICS: dict[str, tuple[Triple, Triple]] = {
    "imagenet": (IMAGENET_MEAN, IMAGENET_STD),
    "half": ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
    "none": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)),
}
"""Mean and std of images in [0, 1] by the name that --mean and --std take."""
DEFAULT = "default of the architecture"
"""Source of the values of random weights: no weights of a file are vouched for by it."""
NEEDED = ("input_size", "mean", "std")
"""Facts that an evaluation cannot do without."""
WRITTEN = ("model.safetensors", "pytorch_model.bin")
"""Weights that libraries write beside the config.json that describes them."""


@dataclass(frozen=True)
class Preprocessing:
    """Input size, normalisation and resizing of a network, as far as they are known.

    values: `input_size`, the side (px) that it was trained at; `mean` and `std` of images in
    [0, 1]; `interpolation` of the resizing; sources: who states each; problem: why one is unknown.
    """

    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    @classmethod
    def stated(cls, source: str, **values: Any) -> "Preprocessing":
        """Return the values that are not None, all stated by `source`. Raise UsageError.

        mean, std: as `parse_statistics` takes them.
        """
        values = {name: value for name, value in values.items() if value is not None}
        values |= {n: parse_statistics(values[n], n) for n in ("mean", "std") if n in values}
        return cls(values, dict.fromkeys(values, source))

    def over(self, other: "Preprocessing") -> "Preprocessing":
        """Return these values, and those of `other` where nothing is known."""
        values, sources = other.values | self.values, other.sources | self.sources
        for name in other.values.keys() & self.values:
            if self.sources[name] == USER:
                sources[name] = f"{USER}, in place of {other.sources[name]}"
        return Preprocessing(values, sources, self.problem or other.problem)

    @property
    def input_size(self) -> int | None:
        return self.values.get("input_size")


def parse_statistics(values: object, name: str) -> Triple | None:
    """Return mean or std (name) per channel: of three numbers, one, or a name. Raise UsageError."""
    if values is None:
        return None
    if isinstance(values, str) and values.strip() in STATISTICS:
        return STATISTICS[values.strip()][name == "std"]
    parts = values.split(",") if isinstance(values, str) else values
    try:
        numbers = [float(part) for part in (parts if isinstance(parts, Sequence) else [parts])]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        numbers = []
    valid = all(math.isfinite(x) and (name == "mean" or x > 0) for x in numbers)
    if len(numbers) not in (1, 3) or not valid:
        raise UsageError(
            f"--{name} {values}",
            fix=f"write {', '.join(STATISTICS)}, one number, or three such as 0.485,0.456,0.406"
            + (", above 0" if name == "std" else ""),
        )
    r, g, b = numbers * (3 // len(numbers))
    return r, g, b


def read_config(path: Path, architecture: str) -> Preprocessing:
    """Return what the config.json of timm beside its weights states, if it names this architecture.

    Raises CheckpointError for values that no image can be normalised by.
    """
    config = path.with_name("config.json")
    content = read_json_beside(config) if path.name in WRITTEN else {}
    named = str(content.get("architecture")).removeprefix("fsbench_")
    is_named = named == re.split(r"[?.@]", architecture)[0]
    return parse_stated(content, config) if is_named else Preprocessing()


def read_json_beside(path: Path) -> dict[str, Any]:
    """Read a JSON object; {} without the file or for other content. Raise CheckpointError."""
    try:
        content = read_json(path) if path.is_file() else {}
    except ValidationFailed as error:
        raise CheckpointError(error.message, fix=f"mend {path}, or move it away") from error
    return content if isinstance(content, dict) else {}


def parse_stated(content: Mapping[str, Any], path: Path) -> Preprocessing:
    """Return the values in a config.json of timm. Raise CheckpointError."""
    config = content.get("pretrained_cfg", content)
    config = config if isinstance(config, dict) else {}
    values = {name: config.get(name) for name in (*NEEDED, "interpolation")}
    size, resampling = values["input_size"], values["interpolation"]
    if isinstance(size, list) and size:  # channels, height, width
        values["input_size"] = size = size[-1]
    try:
        if not isinstance(size, int | None) or not 8 <= (size or 8) <= 1024:
            raise UsageError(f"input_size {size!r}", fix="state 8 to 1024 px")
        if not isinstance(resampling, str | None) or len(resampling or "") > 40:
            raise UsageError(f"interpolation {resampling!r}", fix="state its name")
        return Preprocessing.stated(path.name, **values)
    except UsageError as error:
        fix = "mend it, or move it away"
        raise CheckpointError(f"{path}: {error.message}", fix=fix) from error


EXAMPLES = {"input_size": 64, "mean": "imagenet", "std": "imagenet"}


def unknown_error(
    ref: str, missing: Sequence[str], added: str, problem: str = "", hint: str = ""
) -> UsageError:
    """Return the error that lists all that is unknown, with what to add.

    added: an example of it (EXAMPLES); problem: why it is unknown; hint: another way to state it.
    """
    names = ", ".join(missing).replace("input_size", "input size")
    return UsageError(
        f"{ref}: nothing states the {names} of its training{problem and f' ({problem})'}",
        fix=f"add what it was trained with, e.g. {added} (mean and std: {', '.join(STATISTICS)} or "
        f"numbers){hint}",
    )
