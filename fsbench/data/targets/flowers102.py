"""Oxford Flowers-102: 102 kinds of flowers, with the official train and test lists.

Labels of imagelabels.mat count from 1, torchvision's from 0. The official train part has 10 images
per class; the validation part is left out, as in the linear probe of SEAL (CVPR 2023, Table 3).
"""

from pathlib import Path

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

BASE = "flowers-102"
"""The folder name that torchvision expects."""

CARD = read_card("flowers102")
FACTS, ARCHIVES = CARD.facts, CARD.archives


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load both parts below `folder`. Raises DataError for missing and for other files."""
    base = find_inner_folder(folder, BASE, "jpg", FACTS)
    parts = [_part(base, part) for part in PARTS]
    return assemble_official(FACTS, folder, base / "jpg", parts, pool)


def _part(base: Path, part: str) -> list[ListedImage]:
    from scipy.io.matlab import MatReadError
    from torchvision.datasets import Flowers102

    try:
        dataset = Flowers102(base.parent, split=part, download=False)
    except (MatReadError, *UNREADABLE) as error:
        raise missing_error(base, "the official imagelabels.mat and setid.mat", FACTS) from error
    pairs = zip(dataset._labels, dataset._image_files, strict=True)
    return [ListedImage(label, path.name) for label, path in pairs]
