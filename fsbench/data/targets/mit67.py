"""MIT Indoor-67: 67 kinds of rooms, 80 train and 20 test images each, by the official lists."""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.cards import read_card
from fsbench.data.splits import ListedImage, assemble_official, read_lines, require_path

LISTS = ("TrainImages.txt", "TestImages.txt")

CARD = read_card("mit67")
FACTS, ARCHIVES = CARD.facts, CARD.archives


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load the listed images below `folder`. Raises DataError for missing files or classes."""
    images = require_path(folder, "Images/", FACTS)
    parts = [_part(folder, name) for name in LISTS]
    return assemble_official(FACTS, folder, images, parts, pool)


def _part(folder: Path, name: str) -> list[ListedImage]:
    table = require_path(folder, name, FACTS)
    lines = read_lines(table)
    unknown = [line for line in lines if line.partition("/")[0] not in FACTS.classes]
    if unknown:
        raise DataError(f"{table} names no class in '{unknown[0]}'", fix="use the official file")
    return [ListedImage(FACTS.classes.index(line.partition("/")[0]), line) for line in lines]
