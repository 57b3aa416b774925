"""Image folders of the user: folder:DIR as a target (like ImageFolder) or a source (train/, val/).

They are flagged `custom`. Classes are the folders in sorted order, with images at any depth.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import Flag
from fsbench.core.tasks import FOLDER, short_name, split_folder, user_data_name
from fsbench.data import files
from fsbench.data.assembly import assemble, list_tree_rows
from fsbench.data.base import TargetDataset, hash_lines
from fsbench.data.cards import DatasetFacts
from fsbench.data.files import ClassTree, match_names, read_name
from fsbench.data.images import open_rgb
from fsbench.data.source import SourceImage, SourceListing

LAYOUT = "DIR/<class>/*.jpg, one folder per class"
SOURCE_LAYOUT = (
    "DIR/train/<class>/*.jpg, DIR/val/<class>/*.jpg and, for a test, DIR/test/<class>/*.jpg"
)
VAL = ("val", "valid", "validation", "test")
SPLIT = re.compile(
    r"(train|test|val|valid|dev|eval|extra|holdout|unlabell?ed|fold|split)(ing|ation|uation)?"
    r"[\W_]*(set|data)?\d*"
)
"""Usual names of splits, in lower case."""


def load_folder_target(ref: str) -> TargetDataset:
    """Load folder:DIR as a target.

    Raises DataError for fewer than two classes, for an empty one, and for splits in their place.
    """
    folder, bits = split_folder(ref)
    tree = read_class_tree(folder, LAYOUT)
    names = sorted({read_name(name) for name in tree.images})
    rows = list_tree_rows(tree, folder, names)
    facts = make_custom_facts(short_name(ref), names, (row.label for row in rows), LAYOUT)
    dataset = assemble(facts, folder, rows, notes=(*tree.notes, *note_case(names)))
    flags, name = frozenset[Flag]({"custom"}), user_data_name(ref)
    return replace(dataset, flags=flags, result_name=name, bits=bits)


def list_folder_source(ref: str) -> SourceListing:
    """List folder:DIR with DIR/train/<class>/ and DIR/val/<class>/ as a source.

    DIR/test/<class>/ is scored once, after training, or validates if there is no DIR/val. Raises
    DataError like load_folder_target, and if the parts have other classes.
    """
    folder, bits = split_folder(ref)
    train = files.find_first(folder, ("train",)) or folder / "train"
    val = files.find_first(folder, VAL) or folder / "val"
    test = files.find_first(folder, ("test",))
    parts = [train, val, *([test] if test and test != val else [])]
    trees = [read_class_tree(part, SOURCE_LAYOUT) for part in parts]
    names = sorted({read_name(name) for name in trees[0].images})
    for tree in trees:
        matches = match_names(tree.images, names, tree.root)
        if other := {*names} - {*matches.values()} | tree.images.keys() - matches:
            raise DataError(
                f"{folder}: {train.name} and {tree.root.name} have other classes "
                f"({', '.join(sorted(other)[:5])})",
                fix="give both the same class folders",
            )
    listed = [list_tree_images(tree, names, bits) for tree in trees]
    samples, stamps = [samples for samples, _ in listed], [stamp for _, stamp in listed]
    labels = (sample.label for sample in samples[0])
    return SourceListing(
        make_custom_facts(short_name(ref), names, labels, SOURCE_LAYOUT),
        train=samples[0],
        val=samples[1],
        stamp=hash_lines([*stamps, *([f"{bits} bits"] if bits else [])]),
        flags=frozenset({"custom"}),
        test=samples[2] if len(samples) > 2 else (),
        notes=tuple(note for tree in trees for note in tree.notes),
    )


def read_class_tree(folder: Path, layout: str) -> ClassTree:
    """List the class folders of the user.

    Raises DataError for fewer than two, for an empty one, and for splits in their place.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder", fix=f"expected: {layout}")
    tree = ClassTree.read(folder)
    if len(tree.images) < 2:
        below = "".join(f"; if they are below: {FOLDER}{folder / name}" for name in tree.images)
        raise DataError(
            f"{folder} has {len(tree.images)} class folders; at least 2 are needed",
            fix=f"expected: {layout}{below}",
        )
    require_classes(chain.from_iterable(tree.images.values()), folder)
    if empty := [name for name, paths in tree.images.items() if not paths]:
        raise DataError(
            f"{folder} has class folders without an image: {', '.join(empty[:5])}",
            fix="; ".join(["fill or remove them", *tree.notes]),
        )
    return tree


def require_classes(paths: Iterable[str], folder: Path) -> None:
    """Raise DataError if the first folders of the paths, relative to `folder`, look like splits.

    Splits have the usual names of such, or folders of the same names (the classes) below them.
    """
    folders = {path.rpartition("/")[0] for path in paths}
    below: dict[str, set[str]] = {path.partition("/")[0]: set() for path in folders}
    for path in folders:
        first, *inner = path.split("/")
        below[first] |= {read_name(part).casefold() for part in inner}
    counts = Counter(chain.from_iterable(below.values()))
    repeated = {part for part, n in counts.items() if n > 1}
    splits = sorted(name for name, parts in below.items() if len(parts & repeated) > 1)
    if not splits and all(map(is_split, below)):
        splits = sorted(below)
    if splits:
        names = f", whose folders repeat the names {', '.join(sorted(repeated)[:5])}"
        inside = bool(repeated) and all(map(is_split, repeated))
        raise DataError(
            f"{folder} holds {', '.join(splits[:5])}{names if repeated else ''}: these look like "
            "splits and not like classes",
            fix=f"sort the images as <split>/<class>/ and give {FOLDER}{folder}/<split>"
            if inside
            else f"give one of them: {FOLDER}{folder / splits[0]}",
        )


def is_split(name: str) -> bool:
    return SPLIT.fullmatch(read_name(name).casefold()) is not None


def note_case(names: Iterable[str]) -> tuple[str, ...]:
    """Return a note on class names that differ in letter case alone, if there are any."""
    spellings: dict[str, list[str]] = {}
    for name in names:
        spellings.setdefault(name.casefold(), []).append(name)
    alike = [" and ".join(same) for same in spellings.values() if len(same) > 1]
    return (f"classes that differ in letter case alone: {', '.join(alike)}",) if alike else ()


def list_tree_images(
    tree: ClassTree, classes: Sequence[str], bits: int | None = None
) -> tuple[list[SourceImage], str]:
    """List the images of class folders, labelled by position in `classes`, and stamp the files."""
    images = [(label, tree.root / path) for label, path in tree.labelled(classes)]
    samples = [SourceImage(label, partial(open_rgb, path, bits=bits)) for label, path in images]
    return samples, stamp_files([path for _, path in images])


def stamp_files(paths: list[Path]) -> str:
    """Return the sha-256 over path and `stamp_file` of the files, in this order."""
    return hash_lines(f"{path.resolve()} {files.stamp_file(path)}" for path in paths)


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
