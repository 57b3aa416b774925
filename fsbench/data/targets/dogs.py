"""Stanford Dogs: 120 breeds of ImageNet, with the official train and test lists.

Labels of the lists count from 1, in the order of the wnids in the folder names.
"""

from collections.abc import Iterator
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.data.assembly import ListedImage
from fsbench.data.cards import read_card
from fsbench.data.splits import UNREADABLE, official_target, read_label, require_path

FACTS = read_card("dogs")


def _read_list(folder: Path, part: str) -> Iterator[ListedImage]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    table = require_path(folder, f"{part}_list.mat", FACTS)
    try:
        columns = loadmat(table)
        names = [str(cell.item()) for cell in columns["file_list"].ravel()]
        labels = [int(value) for value in columns["labels"].ravel()]
        pairs = list(zip(names, labels, strict=True))
    except (MatReadError, *UNREADABLE) as error:
        raise DataError(f"cannot read {table}: {error}", fix=FACTS.download) from error
    for name, label in pairs:
        yield read_label(FACTS, table, name, name.partition("/")[0], label), name


load = official_target(FACTS, "Images/", _read_list)
