"""ChestX: the seven findings of CD-FSL in NIH ChestX-ray14, images with a single finding.

Selection of images and class ids as in https://github.com/IBM/cdfsl-benchmark,
datasets/Chest_few_shot.py.
"""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.assembly import ListedImage, assemble, locate_images, require_listed_once
from fsbench.data.base import TargetDataset
from fsbench.data.cards import read_card
from fsbench.data.files import find_first, list_folders, read_csv_columns, without_suffix
from fsbench.data.splits import require_path

FACTS = read_card("chestx")
OTHER_LABELS = (
    "No Finding", "Consolidation", "Edema", "Emphysema", "Fibrosis", "Hernia", "Pleural_Thickening",
    "Pneumonia",
)  # fmt: skip
TABLES = ("Data_Entry_2017.csv", "Data_Entry_2017_v2020.csv")


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load ChestX from images/ and images_001/ .. images_012/, or all images below `folder`.

    Raises DataError for missing files and unknown findings.
    """
    table = find_first(folder, TABLES) or require_path(folder, TABLES[0], FACTS)
    trees = [tree for tree in list_folders(folder) if tree.name.lower().split("_")[0] == "images"]
    rows, notes = locate_images(folder, trees or [folder], table, _read_findings(table))
    dataset = assemble(FACTS, folder, rows, pool=pool, splits=splits, notes=notes)
    return dataset.with_groups(get_patient)


def get_patient(image: str) -> str:
    """Return the patient of an image: 00000013_005 -> 00000013, 005 counts the visits."""
    return image.partition("_")[0]


def _read_findings(table: Path) -> list[ListedImage]:
    """Return the images whose only finding is one of the seven."""
    images = []
    all_findings = {*FACTS.classes, *OTHER_LABELS}
    rows = read_csv_columns(table, ["Image Index", "Finding Labels"])
    # also where one of two rows is left out, such as a.png with Mass and with Mass|Nodule
    require_listed_once(table, [without_suffix(name) for name, _ in rows])
    for name, findings in rows:
        if unknown := set(findings.split("|")) - all_findings:
            raise DataError(
                f"{table}: {name} has the unknown finding '{min(unknown)}'",
                fix=f"use the official file; its findings are {', '.join(sorted(all_findings))}",
            )
        if findings in FACTS.classes:
            images.append((FACTS.classes.index(findings), without_suffix(name)))
    return images
