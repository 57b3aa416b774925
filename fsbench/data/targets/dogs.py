"""Stanford Dogs: 120 breeds of ImageNet, with the official train and test lists.

Labels of the lists count from 1, in the order of the wnids in the folder names.
"""

from collections.abc import Iterator
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.data.splits import UNREADABLE, ListedImage, official_target, require_path


def _read_list(folder: Path, part: str, facts: DatasetFacts) -> Iterator[ListedImage]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    table = require_path(folder, f"{part}_list.mat", facts)
    try:
        columns = loadmat(table)
        names = [str(cell.item()) for cell in columns["file_list"].ravel()]
        labels = [int(value) for value in columns["labels"].ravel()]
        pairs = list(zip(names, labels, strict=True))
    except (MatReadError, *UNREADABLE) as error:
        raise DataError(f"cannot read {table}: {error}", fix=facts.download) from error
    for name, label in pairs:
        yield ListedImage.of(facts, table, name, name.partition("/")[0], label)


FACTS, ARCHIVES, load = official_target("dogs", "Images/", _read_list)
