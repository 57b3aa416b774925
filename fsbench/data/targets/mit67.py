"""MIT Indoor-67: 67 kinds of rooms, 80 train and 20 test images each, by the official lists."""

from collections.abc import Iterator
from pathlib import Path

from fsbench.data.assembly import ListedImage
from fsbench.data.cards import read_card
from fsbench.data.splits import official_target, read_label, read_lines, require_path

FACTS = read_card("mit67")


def _read_list(folder: Path, part: str) -> Iterator[ListedImage]:
    table = require_path(folder, f"{part.title()}Images.txt", FACTS)
    for line in read_lines(table):
        yield read_label(FACTS, table, line, line.partition("/")[0]), line


load = official_target(FACTS, "Images/", _read_list)
