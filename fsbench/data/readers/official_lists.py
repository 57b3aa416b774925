"""Targets with official train and test lists.

Both parts form one data set. The part leads the canonical id (`train/001.jpg`, `test/002.jpg`), so
every hash over ids identifies the split as well as the images.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from fsbench.core.errors import UNREADABLE, DataError
from fsbench.data.assembly import ImageRow, Notes, missing_error, require_listed_once
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import find_path
from fsbench.data.readers.base import (
    TargetReader,
    fold_label,
    number_classes,
    read_lines,
    require_path,
)
from fsbench.data.splits import PARTS

ListedImage = tuple[str, str, str]
"""Path below the image folder, class name, and number of the class from 1, "" if not stated."""


class OfficialLists(TargetReader):
    """Images in one folder, and files that state their class and part.

    images: the image folder; base: the folder that an archive unpacks to and that holds all, the
    data set's own by default.
    """

    images: str
    base: str = ""

    def list_rows(self, facts: DatasetFacts, folder: Path) -> tuple[list[ImageRow], Notes]:
        """List the images of both parts that are there; a note counts them if some are missing."""
        base, images = self.find_images(facts, folder)
        listed = [(part, *row) for part in PARTS for row in self.list_part(facts, base, part)]
        require_listed_once(f"an official list in {base}", [name for *_, name in listed])
        rows = [
            ImageRow(label, f"{part}/{name}", (images / name).relative_to(folder).as_posix())
            for part, label, name in listed
            if os.path.lexists(images / name)
        ]
        present = Counter(row.canonical_id.partition("/")[0] for row in rows)
        official = dict(zip(PARTS, facts.split or (), strict=True))
        texts = [f"{present[part]} of {n} {part} images" for part, n in official.items()]
        note = f"{' and '.join(texts)} are present; the lists name {len(listed)}"
        return rows, () if present == official else (note,)

    def find_images(self, facts: DatasetFacts, folder: Path) -> tuple[Path, Path]:
        """Return the folder that holds all, and that of the images."""
        base = find_path(folder, self.base) or folder
        return base, require_path(base, self.images, facts)

    def list_part(self, facts: DatasetFacts, base: Path, part: str) -> list[tuple[int, str]]:
        """Return class ids and paths of the images of a part. Raise DataError for a wrong list."""
        class_ids, listed = number_classes(facts.classes), []
        for name, label, number in self.read_list(facts, base, part):
            class_id = class_ids.get(fold_label(label), -1)
            is_inside = not {"", ".."} & {*re.split(r"[/\\]", name)}
            if class_id < 0 or number not in {"", str(class_id + 1)} or not is_inside:
                raise DataError(
                    f"{base}: the {part} list gives '{name[:200]}' the class {label} {number}: "
                    f"no class of {facts.name}, or outside of its images",
                    fix="fetch the lists again",
                )
            listed.append((class_id, name))
        return listed

    def read_list(self, facts: DatasetFacts, base: Path, part: str) -> Iterator[ListedImage]:
        """Yield the lines of the list of a part. Raise DataError for a wrong file."""
        raise NotImplementedError


class TextLists(OfficialLists):
    """Text files with a line per image.

    train, test: the files of a part, whose lines of one number are joined by a space; line: pattern
    of what results, with the groups `image`, `label` (a class name) and, where files state them,
    `number` (of the class, from 1) and `is_train` (1 or 0); suffix: end of file names.
    """

    train: tuple[str, ...]
    test: tuple[str, ...]
    line: str
    suffix: str = ""

    def read_list(self, facts: DatasetFacts, base: Path, part: str) -> Iterator[ListedImage]:
        files, mark = (self.train, "1") if part == "train" else (self.test, "0")
        paths = [require_path(base, file, facts) for file in files]
        for lines in zip_longest(*map(read_lines, paths), fillvalue=""):
            line = " ".join(lines)
            match = re.fullmatch(self.line, line)
            if match is None:
                lists = ", ".join(map(str, paths))
                raise DataError(f"{lists}: '{line[:200]}' is no official line", fix="fetch again")
            image = match.groupdict(default="")
            if image.get("is_train", mark) == mark:
                yield f"{image['image']}{self.suffix}", image["label"], image.get("number", "")


class DogsLists(OfficialLists):
    """The lists of Stanford Dogs: MATLAB files of paths and of labels from 1."""

    def read_list(self, facts: DatasetFacts, base: Path, part: str) -> Iterator[ListedImage]:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

        table = require_path(base, f"{part}_list.mat", facts)
        try:
            columns = loadmat(table)
            names = [str(name.item()) for name in columns["file_list"].ravel()]
            numbers = [str(int(value)) for value in columns["labels"].ravel()]
            pairs = list(zip(names, numbers, strict=True))
        except (MatReadError, *UNREADABLE) as error:
            raise DataError(f"cannot read {table}: {error}", fix=facts.download) from error
        for name, number in pairs:
            yield name, name.partition("/")[0], number


class Flowers102Lists(OfficialLists):
    """The lists of Flowers-102, as torchvision reads them; it also checks their hashes.

    The validation part is left out, as in the linear probe of SEAL (CVPR 2023, Table 3).
    """

    def read_list(self, facts: DatasetFacts, base: Path, part: str) -> Iterator[ListedImage]:
        from scipy.io.matlab import MatReadError
        from torchvision.datasets import Flowers102

        try:
            dataset = Flowers102(base.parent, split=part, download=False)
        except (MatReadError, *UNREADABLE) as error:
            lists = "the official imagelabels.mat and setid.mat"
            raise missing_error(base, lists, facts) from error
        for label, path in zip(dataset._labels, dataset._image_files, strict=True):
            yield path.name, facts.classes[label], ""
