"""CropDisease: 38 leaf conditions, the train folder of Kaggle's copy of PlantVillage.

The train folder holds 80 % of PlantVillage. The lists of STARTUP
(https://github.com/cpphoo/STARTUP) name its files, so they cut it out of a full PlantVillage tree.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from fsbench.core.specs import Pool
from fsbench.data.assembly import ImageRow, assemble, list_tree_rows
from fsbench.data.base import TargetDataset
from fsbench.data.cards import read_card
from fsbench.data.files import list_folders

FACTS = read_card("cropdisease")
COPY = re.compile(r" *copy *\d* *$")
MENDELEY = "Plant_leave_diseases_dataset_without_augmentation"
"""Folder of the republished PlantVillage, which has renamed files and shorter class names."""
TREES = ("dataset/train", "train", "color", ".")


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load CropDisease below `folder`; STARTUP's lists select it in a full PlantVillage tree.

    Without the lists such a tree is used as a whole and marked `subset`. Raises DataError if no
    accepted layout is present.
    """
    rows, notes = list_tree_rows(folder, FACTS, TREES)
    if pool == "full" and len(rows) > sum(FACTS.images_per_class):
        rows, selection = _kaggle_part(rows, splits)
        notes += selection
    dataset = assemble(FACTS, folder, rows, pool=pool, splits=splits, notes=notes)
    return dataset.with_groups(get_photo)


def arrange(folder: Path) -> None:
    """Move an unpacked Mendeley copy to color/<Class>/; its background images are dropped."""
    tree = folder / MENDELEY
    for entry in list_folders(tree) if tree.is_dir() else ():
        name = entry.name.replace("Cherry___", "Cherry_(including_sour)___")
        name = name.replace("Corn___", "Corn_(maize)___").replace("Common_rust", "Common_rust_")
        if name in FACTS.classes:
            shutil.copytree(entry, folder / "color" / name, dirs_exist_ok=True)
    shutil.rmtree(tree, ignore_errors=True)


def get_photo(image: str) -> str:
    """Return the photo of an image: Corn/<uuid>___R.S_HL 7910 copy 2.jpg -> Corn/r.s_hl 7910.

    Numbers restart in each class; file names without a prefix (RS_Rust 2487.JPG) stay as they are.
    """
    label, _, file = image.partition("/")
    name = file.rpartition("___")[2].rpartition(".")[0].lower()
    return f"{label}/{COPY.sub('', name)}"


def _kaggle_part(
    rows: Sequence[ImageRow], splits: Path | None
) -> tuple[list[ImageRow], tuple[str, ...]]:
    """Select the files of the Kaggle train folder, with a note on how many."""
    if splits is None:
        note = (
            f"{len(rows)} images, more than the Kaggle train folder; STARTUP's lists select those"
        )
        return list(rows), (note,)
    ids = FACTS.listed_ids("labeled_80", splits) | FACTS.listed_ids("unlabeled_20", splits)
    selected = [row for row in rows if row.canonical_id in ids]
    if not selected:
        return list(rows), (f"{len(rows)} images, none with a name of STARTUP's lists",)
    return selected, (f"{len(selected)} of {len(rows)} images are named by STARTUP's lists",)
