"""Assembly of a target data set from image rows: order, pools, groups, completeness.

The pool labeled_80 holds the 80 % of each target that STARTUP and later work evaluate on. Its lists
are those of https://github.com/cpphoo/STARTUP, datasets/split_seed_1 (fsbench/data/README.md).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

import numpy as np

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.base import Groups, TargetDataset, hash_lines
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import ClassTree

Notes = tuple[str, ...]


class ImageRow(NamedTuple):
    """One image of a target. Rows sort by (label, canonical id), the order of a TargetDataset.

    group: name of the images that show the same thing, "" if unknown.
    """

    label: int
    canonical_id: str
    path: str
    group: str = ""


def list_tree_rows(tree: ClassTree, folder: Path) -> list[ImageRow]:
    """Return the images of a class tree below `folder`; accents in their ids are composed."""
    below, rows = tree.root.relative_to(folder), []
    for label, path in tree.images:
        image = normalize("NFC", f"{tree.classes[label]}/{path.partition('/')[2]}")
        rows.append(ImageRow(label, image, (below / path).as_posix()))
    return rows


def require_listed_once(lists: object, ids: Iterable[str]) -> None:
    """Raise DataError for an image that an official list or label file names more than once."""
    if twice := [i for i, n in Counter(ids).items() if n > 1]:
        raise DataError(
            f"{lists} names {', '.join(twice[:5])} more than once",
            fix="fetch the official file again",
        )


def missing_error(folder: Path, what: str, facts: DatasetFacts) -> DataError:
    return DataError(
        f"{folder} lacks {what}", fix=f"layout: {facts.layout}; download: {facts.download}"
    )


def assemble(
    facts: DatasetFacts,
    folder: Path,
    rows: Sequence[ImageRow],
    *,
    pool: Pool = "full",
    splits: Path | None = None,
    notes: Notes = (),
) -> TargetDataset:
    """Build the data set of a pool; flag it `subset` unless it has exactly the official images.

    STARTUP's lists select the official images of more. Raises DataError if no image is left.
    """
    if pool == "labeled_80":
        listed_ids = facts.listed_ids(pool, splits)
        rows = [row for row in rows if row.canonical_id in listed_ids]
        notes += (f"{len(rows)} of the {len(listed_ids)} images of {pool} are present",)
    elif facts.startup and len(rows) > facts.n_images:
        rows, note = select_official(facts, rows, splits)
        notes += (note,)
    rows = sorted(rows)
    if not rows:
        raise missing_error(folder, f"images of {facts.name} ({'; '.join((pool, *notes))})", facts)
    ids = [row.canonical_id for row in rows]
    labels = np.array([row.label for row in rows], np.int64)
    groups = [
        facts.group_of(row.canonical_id) if facts.group_pattern else row.group for row in rows
    ]
    parts = Counter(image.partition("/")[0] for image in ids)
    official = facts.complete(Counter(labels.tolist()))
    official &= facts.split in (None, (parts["train"], parts["test"]))
    if pool == "labeled_80" and facts.startup:
        official = hash_lines(sorted(ids)) == facts.startup.labeled_80_hash
    return TargetDataset(
        name=facts.name,
        facts=facts,
        root=folder,
        paths=tuple(row.path for row in rows),
        canonical_ids=tuple(ids),
        labels=labels,
        class_names=facts.classes,
        pool=pool,
        flags=frozenset() if official else frozenset({"subset"}),
        notes=notes,
        groups=Groups.of(labels, groups) if all(groups) else None,
    )


def select_official(
    facts: DatasetFacts, rows: Sequence[ImageRow], splits: Path | None
) -> tuple[Sequence[ImageRow], str]:
    """Select the images that either of STARTUP's lists names, all if there are none; and a note."""
    parts = ("labeled_80", "unlabeled_20") if splits else ()
    ids = {image for part in parts for image in facts.listed_ids(part, splits)}
    selected = [row for row in rows if row.canonical_id in ids]
    if selected:
        return selected, f"{len(selected)} of {len(rows)} images are named by STARTUP's lists"
    note = f"{len(rows)} images, more than the {facts.n_images} official ones"
    return rows, f"{note}, which are those that STARTUP's lists name"
