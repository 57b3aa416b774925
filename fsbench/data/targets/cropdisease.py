"""CropDisease: 38 leaf conditions, the train folder of Kaggle's copy of PlantVillage.

The train folder holds 80 % of PlantVillage. The lists of STARTUP
(https://github.com/cpphoo/STARTUP) name its files, so they cut it out of a full PlantVillage tree.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.assembly import ImageRow, StartupLists, assemble, list_tree_rows
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import Archive, class_counts
from fsbench.data.download import merge_entry
from fsbench.data.files import list_folders

COPIES = ("plantvillage dataset", "PlantVillage-Dataset", "new-plant-diseases-dataset")
COUNTS = class_counts("cropdisease")
FACTS = DatasetFacts(
    name="cropdisease",
    title="CropDisease (PlantVillage, Kaggle train folder)",
    domain="target",
    classes=tuple(COUNTS),
    images_per_class=tuple(COUNTS.values()),
    label_rule="class id = rank of the folder name in the order of Python's string sort",
    dropped="the Kaggle test folder; of a PlantVillage color/ tree with more images, those that "
    "STARTUP's lists do not name",
    groups="photo: class and file name without its unique prefix, suffix and ` copy 2`",
    layout="dataset/train/<Class>/*.JPG, train/<Class>/*.JPG or PlantVillage's color/<Class>/*.JPG",
    folders=("cropdisease", "CropDiseases", "plant-disease", "plantvillage", *COPIES),
    aliases=("plant-disease", "plantvillage", "CropDisease", "CropDiseases", "PlantVillage"),
    download="kaggle datasets download saroz014/plant-disease; fsbench data download cropdisease "
    "fetches all of PlantVillage, marked `subset`, and prints the steps",
    license="GPL-2.0 for the Kaggle copy; CC0 1.0 or CC BY-SA 3.0 on others: treat as share-alike",
    citation="Hughes and Salathe, An open access repository of images on plant health, "
    "arXiv:1511.08060",
    homepage="https://www.kaggle.com/datasets/saroz014/plant-disease",
)
ARCHIVES = (
    Archive(
        "https://data.mendeley.com/public-files/datasets/tywbtsjrjv/files/"
        "d5652a28-c1d8-4b76-97f3-72fb80f94efc/file_downloaded",
        "sha256:ac3432453984d02a86197987e775a5429d0d59e7cc7c35bcf5a8f50349b90ff0",
        hash_source="tensorflow/datasets, datasets/plant_village/checksums.tsv",
        mirrors=(
            "https://data.mendeley.com/datasets/tywbtsjrjv/1/files/"
            "d5652a28-c1d8-4b76-97f3-72fb80f94efc/"
            "Plant_leaf_diseases_dataset_without_augmentation.zip",
        ),
        saved_as="Plant_leaf_diseases_dataset_without_augmentation.zip",
        official=False,
    ),
)
STEPS = """\
The official CropDisease images (43,456; about 1 GB) need an account at Kaggle:
1. kaggle datasets download saroz014/plant-disease   (an account and ~/.kaggle/kaggle.json)
2. Unpack below ROOT/cropdisease:
     ROOT/cropdisease/dataset/train/Apple___Apple_scab/*.JPG ...   (38 folders)
3. fsbench data verify cropdisease --data ROOT
Without an account: github.com/spMohanty/PlantVillage-Dataset, raw/color as ROOT/cropdisease/color,
and STARTUP's lists (fsbench/data/README.md) as ROOT/startup_splits."""
LISTS = StartupLists(
    prefix="CropDisease",
    labeled_80_hash="4194a9887cde85ef6beb0c70643eb91bef9c1a5bd32828bcea9ca0dd04b5b0f8",
    full_hash="a68435548157af135869b5b23751eea324d44ab713697ba9c3fe33cb1bce36d1",
    suffixed=True,
)
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
    dataset = assemble(FACTS, folder, rows, pool=pool, lists=LISTS, splits=splits, notes=notes)
    return dataset.with_groups(get_photo)


def arrange(folder: Path) -> None:
    """Move an unpacked Mendeley copy to color/<Class>/; its background images are dropped."""
    tree = folder / MENDELEY
    for entry in list_folders(tree) if tree.is_dir() else ():
        name = entry.name.replace("Cherry___", "Cherry_(including_sour)___")
        name = name.replace("Corn___", "Corn_(maize)___").replace("Common_rust", "Common_rust_")
        if name in FACTS.classes:
            (folder / "color").mkdir(exist_ok=True)
            merge_entry(entry, folder / "color" / name)
    shutil.rmtree(tree, ignore_errors=True)


def load_names(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """List all images of STARTUP's lists, present or not. Raises DataError without the lists."""
    ids = _listed_ids(splits)
    if unknown := sorted(i for i in ids if i.partition("/")[0] not in FACTS.classes):
        raise DataError(
            f"STARTUP's lists in {splits} name no class of {FACTS.name} in '{unknown[0]}'",
            fix="use the official lists",
        )
    rows = [ImageRow(FACTS.classes.index(i.partition("/")[0]), i, f"train/{i}") for i in ids]
    return assemble(FACTS, folder, rows, pool=pool, lists=LISTS, splits=splits).with_groups(
        get_photo
    )


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
    ids = _listed_ids(splits)
    selected = [row for row in rows if row.canonical_id in ids]
    if not selected:
        return list(rows), (f"{len(rows)} images, none with a name of STARTUP's lists",)
    return selected, (f"{len(selected)} of {len(rows)} images are named by STARTUP's lists",)


def _listed_ids(splits: Path | None) -> frozenset[str]:
    """Return the ids in both of STARTUP's lists: all files of the Kaggle train folder."""
    return LISTS.ids("labeled_80", splits, FACTS.name) | LISTS.ids(
        "unlabeled_20", splits, FACTS.name
    )
