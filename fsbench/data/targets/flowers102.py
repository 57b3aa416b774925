"""Oxford Flowers-102: 102 kinds of flowers, with the official train and test lists.

Labels of imagelabels.mat count from 1, torchvision's from 0. The official train part has 10 images
per class; the validation part is left out, as in the linear probe of SEAL (CVPR 2023, Table 3).
"""

from pathlib import Path

from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import Archive, class_names
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

FACTS = DatasetFacts(
    name="flowers102",
    title="Oxford Flowers-102",
    domain="target",
    classes=class_names("flowers102"),
    images_per_class=(),
    split=(1020, 6149),
    label_rule="class id = label of imagelabels.mat minus 1; train = trnid, test = tstid of "
    "setid.mat",
    dropped="the 1,020 official validation images (valid of setid.mat)",
    layout="jpg/image_<n>.jpg, imagelabels.mat and setid.mat, in a folder called flowers-102",
    folders=(BASE, "flowers102"),
    aliases=("flowers", "flower102", "flowers-102", "oxford-flowers102"),
    download="fsbench data download flowers102 --data ROOT",
    license="none stated",
    citation="Nilsback and Zisserman, Automated Flower Classification over a Large Number of "
    "Classes, ICVGIP 2008",
    homepage="https://www.robots.ox.ac.uk/~vgg/data/flowers/102/",
)
ARCHIVES = tuple(
    Archive(
        f"https://www.robots.ox.ac.uk/~vgg/data/flowers/102/{file}",
        f"md5:{md5}",
        hash_source="torchvision, datasets/flowers102.py",
        mirrors=(f"https://thor.robots.ox.ac.uk/~vgg/data/flowers/102/{file}",),
    )
    for file, md5 in (
        ("102flowers.tgz", "52808999861908f626f3c1f4e79d11fa"),
        ("imagelabels.mat", "e0620be6f572b9609742df49c70aed4d"),
        ("setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c"),
    )
)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load the train and test images below `folder`.

    Raises DataError for missing files and for files that are not the official ones.
    """
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
