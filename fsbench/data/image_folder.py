"""Image folders of the user: folder:DIR as a target (like ImageFolder) or a source (train/, val/).

They are flagged `custom`. Classes are the folders in sorted order, with images at any depth.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.tasks import FOLDER, parse_folder, short_name, user_data_name
from fsbench.data import files
from fsbench.data.assembly import ImageRow, Notes, assemble, list_tree_rows
from fsbench.data.base import TargetDataset
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import ClassTree
from fsbench.data.source import SourceListing, locate_image

LAYOUT = "DIR/<class>/*.jpg, one folder per class"
SOURCE_LAYOUT = "DIR/train/<class>/*.jpg, DIR/val/<class>/*.jpg, for a test DIR/test/<class>/*.jpg"
VAL = ("val", "valid", "validation", "test")


def load_folder_target(ref: str) -> TargetDataset:
    """Load folder:DIR as a target. Raise DataError like `read_class_tree`."""
    folder, bits = parse_folder(ref)
    tree = read_class_tree(folder, LAYOUT)
    dataset = assemble_custom(ref, tree.classes, list_tree_rows(tree, folder), LAYOUT, tree.notes)
    return replace(dataset, root=folder, bits=bits)


def list_folder_source(ref: str) -> SourceListing:
    """List DIR/train and DIR/val of folder:DIR as a source. Raise DataError like `read_class_tree`.

    DIR/test is scored once, after training, or validates if there is no DIR/val.
    """
    folder, bits = parse_folder(ref)
    train, test = (files.find_path(folder, part) for part in ("train", "test"))
    val = files.find_first(folder, VAL)
    paths = {"train": train or folder / "train", "val": val or folder / "val"}
    paths |= {"test": test} if test and test != val else {}
    trees: dict[str, ClassTree] = {}
    for part, path in paths.items():
        trees[part] = read_class_tree(path, SOURCE_LAYOUT, trees.get("train"))
    parts = {
        part: [locate_image(label, tree.root / path, bits) for label, path in tree.images]
        for part, tree in trees.items()
    }
    labels = (image.label for image in parts["train"])
    facts = make_custom_facts(short_name(ref), trees["train"].classes, labels, SOURCE_LAYOUT)
    notes = tuple(note for tree in trees.values() for note in tree.notes)
    return SourceListing(facts, parts, frozenset({"custom"}), notes)


def read_class_tree(folder: Path, layout: str, train: ClassTree | None = None) -> ClassTree:
    """List the class folders of the user, in the classes of `train` if it is there.

    Raises DataError for fewer than two, an empty one, splits in their place, and other classes.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder", fix=f"expected: {layout}")
    tree = ClassTree.read(folder, train and train.classes)
    if len(tree.classes) < 2:
        below = "".join(f"; if they are below: {FOLDER}{folder / name}" for name in tree.classes)
        raise DataError(
            f"{folder} has {len(tree.classes)} class folders; at least 2 are needed",
            fix=f"expected: {layout}{below}",
        )
    require_classes((path for _, path in tree.images), folder)
    if train and tree.unknown:
        raise DataError(
            f"{folder} has other classes than {train.root}: {', '.join(tree.unknown[:5])}",
            fix="give both the same class folders",
        )
    filled = {label for label, _ in tree.images}
    if empty := [name for label, name in enumerate(tree.classes) if label not in filled]:
        raise DataError(
            f"{folder} has class folders without an image: {', '.join(empty[:5])}",
            fix="; ".join(["fill or remove them", *tree.notes]),
        )
    return tree


def require_classes(paths: Iterable[str], folder: Path) -> None:
    """Raise DataError if the first folders of the paths, relative to `folder`, look like splits:

    they have folders of the same names, the classes, below them.
    """
    below: dict[str, set[str]] = {}
    for path in {path.rpartition("/")[0] for path in paths}:
        first, *inner = path.split("/")
        below.setdefault(first, set()).update(inner)
    counts = Counter(chain.from_iterable(below.values()))
    repeated = {part for part, n in counts.items() if n > 1}
    if splits := sorted(name for name, parts in below.items() if len(parts & repeated) > 1):
        raise DataError(
            f"{folder} holds {', '.join(splits[:5])}, whose folders repeat the names "
            f"{', '.join(sorted(repeated)[:5])}: these look like splits, not classes",
            fix=f"give one of them: {FOLDER}{folder / splits[0]}, with one folder per class in it",
        )


def assemble_custom(
    ref: str,
    classes: Sequence[str],
    rows: Sequence[ImageRow],
    layout: str,
    notes: Notes,
    **facts: str,
) -> TargetDataset:
    """Build a target of images of the user."""
    labels = (row.label for row in rows)
    user_facts = make_custom_facts(short_name(ref), classes, labels, layout, **facts)
    dataset = assemble(user_facts, Path(), rows, notes=notes)
    return replace(dataset, flags=frozenset({"custom"}), result_name=user_data_name(ref))


def make_custom_facts(
    name: str, classes: Sequence[str], labels: Iterable[int], layout: str, **facts: str
) -> DatasetFacts:
    """Return the FACTS of a data set that fsbench has no card for; labels: of its images."""
    counts = Counter(labels)
    safe = re.sub(r"[^\w.+@=-]", "-", name)[:200]
    return DatasetFacts(
        name=safe,
        title=f"own images ({safe})",
        domain="target",
        classes=tuple(classes),
        images_per_class=tuple(counts[label] for label in range(len(classes))),
        layout=layout,
        **facts,
    )
