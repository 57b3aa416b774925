"""Targets whose images are named by an id, with tables of their labels."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Frozen
from fsbench.data.assembly import ImageRow, Notes, require_listed_once
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import (
    find_first,
    list_folders,
    list_images,
    list_levels,
    read_csv_columns,
    without_suffix,
)
from fsbench.data.readers.base import TargetReader, fold_label, missing_error, number_classes

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


class LabelTables(TargetReader):
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

    def list_rows(self, facts: DatasetFacts, folder: Path) -> tuple[list[ImageRow], Notes]:
        """List the images of the classes that are there; a note counts the others.

        Users often have parts of large archives. Raises DataError for a missing or wrong table, and
        for two files of one id.
        """
        file, values_by_image = find_table(folder, self.labels, facts.classes)
        if file is None:
            raise missing_error(folder, self.labels[0].files[0], facts)
        group_file, group_by_image = find_table(folder, self.groups, ())
        if ("",) in group_by_image.values():
            raise DataError(
                f"{group_file} has an image without its group",
                fix="fetch it again, or move it away: only the disjoint track needs it",
            )
        listed = self._read_classes(facts, file, values_by_image)
        paths = self._locate_images(folder)
        rows = [
            ImageRow(label, image, paths[image], *group_by_image.get(image, ()))
            for image, label in listed
            if image in paths
        ]
        absent = len(listed) - len(rows)
        note = f"{absent} of {len(listed)} images named in {file.name} are missing"
        return rows, (note,) if absent else ()

    def _read_classes(
        self, facts: DatasetFacts, file: Path, values_by_image: dict[str, tuple[str, ...]]
    ) -> list[tuple[str, int]]:
        """Return ids and class ids of the images with exactly one label, a class."""
        class_ids = number_classes(facts.classes)
        allowed, listed = {fold_label(label) for label in self.other_labels} | class_ids.keys(), []
        for image, values in values_by_image.items():
            if len(values) > 1:
                listed.append((image, read_mark(values, f"{file}, row of {image}")))
                continue
            labels = {fold_label(label): label for label in values[0].split("|")}
            if unknown := labels.keys() - allowed:
                raise DataError(
                    f"{file}: {image} has the unknown label '{labels[min(unknown)]}'",
                    fix="use the official file; its labels are "
                    f"{', '.join(sorted({*facts.classes, *self.other_labels}))}",
                )
            (label, *more) = labels
            if label in class_ids and not more:
                listed.append((image, class_ids[label]))
        return listed

    def _locate_images(self, folder: Path) -> dict[str, str]:
        """Return the path of every image below `folder` by id.

        Of image folders whose names differ in letter case alone the first is searched.
        """
        for bases in list_levels(folder, 1):
            trees = {
                (base, tree.name.lower()): tree
                for base in bases
                for tree in reversed(list_folders(base))
                if re.fullmatch(self.image_folders, tree.name, re.IGNORECASE)
            }
            if trees:
                break
        paths: dict[str, str] = {}
        for tree in trees.values() or [folder]:
            for name in list_images(tree):
                path, image = (
                    (tree / name).relative_to(folder).as_posix(),
                    without_suffix(Path(name).name),
                )
                if (other := paths.setdefault(image, path)) != path:
                    raise DataError(
                        f"{other} and {path} are both called {image}", fix="keep one of the two"
                    )
        return paths


def find_table(
    folder: Path, tables: Iterable[Table], classes: Sequence[str]
) -> tuple[Path | None, dict[str, tuple[str, ...]]]:
    """Return the first table that is there, and the values of every image; None without a table.

    classes: columns of a table with a column per class. Raises DataError for an image listed twice.
    """
    for table in tables:
        if file := find_first(folder, table.files, depth=1):
            rows = read_csv_columns(
                file, [table.image, *([table.value] if table.value else classes)]
            )
            images = [without_suffix(row[0]) for row in rows]
            require_listed_once(file, images)
            return file, {image: row[1:] for image, row in zip(images, rows, strict=True)}
    return None, {}


def read_mark(values: Sequence[str], where: str) -> int:
    """Return the position of the 1 among zeros. Raise DataError for other values."""
    marks = [MARKS.get(value, len(values)) for value in values]
    if sum(marks) != 1:
        raise DataError(
            f"{where}: {', '.join(values)} are not a 1 among 0", fix="use the official file"
        )
    return marks.index(1)
