"""Assembly of a target data set from image rows: order, duplicates, pools, completeness.

The pool labeled_80 holds the 80 % of each target that STARTUP and later work evaluate on. Its lists
come from the user's copy of https://github.com/cpphoo/STARTUP, datasets/split_seed_1 (one CSV file
per list, column `img_path`; see fsbench/data/README.md). It is never mixed with the full pool.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.files import ClassTree, find_class_tree, find_path, match_names, read_csv_columns

SPLITS = "startup_splits"
"""Name of the lists in --data: a folder below a root, or startup_splits=DIR."""


@dataclass(frozen=True)
class StartupLists:
    """STARTUP's two lists of a data set: `<prefix>_labeled_80.csv`, `<prefix>_unlabeled_20.csv`.

    labeled_80_hash: sha-256 over the sorted canonical ids of the official list, one a line;
    full_hash: the same over the ids of both lists, which name every image of the data set.
    suffixed: the ids keep their file suffix (`Class/file`), as opposed to flat image ids.
    """

    prefix: str
    labeled_80_hash: str
    full_hash: str
    suffixed: bool

    def ids(
        self, part: Literal["labeled_80", "unlabeled_20"], splits: Path | None, name: str
    ) -> frozenset[str]:
        """Return the canonical ids of a list. Raise DataError naming a missing folder or file."""
        file = f"{self.prefix}_{part}.csv"
        path = splits and find_path(splits, file)
        if path is None:
            where = f"{splits} lacks {file}" if splits else f"no folder with {file} was given"
            raise DataError(
                f"the {part} pool of {name} needs STARTUP's list: {where}",
                fix=f"get datasets/split_seed_1 of github.com/cpphoo/STARTUP and give it as "
                f"--data {SPLITS}=DIR, or as a folder {SPLITS} below --data",
            )
        names = [value for (value,) in read_csv_columns(path, ["img_path"])]
        return frozenset(names if self.suffixed else (without_suffix(name) for name in names))


def without_suffix(name: str) -> str:
    """Return the image id of a file name: 00000001_000.png -> 00000001_000; ids are unchanged."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and suffix.lower() in {"png", "jpg", "jpeg"} else name


class ImageRow(NamedTuple):
    """One image of a target. Rows sort by (label, canonical id), the order of a TargetDataset."""

    label: int
    canonical_id: str
    path: str


def list_tree_rows(
    folder: Path, facts: DatasetFacts, candidates: Sequence[str]
) -> tuple[list[ImageRow], tuple[str, ...]]:
    """List the images of a tree with one folder per class, and notes on its other files.

    The canonical id is `Class/file`. candidates: places of the tree, see `find_class_tree`. Raises
    DataError if none exists, or if the tree has a folder that is not a class of the data set.
    """
    place = find_class_tree(folder, candidates, facts.classes)
    if place is None:
        raise DataError(
            f"{folder} holds no class folder of {facts.name}, such as {facts.classes[0]}",
            fix=f"expected below it: {facts.layout}",
        )
    tree = ClassTree.read(place)
    names = match_names(tree.images, facts.classes, place)
    if unknown := [name for name in tree.images if name not in names]:
        raise DataError(
            f"{place} holds folders that are no class of {facts.name}: {', '.join(unknown[:5])}",
            fix=f"move them away; its {len(facts.classes)} classes start with {facts.classes[0]}",
        )
    return tree_rows(tree, folder, facts.classes), tree.notes


def tree_rows(tree: ClassTree, folder: Path, classes: Sequence[str]) -> list[ImageRow]:
    """Return the images of a class tree below `folder`; accents in their ids are composed."""
    prefix = tree.root.relative_to(folder)
    return [
        ImageRow(
            label,
            unicodedata.normalize("NFC", f"{name}/{path.partition('/')[2]}"),
            (prefix / path).as_posix(),
        )
        for label, (name, paths) in enumerate(tree.by_class(classes).items())
        for path in paths
    ]


def index_images(paths: Iterable[str]) -> dict[str, str]:
    """Map image ids to relative paths of flat images. Raise DataError for two files of one id."""
    paths_by_id: dict[str, str] = {}
    for path in paths:
        other = paths_by_id.setdefault(without_suffix(Path(path).name), path)
        if other != path:
            raise DataError(
                f"{other} and {path} are both called {without_suffix(Path(path).name)}",
                fix="keep one of the two",
            )
    return paths_by_id


def match_labels(
    table: Path, labels: Sequence[tuple[str, int]], images: dict[str, str]
) -> tuple[list[ImageRow], tuple[str, ...]]:
    """Return the rows of flat images with a label file, and notes on missing images.

    labels: (canonical id, label) from `table`; images: canonical id -> relative path. Label rows
    without a file are skipped and counted in a note: users often have parts of large archives.
    """
    require_listed_once(table, [i for i, _ in labels])
    rows = [ImageRow(label, i, images[i]) for i, label in labels if i in images]
    absent = len(labels) - len(rows)
    note = f"{absent} of {len(labels)} images named in {table.name} are missing"
    return rows, (note,) if absent else ()


def require_listed_once(table: Path, ids: Iterable[str]) -> None:
    """Raise DataError for an image that the label file lists more than once."""
    twice = [i for i, n in Counter(ids).items() if n > 1]
    if twice:
        raise DataError(
            f"{table} lists {', '.join(twice[:5])} more than once",
            fix="fetch the official label file again",
        )


def assemble(
    facts: DatasetFacts,
    folder: Path,
    rows: Sequence[ImageRow],
    *,
    pool: Pool = "full",
    lists: StartupLists | None = None,
    splits: Path | None = None,
    notes: tuple[str, ...] = (),
) -> TargetDataset:
    """Build the data set of a pool; flag it `subset` unless it has exactly the official images.

    Raises DataError if no image is left, or if the list of the pool is missing.
    """
    if pool == "labeled_80":
        if lists is None:
            raise DataError(f"{facts.name} has no pool labeled_80", fix="use @ibm (the full pool)")
        listed_ids = lists.ids(pool, splits, facts.name)
        rows = [row for row in rows if row.canonical_id in listed_ids]
        notes += (f"{len(rows)} of the {len(listed_ids)} images of {pool} are present",)
    rows = sorted(rows)
    if not rows:
        raise DataError(
            f"{folder} holds no image of {facts.name} ({'; '.join((pool, *notes))})",
            fix=f"expected below it: {facts.layout}",
        )
    dataset = TargetDataset(
        name=facts.name,
        facts=facts,
        root=folder,
        paths=tuple(row.path for row in rows),
        canonical_ids=tuple(row.canonical_id for row in rows),
        labels=np.array([row.label for row in rows], dtype=np.int64),
        class_names=facts.classes,
        pool=pool,
        notes=notes,
    )
    official = facts.complete(dataset.class_counts)
    if pool == "labeled_80" and lists is not None:
        official = dataset.images_hash == lists.labeled_80_hash
    return dataset if official else dataset.with_flags("subset")
