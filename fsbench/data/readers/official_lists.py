"""Targets with official train and test lists.

Both parts form one data set. The part leads the canonical id (`train/001.jpg`, `test/002.jpg`), so
every hash over ids identifies the split as well as the images.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Frozen, Pool
from fsbench.data.assembly import ImageRow, ListedImage, assemble, require_listed_once
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import find_path, is_inside
from fsbench.data.readers.base import (
    UNREADABLE,
    fold_label,
    missing_error,
    number_classes,
    read_lines,
    require_path,
)
from fsbench.data.splits import PARTS


class OfficialLists(Frozen):
    """Images in one folder, and files that state their class and part.

    images: the image folder; base: the folder that an archive unpacks to and that holds all, the
    data set's own by default.
    """

    images: str
    base: str = ""

    def load(
        self, facts: DatasetFacts, folder: Path, pool: Pool = "full", splits: Path | None = None
    ) -> TargetDataset:
        """Load both parts. Missing images are counted in a note.

        The data set is flagged `subset` unless both parts have the official number of images and
        every class is present. Raises DataError for an image listed twice or outside `images`, for
        no image at all, and for a pool other than full.
        """
        base, images = self.find_images(facts, folder)
        listed = [(part, *row) for part in PARTS for row in self.read_list(facts, base, part)]
        lists = f"an official list of {facts.name} in {folder}"
        require_listed_once(lists, [name for *_, name in listed])
        if foreign := [name for *_, name in listed if not is_inside(name)]:
            raise DataError(
                f"{lists} names a path outside of the images: {foreign[0][:200]}",
                fix="fetch the lists again",
            )
        below = images.relative_to(folder)
        rows = [
            ImageRow(label, f"{part}/{name}", (below / name).as_posix())
            for part, label, name in listed
            if (images / name).is_file() or (images / name).is_symlink()
        ]
        present = Counter(row.canonical_id.partition("/")[0] for row in rows)
        official = dict(zip(PARTS, facts.split or (), strict=True))
        if present == official:
            return assemble(facts, folder, rows, pool=pool)
        texts = [f"{present[part]} of {n} {part} images" for part, n in official.items()]
        note = f"{' and '.join(texts)} are present; the lists name {len(listed)}"
        dataset = assemble(facts, folder, rows, pool=pool, notes=(note,))
        return replace(dataset, flags=frozenset({"subset"}))

    def find_images(self, facts: DatasetFacts, folder: Path) -> tuple[Path, Path]:
        """Return the folder that holds all, and that of the images."""
        base = find_path(folder, self.base) or folder
        return base, require_path(base, self.images, facts)

    def read_list(self, facts: DatasetFacts, base: Path, part: str) -> Iterable[ListedImage]:
        """Return class ids and paths of the images of a part. Raise DataError for a wrong list."""
        raise NotImplementedError


class TextLists(OfficialLists):
    """Text files with a line per image.

    train, test: the files of a part, whose lines of one number are joined by a space; line: pattern
    of what results, with the groups `image`, `label` (a class name) and, where files state them,
    `number` (of the class, from 1) and `is_train` (1 or 0); suffix: end of the file names that
    lines leave out.
    """

    train: tuple[str, ...]
    test: tuple[str, ...]
    line: str
    suffix: str = ""

    def read_list(self, facts: DatasetFacts, base: Path, part: str) -> Iterator[ListedImage]:
        files, mark = (self.train, "1") if part == "train" else (self.test, "0")
        paths = [require_path(base, file, facts) for file in files]
        lists = ", ".join(map(str, paths))
        for lines in zip_longest(*map(read_lines, paths), fillvalue=""):
            line = " ".join(lines)
            match = re.fullmatch(self.line, line)
            if match is None:
                raise DataError(f"{lists}: '{line[:200]}' is no official line", fix="fetch again")
            image = match.groupdict()
            if image.get("is_train", mark) == mark:
                name = f"{image['image']}{self.suffix}"
                yield read_label(facts, lists, name, image["label"], image.get("number", "")), name


class DogsLists(OfficialLists):
    """The lists of Stanford Dogs: MATLAB files of paths and of labels from 1."""

    def read_list(self, facts: DatasetFacts, base: Path, part: str) -> Iterator[ListedImage]:
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

        table = require_path(base, f"{part}_list.mat", facts)
        try:
            columns = loadmat(table)
            names = [str(name.item()) for name in columns["file_list"].ravel()]
            numbers = [int(value) for value in columns["labels"].ravel()]
            pairs = list(zip(names, numbers, strict=True))
        except (MatReadError, *UNREADABLE) as error:
            raise DataError(f"cannot read {table}: {error}", fix=facts.download) from error
        for name, number in pairs:
            yield read_label(facts, table, name, name.partition("/")[0], number), name


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
            yield label, path.name


def read_label(
    facts: DatasetFacts, table: object, name: str, label: str, number: str | int = ""
) -> int:
    """Return the id of a class that a list states by name, and by number from 1 where it has one.

    Raises DataError naming the list for an unknown class, or if name and number disagree.
    """
    class_id = number_classes(facts.classes).get(fold_label(label))
    if class_id is None:
        raise DataError(f"{table} names no class in '{name}'", fix="use the official file")
    if str(number) not in {"", str(class_id + 1)}:
        raise DataError(
            f"{table}: the label of {name} is not that of its name", fix="fetch it again"
        )
    return class_id
