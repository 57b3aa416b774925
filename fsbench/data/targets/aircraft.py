"""FGVC-Aircraft: 100 aircraft variants, with the official train and test lists.

The linear probe trains on `train` (3,334 images), as Table 3 of SEAL (CVPR 2023) counts them;
torchvision's default split is `trainval` (6,667).
"""

from collections.abc import Iterator
from pathlib import Path

from fsbench.data.assembly import ListedImage
from fsbench.data.cards import read_card
from fsbench.data.splits import official_target, read_label, read_lines, require_path

FACTS = read_card("aircraft")


def _read_list(base: Path, part: str) -> Iterator[ListedImage]:
    table = require_path(base, f"data/images_variant_{part}.txt", FACTS)
    for line in read_lines(table):
        number, _, variant = line.partition(" ")
        name = f"{number}.jpg"
        yield read_label(FACTS, table, name, variant), name


load = official_target(FACTS, "data/images", _read_list, base="fgvc-aircraft-2013b")
