"""Assembly of a target data set from image rows: order, duplicates, pools, completeness.

The pool labeled_80 holds the 80 % of each target that STARTUP and later work evaluate on. Its lists
come from the user's copy of https://github.com/cpphoo/STARTUP, datasets/split_seed_1 (one CSV file
per list, column `img_path`; see fsbench/data/README.md). It is never mixed with the full pool.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import ClassTree

ListedImage = tuple[int, str]
"""Class id and id of an image, or class id and path below the image folder, as a list states."""


class ImageRow(NamedTuple):
    """One image of a target. Rows sort by (label, canonical id), the order of a TargetDataset."""

    label: int
    canonical_id: str
    path: str


def list_tree_rows(tree: ClassTree, folder: Path, classes: Sequence[str]) -> list[ImageRow]:
    """Return the images of a class tree below `folder`; accents in their ids are composed."""
    rows = []
    for label, path in tree.labelled(classes):
        canonical_id = f"{classes[label]}/{path.partition('/')[2]}"
        relative = (tree.root / path).relative_to(folder).as_posix()
        rows.append(ImageRow(label, unicodedata.normalize("NFC", canonical_id), relative))
    return rows


def require_listed_once(lists: object, ids: Iterable[str]) -> None:
    """Raise DataError for an image that an official list or label file names more than once."""
    if twice := [i for i, n in Counter(ids).items() if n > 1]:
        raise DataError(
            f"{lists} names {', '.join(twice[:5])} more than once",
            fix="fetch the official file again",
        )


def assemble(
    facts: DatasetFacts,
    folder: Path,
    rows: Sequence[ImageRow],
    *,
    pool: Pool = "full",
    splits: Path | None = None,
    notes: tuple[str, ...] = (),
) -> TargetDataset:
    """Build the data set of a pool; flag it `subset` unless it has exactly the official images.

    STARTUP's lists select the official images where there are more, as in a whole PlantVillage.
    Raises DataError if no image is left, or if the list of the pool is missing.
    """
    if pool == "full" and facts.startup and len(rows) > facts.n_images:
        rows, note = select_official(facts, rows, splits)
        notes += (note,)
    if pool == "labeled_80":
        listed_ids = facts.listed_ids(pool, splits)
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
    if facts.group_pattern:
        dataset = dataset.with_groups(facts.group_of)
    official = facts.complete(dataset.class_counts)
    if pool == "labeled_80" and facts.startup:
        official = dataset.images_hash == facts.startup.labeled_80_hash
    return dataset if official else replace(dataset, flags=frozenset({"subset"}))


def select_official(
    facts: DatasetFacts, rows: Sequence[ImageRow], splits: Path | None
) -> tuple[Sequence[ImageRow], str]:
    """Select the images that either of STARTUP's lists names, and say how many they are."""
    if splits is None:
        many = f"{len(rows)} images, more than the {facts.n_images} official ones"
        return rows, f"{many}; STARTUP's lists select those"
    ids = facts.listed_ids("labeled_80", splits) | facts.listed_ids("unlabeled_20", splits)
    selected = [row for row in rows if row.canonical_id in ids]
    if not selected:
        return rows, f"{len(rows)} images, none with a name of STARTUP's lists"
    return selected, f"{len(selected)} of {len(rows)} images are named by STARTUP's lists"
