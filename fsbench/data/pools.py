"""The pool labeled_80: the 80 % of each target that STARTUP and its descendants evaluate on.

The lists come from the user's copy of github.com/cpphoo/STARTUP, datasets/split_seed_1 (one CSV
file each, column `img_path`; protocol.md 1a). They are never mixed with the full pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fsbench.core.errors import DataError
from fsbench.data.files import descend
from fsbench.data.tables import read_columns

SPLITS = "startup_splits"
"""Name of the lists under --data, as a folder or as startup_splits=DIR."""


@dataclass(frozen=True)
class StartupLists:
    """Two lists of one data set: `<prefix>_labeled_80.csv` and `<prefix>_unlabeled_20.csv`.

    labeled_80_hash: sha-256 over the sorted canonical ids of the official list, one a line.
    suffixed: the ids keep their file suffix (`Class/file`), as opposed to flat image ids.
    """

    prefix: str
    labeled_80_hash: str
    suffixed: bool

    def ids(
        self, part: Literal["labeled_80", "unlabeled_20"], splits: Path | None, name: str
    ) -> frozenset[str]:
        """Canonical ids of a list. Raises DataError naming the missing folder or file."""
        file = f"{self.prefix}_{part}.csv"
        path = splits and descend(splits, file)
        if path is None:
            where = f"{splits} lacks {file}" if splits else f"no folder with {file} was given"
            raise DataError(
                f"the {part} pool of {name} needs STARTUP's list: {where}",
                fix=f"get datasets/split_seed_1 of github.com/cpphoo/STARTUP and give it as "
                f"--data {SPLITS}=DIR, or as a folder {SPLITS} below --data",
            )
        names = [value for (value,) in read_columns(path, ["img_path"])]
        return frozenset(names if self.suffixed else (without_suffix(name) for name in names))


def without_suffix(name: str) -> str:
    """An image id from a file name: 00000001_000.png -> 00000001_000; ids stay as they are."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and suffix.lower() in {"png", "jpg", "jpeg"} else name
