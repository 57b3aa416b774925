"""FGVC-Aircraft: 100 aircraft variants, with the official train and test lists.

The linear probe trains on `train` (3,334 images), as Table 3 of SEAL (CVPR 2023) counts them;
torchvision's default split is `trainval` (6,667).
"""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.cards import read_card
from fsbench.data.splits import (
    PARTS,
    UNREADABLE,
    ListedImage,
    assemble_official,
    find_inner_folder,
    missing_error,
)

BASE = "fgvc-aircraft-2013b"
"""The folder name that torchvision expects."""


CARD = read_card("aircraft")
FACTS, ARCHIVES = CARD.facts, CARD.archives
VARIANTS = FACTS.classes


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load both parts below `folder`. Raises DataError for missing and for other files."""
    base = find_inner_folder(folder, BASE, "data/images", FACTS)
    parts = [_part(base, part) for part in PARTS]
    return assemble_official(FACTS, folder, base / "data" / "images", parts, pool)


def _part(base: Path, part: str) -> list[ListedImage]:
    from torchvision.datasets import FGVCAircraft

    try:
        dataset = FGVCAircraft(base.parent, split=part, annotation_level="variant", download=False)
    except UNREADABLE as error:
        raise missing_error(
            base, f"variants.txt and a matching images_variant_{part}.txt", FACTS
        ) from error
    if tuple(dataset.classes) != VARIANTS:
        raise DataError(
            f"{base / 'data' / 'variants.txt'} is not the official file", fix=FACTS.download
        )
    pairs = zip(dataset._labels, dataset._image_files, strict=True)
    return [ListedImage(label, Path(path).name) for label, path in pairs]
