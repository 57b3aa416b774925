"""Image folders of the user: folder:DIR as a target (like ImageFolder) or a source (train/, val/).

They are flagged `custom`. Classes are the folders in sorted order, with images at any depth.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.tasks import FOLDER, short_name, user_data_name
from fsbench.data.assembly import assemble, list_tree_rows
from fsbench.data.base import TargetDataset, hash_lines
from fsbench.data.files import list_folders, list_images, stamp_file
from fsbench.data.images import open_rgb
from fsbench.data.source import SourceImage, SourceListing

LAYOUT = "DIR/<class>/*.jpg, one folder per class"
VAL = ("val", "valid", "validation", "test")


def load_folder_target(folder: Path) -> TargetDataset:
    """Load DIR/<class>/ as a target. Raise DataError for fewer than two or empty classes."""
    names = _class_names(folder, LAYOUT)
    if set(names) <= {"train", *VAL}:
        raise DataError(
            f"{folder} holds {', '.join(names)}, which look like splits and not like classes",
            fix=f"give one of them: folder:{folder / names[0]}",
        )
    counts = [len(list_images(folder / name)) for name in names]
    ref = f"{FOLDER}{folder}"
    facts = make_custom_facts(short_name(ref), names, counts, LAYOUT)
    dataset = assemble(facts, folder, list_tree_rows(folder, facts, (".",)))
    return replace(dataset, flags=frozenset({"custom"}), result_name=user_data_name(ref))


def list_folder_source(folder: Path) -> SourceListing:
    """List DIR/train/<class>/ and DIR/val/<class>/ as a source. Raise like load_folder_target.

    DIR/test/<class>/ is scored once, after training, or validates if there is no DIR/val.
    """
    layout = (
        "DIR/train/<class>/*.jpg, DIR/val/<class>/*.jpg and, for a test, DIR/test/<class>/*.jpg"
    )
    val = next((folder / name for name in VAL if (folder / name).is_dir()), folder / VAL[0])
    tested = folder / "test" if val.name != "test" and (folder / "test").is_dir() else None
    names = _class_names(folder / "train", layout)
    for part in filter(None, (val, tested)):
        if other := set(_class_names(part, layout)) ^ set(names):
            classes = ", ".join(sorted(other)[:5])
            raise DataError(
                f"{folder}: train and {part.name} have other classes ({classes})",
                fix="give both the same class folders",
            )
    train, train_stamp = list_tree_images(folder / "train", names)
    validation, val_stamp = list_tree_images(val, names)
    test, test_stamp = list_tree_images(tested, names) if tested else ([], "")
    counts = [len(list_images(folder / "train" / name)) for name in names]
    return SourceListing(
        make_custom_facts(short_name(f"{FOLDER}{folder}"), names, counts, layout),
        train,
        validation,
        stamp=hash_lines([train_stamp, val_stamp, *filter(None, [test_stamp])]),
        flags=frozenset({"custom"}),
        test=test,
    )


def list_tree_images(tree: Path, names: Sequence[str]) -> tuple[list[SourceImage], str]:
    """List the images of class folders, labelled by position in `names`, and stamp their files."""
    paths = [(c, tree / name / p) for c, name in enumerate(names) for p in list_images(tree / name)]
    samples = [SourceImage(label, partial(open_rgb, path)) for label, path in paths]
    return samples, stamp_files([path for _, path in paths])


def stamp_files(paths: list[Path]) -> str:
    """Return the sha-256 over path and `stamp_file` of the files, in this order."""
    lines = []
    for path in paths:
        try:
            lines.append(f"{path.resolve()} {stamp_file(path)}")
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    return hash_lines(lines)


def _class_names(folder: Path, layout: str) -> list[str]:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder", fix=f"expected: {layout}")
    names = [path.name for path in list_folders(folder)]
    if len(names) < 2:
        raise DataError(
            f"{folder} has {len(names)} class folders; at least 2 are needed",
            fix=f"expected: {layout}",
        )
    if empty := [name for name in names if not list_images(folder / name)]:
        raise DataError(
            f"{folder} has class folders without an image: {', '.join(empty[:5])}",
            fix="fill or remove them",
        )
    return names


def make_custom_facts(
    name: str,
    classes: Sequence[str],
    counts: Sequence[int],
    layout: str,
    label_rule: str = "class id = rank of the folder name in sorted order",
) -> DatasetFacts:
    """Return the FACTS of a data set that fsbench has no file for."""
    safe = re.sub(r"[^\w.+@=-]", "-", name)[:200]
    return DatasetFacts(
        name=safe,
        title=f"own images ({safe})",
        domain="target",
        classes=tuple(classes),
        images_per_class=tuple(counts),
        label_rule=label_rule,
        layout=layout,
        folders=(safe,),
        download="one's own images",
        license="unknown",
        citation="none",
        homepage="none",
    )
