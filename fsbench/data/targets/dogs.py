"""Stanford Dogs: 120 breeds of ImageNet, with the official train and test lists.

Labels of the lists count from 1, in the order of the wnids in the folder names.
"""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.cards import read_card
from fsbench.data.splits import UNREADABLE, ListedImage, assemble_official, require_path

LISTS = ("train_list.mat", "test_list.mat")

CARD = read_card("dogs")
FACTS, ARCHIVES = CARD.facts, CARD.archives
CLASSES = FACTS.classes


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
