"""CUB-200-2011: 200 bird species, with the official train and test split.

Image numbers and labels count from 1; train_test_split.txt says 1 for train.
"""

from collections.abc import Iterator
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.data.assembly import ListedImage
from fsbench.data.cards import read_card
from fsbench.data.splits import official_target, read_label, read_lines

FACTS = read_card("cub200")
TABLES = ("images.txt", "image_class_labels.txt", "train_test_split.txt")
"""One line per image: its number, then its path, its label, or 1 for train."""


def _read_list(base: Path, part: str) -> Iterator[ListedImage]:
    paths, labels, trained = (_read_table(base / name) for name in TABLES)
    if not paths.keys() == labels.keys() == trained.keys():
        raise DataError(
            f"{', '.join(TABLES)} in {base} name different images", fix="fetch them again"
        )
    if other := set(trained.values()) - {"0", "1"}:
        raise DataError(
            f"{base / TABLES[2]} says {min(other)[:50]}, neither 0 nor 1", fix="fetch it again"
        )
    for number, path in paths.items():
        if (trained[number] == "1") == (part == "train"):
            name = path.partition("/")[0]
            yield read_label(FACTS, base / TABLES[1], path, name, labels[number]), path


def _read_table(path: Path) -> dict[str, str]:
    """Return the second column of a table by image number."""
    rows = [line.split(maxsplit=1) for line in read_lines(path)]
    if any(len(row) != 2 for row in rows):
        raise DataError(f"{path} has a line without two fields", fix="fetch it again")
    if len({row[0] for row in rows}) != len(rows):
        raise DataError(f"{path} lists an image number more than once", fix="fetch it again")
    return {row[0]: row[1] for row in rows}


load = official_target(FACTS, "images", _read_list, base="CUB_200_2011")
