"""Results that belong on the official board `transfer`: linear probes, quickly made."""

from pathlib import Path

import numpy as np
from support import fakes

from fsbench.core.records import ProbeRecords
from fsbench.core.schema import DatasetRecord, Result
from fsbench.core.seeding import uniforms
from fsbench.core.specs import ImageSpec, ProbeSpec

SETS = ("flowers102", "cub200", "aircraft", "mit67", "dogs")


def spec(size: int = 224, **changes: object) -> ProbeSpec:
    return ProbeSpec.model_validate(
        {"image": ImageSpec(input_size=size), "held_out": 0.1, **changes}
    )


def write(root: Path, accuracy: float, data: DatasetRecord, name: str, size: int = 224) -> Result:
    """A probe of 100 test images; what is best is best by far."""
    content = spec(size)
    lrs, chances = np.array(content.lrs), accuracy * np.array([1.0, 0.5, 0.2])
    right = uniforms((3, 100), name, data.name, str(size)) < chances[:, None]
    curve = np.repeat(right.mean(axis=1)[:, None], content.epochs, axis=1)
    records = ProbeRecords(lrs, curve, right, right, right.mean(axis=1))
    return fakes.store(root, content, records, name=name, data=data)


def write_all(root: Path, accuracy: float, name: str) -> None:
    """All columns of one track."""
    for name_of_set in SETS:
        write(root, accuracy, fakes.official(name_of_set), name)
