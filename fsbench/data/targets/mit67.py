"""MIT Indoor-67: 67 kinds of rooms, 80 train and 20 test images each, by the official lists."""

from collections.abc import Iterator
from pathlib import Path

from fsbench.core.schema import DatasetFacts
from fsbench.data.splits import ListedImage, official_target, read_lines, require_path


def _read_list(folder: Path, part: str, facts: DatasetFacts) -> Iterator[ListedImage]:
    table = require_path(folder, f"{part.title()}Images.txt", facts)
    for line in read_lines(table):
        yield ListedImage.of(facts, table, line, line.partition("/")[0])


FACTS, ARCHIVES, load = official_target("mit67", "Images/", _read_list)
