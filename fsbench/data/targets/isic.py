"""ISIC 2018 task 3, training set (HAM10000): seven kinds of skin lesions."""

from pathlib import Path

from fsbench.core.errors import DataError
from fsbench.core.specs import Pool
from fsbench.data.assembly import ListedImage, assemble, locate_images
from fsbench.data.base import TargetDataset
from fsbench.data.cards import read_card
from fsbench.data.files import find_first, list_folders, read_csv_columns, without_suffix
from fsbench.data.splits import require_path

FOLDERS = ("ISIC2018_Task3_Training_Input", "HAM10000_images_part_1", "HAM10000_images_part_2")
TABLE = "ISIC2018_Task3_Training_GroundTruth"
METADATA = ("HAM10000_metadata.csv", "HAM10000_metadata", "HAM10000_metadata.tab")
"""File names of the table of Kaggle and Dataverse: image_id, lesion_id, dx (the diagnosis)."""

FACTS = read_card("isic")
LESIONS = (
    ("ISIC2018_Task3_Training_LesionGroupings.csv", "image"),
    *((name, "image_id") for name in METADATA),
)
"""File names of tables of lesions and their image column."""


def load(folder: Path, pool: Pool = "full", splits: Path | None = None) -> TargetDataset:
    """Load ISIC 2018 below `folder`: official or Kaggle's folders, or images beside the table.

    Raises DataError for a missing folder or file and for a row without exactly one label.
    """
    table = find_first(folder, (f"{TABLE}.csv", *METADATA), deeper=True)
    table = table or require_path(folder, f"{TABLE}/{TABLE}.csv", FACTS)
    bases = (folder, *list_folders(folder))
    trees = [tree for base in bases for name in FOLDERS if (tree := find_first(base, (name,)))]
    rows, notes = locate_images(folder, trees or [folder], table, _read_labels(table))
    dataset = assemble(FACTS, folder, rows, pool=pool, splits=splits, notes=notes)
    lesions = _read_lesions(folder)
    complete = lesions.keys() >= set(dataset.canonical_ids)
    return dataset.with_groups(lesions.__getitem__) if complete else dataset


def _read_lesions(folder: Path) -> dict[str, str]:
    """Return lesion by image id, from the first table in the folder; {} without one."""
    for name, column in LESIONS:
        if table := find_first(folder, (name,), deeper=True):
            rows = [
                (without_suffix(i), n) for i, n in read_csv_columns(table, [column, "lesion_id"])
            ]
            lesions = dict(rows)
            if len(lesions) != len(rows) or "" in lesions.values():
                raise DataError(
                    f"{table} lists an image more than once, or without its lesion",
                    fix="fetch it again, or move it away: only the disjoint track needs it",
                )
            return lesions
    return {}


def _read_labels(table: Path) -> list[ListedImage]:
    is_metadata = table.name.lower().startswith("ham10000")
    labels = (_read_diagnoses if is_metadata else _read_marks)(table)
    return [(label, without_suffix(name)) for name, label in labels]


def _read_marks(table: Path) -> list[tuple[str, int]]:
    """Return (image, class id) of every row; by column name, because re-sorted copies exist."""
    labels = []
    for name, *values in read_csv_columns(table, ["image", *FACTS.classes]):
        try:
            marks = [(0.0, 1.0).index(float(value)) for value in values]
        except ValueError:
            marks = []
        if sum(marks) != 1:
            refusal = f"{table}, row of {name}: {', '.join(values)} are not a 1 among 0"
            raise DataError(refusal, fix="use the official file")
        labels.append((name, marks.index(1)))
    return labels


def _read_diagnoses(table: Path) -> list[tuple[str, int]]:
    rows = [(name, dx.upper()) for name, dx in read_csv_columns(table, ["image_id", "dx"])]
    if unknown := sorted({dx for _, dx in rows} - set(FACTS.classes)):
        raise DataError(
            f"{table} has the unknown diagnosis '{unknown[0].lower()}'", fix="use the official file"
        )
    return [(name, FACTS.classes.index(dx)) for name, dx in rows]
