"""What probes are asked for: `--set probe.FIELD=VALUE`, and the full spec of a probe task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.specs import ImageSpec, KnnSpec, ProbeSpec
from fsbench.core.probe_specs import Split
from fsbench.core.tasks import Probe, Task
from fsbench.data import TARGETS

PREFIX = "probe"
FIELDS: dict[Probe, tuple[str, ...]] = {
    "probe": ("augmentation", "views", "schedule", "select"),
    "knn": ("k", "metric", "weights", "temperature"),
}
"""What can be set of each probe: all that a column's name tells apart."""
HELD_OUT = 0.1
"""Part of the official train images on which a rate is tried that has seen no test image."""


@dataclass(frozen=True)
class Probing:
    """values: fields of probes, as text; each goes to the probe that has it.

    Raises UnknownName for another field, UsageError for a value that does not fit.
    """

    values: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [name for names in FIELDS.values() for name in names]
        for name in self.values:
            if name not in known:
                raise UnknownName(f"setting of {PREFIX}", name, known)
        for probe in FIELDS:
            self.fields(probe)

    def refuse_unused(self, tasks: tuple[Task, ...]) -> None:
        """Raises UsageError for a setting of a probe that no task is."""
        for probe, names in FIELDS.items():
            unused = [name for name in names if name in self.values]
            if unused and all(task.probe != probe for task in tasks):
                raise UsageError(
                    f"{PREFIX}.{unused[0]} is set, and no task is a {probe}",
                    fix=f"add a task such as eurosat:{probe}",
                )

    def fields(self, probe: Probe) -> dict[str, Any]:
        """Those of one probe, as its spec holds them."""
        mine: dict[str, Any] = {n: v for n, v in self.values.items() if n in FIELDS[probe]}
        if "views" in mine:
            mine = {"augmentation": "views", **mine}
        if mine.get("select") == "held_out":
            mine["held_out"] = HELD_OUT
        model: type[ProbeSpec | KnnSpec] = KnnSpec if probe == "knn" else ProbeSpec
        try:
            spec = model.model_validate(mine)
        except ValidationError as error:
            wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise UsageError(f"{PREFIX}: {wrong}", fix="give another value") from error
        return {name: getattr(spec, name) for name in spec.model_fields_set}

    def spec(
        self, task: Task, image: ImageSpec, seed: int, limit: int | None
    ) -> ProbeSpec | KnnSpec:
        """The full spec; limit: epochs at most. An official split is used where there is one."""
        split = split_of(task)
        if task.probe == "knn":
            return KnnSpec.model_validate({**self.fields("knn"), "image": image, "split": split})
        fields = self.fields("probe")
        if split == "official":
            fields = {"held_out": HELD_OUT, **fields}
        epochs = min(ProbeSpec().epochs, limit or ProbeSpec().epochs)
        own = {"image": image, "epochs": epochs, "split": split, "seed": seed}
        return ProbeSpec.model_validate(fields | own)


def split_of(task: Task) -> Split:
    """Official where the publisher of the data set states one."""
    known = task.dataset in TARGETS.names() and TARGETS.load(task.dataset).FACTS.split
    return "official" if known else "derived_80_20"
