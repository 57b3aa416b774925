"""FGVC-Aircraft: 100 aircraft variants, with the official train and test lists.

The linear probe trains on `train` (3,334 images), as Table 3 of SEAL (CVPR 2023) counts them;
torchvision's default split is `trainval` (6,667).
"""

from collections.abc import Iterator
from pathlib import Path

from fsbench.core.schema import DatasetFacts
from fsbench.data.splits import ListedImage, official_target, read_lines, require_path


def _read_list(base: Path, part: str, facts: DatasetFacts) -> Iterator[ListedImage]:
    table = require_path(base, f"data/images_variant_{part}.txt", facts)
    for line in read_lines(table):
        number, _, variant = line.partition(" ")
        yield ListedImage.of(facts, table, f"{number}.jpg", variant)


FACTS, ARCHIVES, load = official_target(
    "aircraft", "data/images", _read_list, base="fgvc-aircraft-2013b"
)
