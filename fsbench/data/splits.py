"""Train and test images of a target: the official parts, or a split made here, marked `derived`."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.seeding import seed_for
from fsbench.core.specs import Pool
from fsbench.data.assembly import ImageRow, assemble
from fsbench.data.base import TargetDataset
from fsbench.data.files import find_path, is_inside

PARTS = ("train", "test")
UNREADABLE = (
    OSError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    zlib.error,
)
"""What scipy and torchvision raise for lists that are cut, damaged or none."""


class ListedImage(NamedTuple):
    """One image that an official list names: its label and its path below the folder of images."""

    label: int
    name: str


def assemble_official(
    facts: DatasetFacts,
    folder: Path,
    images: Path,
    parts: Sequence[Sequence[ListedImage]],
    pool: Pool = "full",
) -> TargetDataset:
    """The data set of the official lists of train and test; `images` lies below `folder`.

    Named images that are not there are left out, and a note counts them; `subset` unless both parts
    have the official number of images and every class is there. Raises DataError for an image named
    twice or outside of `images`, for no image at all, and for another pool than full.
    """
    named = [(part, each) for part, listed in zip(PARTS, parts, strict=True) for each in listed]
    _require_sound([each.name for _, each in named], facts, folder)
    below = images.relative_to(folder).as_posix()
    rows = [
        ImageRow(each.label, f"{part}/{each.name}", (Path(below) / each.name).as_posix())
        for part, each in named
        if (images / each.name).is_file()
    ]
    found = Counter(row.canonical_id.partition("/")[0] for row in rows)
    counts = tuple(found[part] for part in PARTS)
    dataset = assemble(facts, folder, rows, pool=pool, notes=_notes(facts, counts, len(named)))
    return dataset if counts == facts.split else dataset.with_flags("subset")


def _require_sound(names: Sequence[str], facts: DatasetFacts, folder: Path) -> None:
    lists = f"the official lists of {facts.name} in {folder}"
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(
            f"{lists} name {', '.join(twice[:5])} more than once", fix="fetch the lists again"
        )
    if foreign := [name for name in names if not is_inside(name)]:
        raise DataError(
            f"{lists} name a path outside of the images: {foreign[0][:200]}",
            fix="fetch the lists again",
        )


def _notes(facts: DatasetFacts, counts: tuple[int, ...], named: int) -> tuple[str, ...]:
    if counts == facts.split or facts.split is None:
        return ()
    parts = zip(PARTS, counts, facts.split, strict=True)
    text = " and ".join(f"{n} of {official} {part} images" for part, n, official in parts)
    return (f"{text} are there; the lists name {named}",)


def find_inner_folder(folder: Path, name: str, needs: str, facts: DatasetFacts) -> Path:
    """The folder `name`: this one, or the one in it, holding `needs`. Raises DataError.

    Archives unpack to a folder of their own, whose name loaders such as torchvision's insist on.
    """
    base = find_path(folder, name) or folder
    if base.name != name or find_path(base, needs) is None:
        raise missing_error(folder, f"{name}/{needs}", facts)
    return base


def missing_error(folder: Path, what: str, facts: DatasetFacts) -> DataError:
    return DataError(
        f"{folder} lacks {what}",
        fix=f"expected there: {facts.layout}; get it: {facts.download}",
    )


def read_lines(path: Path) -> list[str]:
    """Lines without outer spaces, empty ones left out. Raises DataError naming the file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}", fix="fetch it again") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


Indices = NDArray[np.int64]


def split_dataset(dataset: TargetDataset) -> tuple[Indices, Indices]:
    """Indices of the train and test images, both sorted: official if there are such, else derived.

    Raises DataError as `derived_split`, and for an official part without an image.
    """
    if dataset.facts.split is None:
        return derive_split(dataset)
    parts = np.array([name.partition("/")[0] for name in dataset.canonical_ids])
    train, test = (np.flatnonzero(parts == part) for part in PARTS)
    if not (train.size and test.size):
        raise DataError(
            f"{dataset.name} has {train.size} train and {test.size} test images, both are needed",
            fix=f"complete it: {dataset.facts.download}",
        )
    return train, test


def derive_split(dataset: TargetDataset) -> tuple[Indices, Indices]:
    """80 % train, 20 % test of every class, both sorted: image indices (N_train,), (N_test,).

    In each class the images with the smallest hash of their canonical id are the test images
    (rounded, at least one), so the split depends on nothing but the ids. Raises DataError for a
    class of a single image.
    """
    train: list[Indices] = []
    test: list[Indices] = []
    for class_id, members in dataset.by_class.items():
        if len(members) < 2:
            raise DataError(
                f"{dataset.name}: class {dataset.class_names[class_id]} has one image; a train and "
                "test split needs two",
                fix="add images to it, or leave the class out",
            )
        order = members[np.argsort(_keys(dataset, members, "split"), kind="stable")]
        n_test = max(1, round(len(members) / 5))
        test.append(order[:n_test])
        train.append(order[n_test:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def hold_out(dataset: TargetDataset, train: Indices, part: float) -> tuple[Indices, Indices]:
    """Places in `train` that are kept and held out, both sorted: `part` of every class of train.

    Chosen as in `derived_split`; a class of one training image gives none. Raises DataError where
    no class has two.
    """
    labels = dataset.labels[train]
    held: list[Indices] = [np.empty(0, np.int64)]
    for class_id in np.unique(labels):
        places = np.flatnonzero(labels == class_id)
        if len(places) > 1:
            n_held = min(len(places) - 1, max(1, round(part * len(places))))
            order = np.argsort(_keys(dataset, train[places], "held-out"), kind="stable")
            held.append(places[order[:n_held]])
    chosen = np.sort(np.concatenate(held))
    if not chosen.size:
        raise DataError(
            f"{dataset.name}: no class has two training images, so none can be held out",
            fix="choose the learning rate on the test images, or add images",
        )
    return np.setdiff1d(np.arange(len(train)), chosen), chosen


def _keys(dataset: TargetDataset, members: Indices, name: str) -> NDArray[np.uint64]:
    return np.array([seed_for(name, dataset.canonical_ids[i]) for i in members], dtype=np.uint64)
