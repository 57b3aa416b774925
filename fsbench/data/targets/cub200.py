"""CUB-200-2011: 200 bird species, with the official train and test split.

Image numbers and labels count from 1; train_test_split.txt says 1 for train.
"""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.cards import read_card
from fsbench.data.splits import ListedImage, assemble_official, find_inner_folder, read_lines

BASE = "CUB_200_2011"
TABLES = ("images.txt", "image_class_labels.txt", "train_test_split.txt")
"""One line per image: its number, then its path, its label, or 1 for train."""


CARD = read_card("cub200")
FACTS, ARCHIVES = CARD.facts, CARD.archives
CLASSES = FACTS.classes


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load both parts below `folder`. Raises DataError for missing and for other files."""
    base = find_inner_folder(folder, BASE, "images", FACTS)
    paths, labels, trained = (_table(base / name) for name in TABLES)
    if not paths.keys() == labels.keys() == trained.keys():
        raise DataError(
            f"{', '.join(TABLES)} in {base} name different images", fix="fetch them again"
        )
    if other := set(trained.values()) - {"0", "1"}:
        raise DataError(
            f"{base / TABLES[2]} says {min(other)[:50]}, neither 0 nor 1", fix="fetch it again"
        )
    listed = {
        number: ListedImage(_label(base, path, labels[number]), path)
        for number, path in paths.items()
    }
    parts = [[listed[n] for n, value in trained.items() if value == flag] for flag in ("1", "0")]
    return assemble_official(FACTS, folder, base / "images", parts, pool)


def _table(path: Path) -> dict[str, str]:
    """Return the second column of a table by image number."""
    rows = [line.split(maxsplit=1) for line in read_lines(path)]
    if any(len(row) != 2 for row in rows):
        raise DataError(f"{path} has a line without two fields", fix="fetch it again")
    if len({row[0] for row in rows}) != len(rows):
        raise DataError(f"{path} lists an image number more than once", fix="fetch it again")
    return {row[0]: row[1] for row in rows}


def _label(base: Path, path: str, number: str) -> int:
    """Return the class id of an image; its folder name must agree."""
    name = path.partition("/")[0]
    if name not in CLASSES or str(CLASSES.index(name) + 1) != number:
        raise DataError(
            f"{base / TABLES[1]}: the label of {path} is not that of its folder",
            fix="fetch it again",
        )
    return CLASSES.index(name)
