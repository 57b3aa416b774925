"""Targets whose images are named by an id, with tables of their labels."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Frozen, Pool
from fsbench.data.assembly import ImageRow, ListedImage, assemble, require_listed_once
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import (
    find_first,
    list_folders,
    list_images,
    read_csv_columns,
    without_suffix,
)
from fsbench.data.readers.base import fold_label, missing_error, number_classes

MARKS = {"0": 0, "0.0": 0, "1": 1, "1.0": 1}
"""Values of a column per class."""


class Table(Frozen):
    """Columns of a CSV file that is called by one of several names.

    image: column of ids or file names; value: column of a label or group, "" for a column per class
    with a 1 in the one of the image.
    """

    files: tuple[str, ...]
    image: str
    value: str = ""

    def read(self, file: Path, *columns: str) -> list[tuple[str, ...]]:
        """Return the id of every image and columns. Raise DataError for an image listed twice."""
        rows = read_csv_columns(file, [self.image, *columns])
        rows = [(without_suffix(image), *values) for image, *values in rows]
        require_listed_once(file, [row[0] for row in rows])
        return rows


class LabelTables(Frozen):
    """Images in one or several folders; the canonical id of an image is its name without suffix.

    labels, groups: tables, of which the first that is there is read; it may lie one folder deeper.
    image_folders: pattern of names, also one folder deeper; all of the data set's folder is
    searched if none matches. An image has one of the classes, or it is left out: with one of
    other_labels, or with several labels, joined by `|`.
    """

    labels: tuple[Table, ...]
    groups: tuple[Table, ...] = ()
    other_labels: tuple[str, ...] = ()
    image_folders: str

    def load(
        self, facts: DatasetFacts, folder: Path, pool: Pool = "full", splits: Path | None = None
    ) -> TargetDataset:
        labels = find_table(folder, self.labels)
        if labels is None:
            raise missing_error(folder, self.labels[0].files[0], facts)
        file, table = labels
        listed = self._list_labelled(facts, file, table)
        rows, notes = locate_images(folder, self._list_image_folders(folder), file, listed)
        dataset = assemble(facts, folder, rows, pool=pool, splits=splits, notes=notes)
        groups = self._read_groups(folder)
        if groups.keys() >= set(dataset.canonical_ids):
            return dataset.with_groups(groups.__getitem__)
        return dataset

    def _list_labelled(self, facts: DatasetFacts, file: Path, table: Table) -> list[ListedImage]:
        """Return the class ids and ids of the images with exactly one label, a class."""
        if not table.value:
            rows = table.read(file, *facts.classes)
            return [
                (read_mark(values, f"{file}, row of {image}"), image) for image, *values in rows
            ]
        class_ids = number_classes(facts.classes)
        others, listed = {fold_label(label) for label in self.other_labels}, []
        for image, value in table.read(file, table.value):
            labels = {fold_label(label): label for label in value.split("|")}
            if unknown := labels.keys() - class_ids.keys() - others:
                allowed = ", ".join(sorted({*facts.classes, *self.other_labels}))
                raise DataError(
                    f"{file}: {image} has the unknown label '{labels[min(unknown)]}'",
                    fix=f"use the official file; its labels are {allowed}",
                )
            (label, *more) = labels
            if label in class_ids and not more:
                listed.append((class_ids[label], image))
        return listed

    def _list_image_folders(self, folder: Path) -> list[Path]:
        """Return the folders of images; of names that differ in letter case alone the first."""
        for bases in ([folder], list_folders(folder)):
            trees = {
                (base, tree.name.lower()): tree
                for base in bases
                for tree in reversed(list_folders(base))
                if re.fullmatch(self.image_folders, tree.name, re.IGNORECASE)
            }
            if trees:
                return list(trees.values())
        return [folder]

    def _read_groups(self, folder: Path) -> dict[str, str]:
        """Return the group of every image in the first table of groups; none without a table."""
        groups = find_table(folder, self.groups)
        if groups is None:
            return {}
        file, table = groups
        group_by_image = {row[0]: row[1] for row in table.read(file, table.value)}
        if "" in group_by_image.values():
            raise DataError(
                f"{file} has an image without its {table.value}",
                fix="fetch it again, or move it away: only the disjoint track needs it",
            )
        return group_by_image


def find_table(folder: Path, tables: Iterable[Table]) -> tuple[Path, Table] | None:
    for table in tables:
        if file := find_first(folder, table.files, deeper=True):
            return file, table
    return None


def read_mark(values: Sequence[str], where: str) -> int:
    """Return the position of the 1 among zeros. Raise DataError for other values."""
    marks = [MARKS.get(value, len(values)) for value in values]
    if sum(marks) != 1:
        raise DataError(
            f"{where}: {', '.join(values)} are not a 1 among 0", fix="use the official file"
        )
    return marks.index(1)


def locate_images(
    folder: Path, trees: Iterable[Path], table: Path, listed: Sequence[ListedImage]
) -> tuple[list[ImageRow], tuple[str, ...]]:
    """Return the rows of the images of a label file, and notes on missing ones.

    The images lie in `trees` below `folder`, named by their id. Ids without a file are skipped and
    counted in a note: users often have parts of large archives. Raises DataError for two files of
    one id.
    """
    paths: dict[str, str] = {}
    for path in (tree / name for tree in trees for name in list_images(tree)):
        relative, image_id = path.relative_to(folder).as_posix(), without_suffix(path.name)
        if (other := paths.setdefault(image_id, relative)) != relative:
            raise DataError(
                f"{other} and {relative} are both called {image_id}", fix="keep one of the two"
            )
    present = [ImageRow(label, i, paths[i]) for label, i in listed if i in paths]
    absent = len(listed) - len(present)
    note = f"{absent} of {len(listed)} images named in {table.name} are missing"
    return present, (note,) if absent else ()
