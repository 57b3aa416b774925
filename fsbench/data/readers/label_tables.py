"""Targets whose images are named by an id, with tables of their labels."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Frozen
from fsbench.data import files
from fsbench.data.assembly import ImageRow, Notes, missing_error, require_listed_once
from fsbench.data.cards import DatasetFacts
from fsbench.data.readers.base import TargetReader, fold_label, number_classes

MARKS = {"0": 0, "0.0": 0, "1": 1, "1.0": 1}
"""Values of a column per class."""


class Table(Frozen):
    """Columns of a CSV file that is called by one of several names.

    image: of ids or file names; value: of a label or group, "" for one per class, of zeros and a 1.
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
        """List the images of the classes; a note counts missing files of large archives.

        Raises DataError for a missing or wrong table, and for two files of one id.
        """
        file, label_by_image = find_table(folder, self.labels, facts.classes)
        if file is None:
            raise missing_error(folder, self.labels[0].files[0], facts)
        group_file, group_by_image = find_table(folder, self.groups)
        if "" in group_by_image.values():
            raise DataError(
                f"{group_file} has an image without its group",
                fix="fetch it again, or move it away: only the disjoint track needs it",
            )
        class_ids, listed = number_classes(facts.classes), []
        allowed = {fold_label(label) for label in self.other_labels} | class_ids.keys()
        for image, text in label_by_image.items():
            labels = {fold_label(label): label for label in text.split("|")}
            if unknown := labels.keys() - allowed:
                raise DataError(
                    f"{file}: {image} has the unknown label '{labels[min(unknown)]}'",
                    fix="use the official file; its labels are "
                    f"{', '.join(sorted({*facts.classes, *self.other_labels}))}",
                )
            (label, *more) = labels
            if label in class_ids and not more:
                listed.append((class_ids[label], image))
        paths = self._locate_images(folder)
        rows = [
            ImageRow(label, image, paths[image], group_by_image.get(image, ""))
            for label, image in listed
            if image in paths
        ]
        absent = len(listed) - len(rows)
        note = f"{absent} of {len(listed)} images named in {file.name} are missing"
        return rows, (note,) if absent else ()

    def _locate_images(self, folder: Path) -> dict[str, str]:
        """Return the path of every image below `folder` by id."""
        pattern = re.compile(self.image_folders, re.IGNORECASE)
        for bases in files.list_levels(folder, 1):
            below = [tree for base in bases for tree in files.list_folders(base)]
            # Kaggle's copy of ISIC has each folder twice, in two letter cases.
            trees = {str(t).lower(): t for t in below if pattern.fullmatch(t.name)}
            if trees:
                break
        paths: dict[str, str] = {}
        for tree in trees.values() or [folder]:
            for name in files.list_images(tree):
                path = (tree / name).relative_to(folder).as_posix()
                image = files.without_suffix(Path(name).name)
                if (other := paths.setdefault(image, path)) != path:
                    raise DataError(
                        f"{other} and {path} are both called {image}", fix="keep one of the two"
                    )
        return paths


def find_table(
    folder: Path, tables: Iterable[Table], classes: Sequence[str] = ()
) -> tuple[Path | None, dict[str, str]]:
    """Return the first table that is there, and the value of every image; None without a table.

    classes: columns of a table with one per class. Raises DataError for a wrong row.
    """
    for table in tables:
        if file := files.find_first(folder, table.files, depth=1):
            columns = [table.value] if table.value else list(classes)
            rows = files.read_csv_columns(file, [table.image, *columns])
            images = [files.without_suffix(row[0]) for row in rows]
            require_listed_once(file, images)
            values = [row[1] if table.value else read_mark(file, row, classes) for row in rows]
            return file, dict(zip(images, values, strict=True))
    return None, {}


def read_mark(file: Path, row: Sequence[str], classes: Sequence[str]) -> str:
    image, *values = row
    marks = [MARKS.get(value, len(values)) for value in values]
    if sum(marks) != 1:
        raise DataError(
            f"{file}, row of {image}: {', '.join(values)} are not a 1 among 0",
            fix="use the official file",
        )
    return classes[marks.index(1)]
