"""Train and test splits of a target: official lists, or a derived split of ours.

With official lists both parts form one data set. The part leads the canonical id (`train/001.jpg`,
`test/002.jpg`), so every hash over ids identifies the split as well as the images.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.assembly import ImageRow, ListedImage, assemble, require_listed_once
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import find_path, is_inside, require_content
from fsbench.data.source import select_by_hash

Indices = NDArray[np.int64]

PARTS = ("train", "test")
UNREADABLE = (
    *(OSError, RuntimeError, ValueError, LookupError, TypeError, AttributeError),
    *(ArithmeticError, AssertionError, EOFError, MemoryError, zlib.error),
)
"""Exceptions of scipy and torchvision for truncated, damaged or foreign files."""


def read_label(
    facts: DatasetFacts, table: Path, name: str, label: str, number: str | int = ""
) -> int:
    """Return the id of a class that a list states by name, and by number from 1 where it has one.

    Raises DataError naming the list for an unknown class, or if name and number disagree.
    """
    if label not in facts.classes:
        raise DataError(f"{table} names no class in '{name}'", fix="use the official file")
    class_id = facts.classes.index(label)
    if str(number) not in {"", str(class_id + 1)}:
        raise DataError(
            f"{table}: the label of {name} is not that of its name", fix="fetch it again"
        )
    return class_id


def official_target(
    facts: DatasetFacts,
    images: str,
    read_list: Callable[[Path, str], Iterable[ListedImage]],
    base: str = "",
) -> Callable[..., TargetDataset]:
    """Return the `load` of a target with official train and test lists.

    images: the image folder; read_list: (folder, part) -> its images, or DataError; base: the
    folder that an archive unpacks to and that holds all, the data set's own by default.
    """

    def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
        """Load both parts below `folder`. Raises DataError for missing and for other files."""
        root = find_inner_folder(folder, base, images, facts) if base else folder
        tree = require_path(root, images, facts)
        parts = [list(read_list(root, part)) for part in PARTS]
        return assemble_official(facts, folder, tree, parts, pool)

    return load


def assemble_official(
    facts: DatasetFacts,
    folder: Path,
    images: Path,
    parts: Sequence[Sequence[ListedImage]],
    pool: Pool = "full",
) -> TargetDataset:
    """Build the data set of the official train and test lists; `images` is below `folder`.

    Missing images are skipped and counted in a note; the data set is flagged `subset` unless both
    parts have the official number of images and every class is present. Raises DataError for an
    image listed twice or outside `images`, for no image at all, and for a pool other than full.
    """
    named = [(p, *image) for p, listed in zip(PARTS, parts, strict=True) for image in listed]
    lists, names = f"an official list of {facts.name} in {folder}", [name for *_, name in named]
    require_listed_once(lists, names)
    if foreign := [name for name in names if not is_inside(name)]:
        raise DataError(
            f"{lists} names a path outside of the images: {foreign[0][:200]}",
            fix="fetch the lists again",
        )
    below = images.relative_to(folder)
    rows = [
        ImageRow(label, f"{part}/{name}", (below / name).as_posix())
        for part, label, name in named
        if (images / name).is_file() or (images / name).is_symlink()
    ]
    by_part = Counter(row.canonical_id.partition("/")[0] for row in rows)
    counts = tuple(by_part[part] for part in PARTS)
    if counts == facts.split:
        return assemble(facts, folder, rows, pool=pool)
    parts_present = zip(PARTS, counts, facts.split or counts, strict=True)
    text = " and ".join(f"{n} of {official} {part} images" for part, n, official in parts_present)
    note = f"{text} are present; the lists name {len(named)}"
    dataset = assemble(facts, folder, rows, pool=pool, notes=(note,))
    return replace(dataset, flags=frozenset({"subset"}))


def find_inner_folder(folder: Path, name: str, needs: str, facts: DatasetFacts) -> Path:
    """Return the folder `name` that contains `needs`: this one or one in it. Raise DataError.

    Archives unpack to a folder whose name loaders such as torchvision's require.
    """
    base = find_path(folder, name) or folder
    if base.name != name or find_path(base, needs) is None:
        raise missing_error(folder, f"{name}/{needs}", facts)
    return base


def require_path(folder: Path, name: str, facts: DatasetFacts) -> Path:
    """Return the file or folder of this name. Raise DataError if it is missing or a pointer."""
    path = find_path(folder, name)
    if path is None:
        raise missing_error(folder, name, facts)
    require_content(path)
    return path


def missing_error(folder: Path, what: str, facts: DatasetFacts) -> DataError:
    return DataError(
        f"{folder} lacks {what}", fix=f"layout: {facts.layout}; download: {facts.download}"
    )


def read_lines(path: Path) -> list[str]:
    """Read the non-empty lines, stripped of outer spaces. Raise DataError naming the file."""
    require_content(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}", fix="fetch it again") from error
    return [line.strip() for line in text.splitlines() if line.strip()]


def split_dataset(dataset: TargetDataset) -> tuple[Indices, Indices]:
    """Return the sorted indices of the train and test images: the official split, else derived.

    Raises DataError like `derive_split`, and for an official part without an image.
    """
    if dataset.facts.split is None:
        return derive_split(dataset)
    parts = np.array([name.partition("/")[0] for name in dataset.canonical_ids])
    train, test = (np.flatnonzero(parts == part) for part in PARTS)
    if not (train.size and test.size):
        raise DataError(
            f"{dataset.name} has {train.size} train and {test.size} test images; both are needed",
            fix=f"complete it: {dataset.facts.download}",
        )
    return train, test


def derive_split(dataset: TargetDataset) -> tuple[Indices, Indices]:
    """Split every class into 80 % train and 20 % test: sorted indices (N_train,), (N_test,).

    The test images of a class are those with the smallest hash of their canonical id (rounded, at
    least one), so the split depends only on the ids. Raises DataError for a class with one image.
    """
    for class_id, members in dataset.by_class.items():
        if len(members) < 2:
            raise DataError(
                f"{dataset.name}: class {dataset.class_names[class_id]} has one image; a train and "
                "test split needs two",
                fix="add images to it, or leave the class out",
            )
    return _select(dataset, np.arange(len(dataset)), 0.2, "split")


def hold_out(dataset: TargetDataset, train: Indices, part: float) -> tuple[Indices, Indices]:
    """Hold out a fraction `part` of every class: sorted positions in `train` (rest, held out).

    Images are chosen as in `derive_split`; a class with one training image keeps it. Raises
    DataError if no class has two.
    """
    rest, chosen = _select(dataset, train, part, "held-out")
    if not chosen.size:
        raise DataError(
            f"{dataset.name}: no class has two training images, so none can be held out",
            fix="choose the learning rate on the test images, or add images",
        )
    return rest, chosen


def _select(
    dataset: TargetDataset, members: Indices, part: float, stream: str
) -> tuple[Indices, Indices]:
    """Return sorted positions in `members`: the rest, and `part` of every class of two or more."""
    labels = dataset.labels[members]
    several = np.flatnonzero(np.bincount(labels)[labels] > 1)
    ids = [dataset.canonical_ids[i] for i in members[several]]
    chosen = several[select_by_hash(labels[several].tolist(), ids, part, stream)]
    return np.setdiff1d(np.arange(len(members)), chosen), chosen
