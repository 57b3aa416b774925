"""Oxford Flowers-102: 102 kinds of flowers, with the official train and test lists.

Labels of imagelabels.mat count from 1, torchvision's from 0. The official train part has 10 images
per class; the validation part is left out, as in the linear probe of SEAL (CVPR 2023, Table 3).
"""

from collections.abc import Iterator
from pathlib import Path

from fsbench.data.assembly import ListedImage
from fsbench.data.cards import read_card
from fsbench.data.splits import UNREADABLE, missing_error, official_target

FACTS = read_card("flowers102")


def _read_list(base: Path, part: str) -> Iterator[ListedImage]:
    from scipy.io.matlab import MatReadError
    from torchvision.datasets import Flowers102

    try:
        dataset = Flowers102(base.parent, split=part, download=False)
    except (MatReadError, *UNREADABLE) as error:
        raise missing_error(base, "the official imagelabels.mat and setid.mat", FACTS) from error
    for label, path in zip(dataset._labels, dataset._image_files, strict=True):
        yield label, path.name


load = official_target(FACTS, "jpg", _read_list, base="flowers-102")
