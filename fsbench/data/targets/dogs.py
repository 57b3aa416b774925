"""Stanford Dogs: 120 breeds of ImageNet, with the official train and test lists.

Labels of the lists count from 1, in the order of the wnids in the folder names.
"""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import Archive, class_names
from fsbench.data.splits import UNREADABLE, ListedImage, assemble_official, require_path

CLASSES = class_names("dogs")
LISTS = ("train_list.mat", "test_list.mat")

FACTS = DatasetFacts(
    name="dogs",
    title="Stanford Dogs",
    domain="target",
    classes=CLASSES,
    images_per_class=(),
    split=(12000, 8580),
    label_rule="class id = label of the lists minus 1 = rank of the folder's wnid",
    layout="Images/<wnid>-<breed>/<wnid>_<n>.jpg, train_list.mat and test_list.mat",
    folders=("dogs", "stanford_dogs", "StanfordDogs", "stanford-dogs"),
    aliases=("stanford-dogs", "stanford_dogs"),
    download="fsbench data download dogs --data ROOT",
    license="a part of ImageNet: non-commercial research and education",
    citation="Khosla et al., Novel Dataset for Fine-Grained Image Categorization, CVPR workshop on "
    "fine-grained visual categorization 2011",
    homepage="http://vision.stanford.edu/aditya86/ImageNetDogs/",
)
ARCHIVES = tuple(
    Archive(
        f"https://vision.stanford.edu/aditya86/ImageNetDogs/{name}.tar",
        f"sha256:{sha256}",
        hash_source="tensorflow/datasets, url_checksums/stanford_dogs.txt",
        mirrors=(f"http://vision.stanford.edu/aditya86/ImageNetDogs/{name}.tar",),
    )
    for name, sha256 in (
        ("images", "a443fc2f9a851aa1a7b8e4fa4af94b8459fce2c9f5a2f4dd4669cf9673a4ec58"),
        ("lists", "34b47cacd9a98b5d150e084f24d29391c084c55272295ec65c85651bc35f4d6c"),
    )
)


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load the listed images below `folder`. Raises DataError for missing files, wrong labels."""
    images = require_path(folder, "Images/", FACTS)
    parts = [_part(folder, name) for name in LISTS]
    return assemble_official(FACTS, folder, images, parts, pool)


def _part(folder: Path, name: str) -> list[ListedImage]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    table = require_path(folder, name, FACTS)
    try:
        columns = loadmat(table)
        names = [str(cell.item()) for cell in columns["file_list"].ravel()]
        labels = [int(value) - 1 for value in columns["labels"].ravel()]
        pairs = list(zip(labels, names, strict=True))
    except (MatReadError, *UNREADABLE) as error:
        raise DataError(f"cannot read {table}: {error}", fix=FACTS.download) from error
    order = {entry.partition("-")[0]: rank for rank, entry in enumerate(CLASSES)}
    wrong = [n for y, n in pairs if order.get(n.partition("-")[0]) != y]
    if wrong:
        raise DataError(
            f"{table}: the label of {wrong[0]} is not that of its folder", fix="fetch it again"
        )
    return [ListedImage(label, entry) for label, entry in pairs]
