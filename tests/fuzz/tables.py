"""Label files of the CD-FSL data sets: small clean ones, harmless variants, and faults."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random

from PIL import Image

from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import TARGETS

Rows = list[list[str]]
ISIC_TABLE = "ISIC2018_Task3_Training_GroundTruth"


@dataclass(frozen=True)
class Table:
    """One label file below `root`: its clean rows, its key columns, and what reads it."""

    root: Path
    file: Path
    rows: Rows
    key: str
    load: Callable[[], TargetDataset]

    def write(self, data: bytes) -> None:
        self.file.write_bytes(data)


def clean(rows: Rows) -> bytes:
    return text(rows).encode()


def text(rows: Rows, newline: str = "\n", quoted: bool = False) -> str:
    out = StringIO()
    how = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(out, lineterminator=newline, quoting=how).writerows(rows)
    return out.getvalue()


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4)).save(path)


def chestx_table(root: Path) -> Table:
    names = [f"0000000{n}_00{n % 3}" for n in range(1, 9)]
    findings = [*TARGETS.load("chestx").FACTS.classes, "Mass|Nodule"]
    for name in names:
        picture(root / "chestx" / "images" / f"{name}.png")
    rows = [["Image Index", "Finding Labels", "Follow-up #"]]
    rows += [[f"{n}.png", f, "0"] for n, f in zip(names, findings, strict=True)]
    return table(root, "chestx", root / "chestx" / "Data_Entry_2017.csv", rows, "Image Index")


def isic_table(root: Path) -> Table:
    classes = TARGETS.load("isic").FACTS.classes
    for n in range(len(classes)):
        picture(root / "isic" / "ISIC2018_Task3_Training_Input" / f"ISIC_{n:07}.jpg")
    rows = [["image", *classes]]
    rows += [
        [f"ISIC_{n:07}", *("1.0" if c == n else "0.0" for c in range(len(classes)))]
        for n in range(len(classes))
    ]
    return table(root, "isic", root / "isic" / ISIC_TABLE / f"{ISIC_TABLE}.csv", rows, "image")


def lesion_table(root: Path) -> Table:
    lesions = isic_table(root)
    lesions.write(clean(lesions.rows))
    rows = [["image", "lesion_id"], *([f"ISIC_{n:07}", f"HAM_{n % 4}"] for n in range(7))]
    file = root / "isic" / "ISIC2018_Task3_Training_LesionGroupings.csv"
    return table(root, "isic", file, rows, "image")


def startup_table(root: Path, name: str) -> Table:
    """STARTUP's list of a data set, beside its images."""
    if name == "chestx":
        labels = chestx_table(root)
        labels.write(clean(labels.rows))
        ids = [row[0] for row in labels.rows[1:]]
    else:
        classes = TARGETS.load(name).FACTS.classes[:3]
        ids = [f"{c}/{c[:4]}_{n}.jpg" for c in classes for n in range(3)]
        for image in ids:
            picture(root / name / image)
    lists = TARGETS.load(name).FACTS.startup
    assert lists is not None
    file = root / "startup_splits" / f"{lists.prefix}_labeled_80.csv"
    rows = [["img_path", "x"], *([i, "1"] for i in ids[:-1])]
    return table(root, name, file, rows, "img_path", "labeled_80")


def table(root: Path, name: str, file: Path, rows: Rows, key: str, pool: Pool = "full") -> Table:
    def load() -> TargetDataset:
        module = TARGETS.load(name)
        return module.load(root / name, pool, root / "startup_splits")

    file.parent.mkdir(parents=True, exist_ok=True)
    return Table(root, file, rows, key, load)


TABLES: dict[str, Callable[[Path], Table]] = {
    "chestx": chestx_table,
    "isic": isic_table,
    "isic lesions": lesion_table,
    "startup chestx": lambda root: startup_table(root, "chestx"),
    "startup eurosat": lambda root: startup_table(root, "eurosat"),
}


def harmless(rows: Rows, kinds: frozenset[str], random: Random) -> bytes:
    """The same content, written otherwise."""
    order = list(range(len(rows[0])))
    body = rows[1:]
    if "columns" in kinds:
        random.shuffle(order)
    if "rows" in kinds:
        body = random.sample(body, len(body))
    changed = [[row[i] for i in order] for row in [rows[0], *body]]
    if "another column" in kinds:
        changed = [[f"note {n}", *row] for n, row in enumerate(changed)]
    if "spaces" in kinds:
        changed = [[f" {cell} " for cell in row] for row in changed]
    newline = "\r\n" if "crlf" in kinds else "\r" if "cr" in kinds else "\n"
    changed_text = text(changed, newline, "quotes" in kinds)
    if "blank lines" in kinds:
        changed_text = changed_text.replace(newline, newline * 2)
    if "no end" in kinds:
        changed_text = changed_text.rstrip("\r\n")
    return ("\ufeff" if "mark" in kinds else "").encode() + changed_text.encode()


HARMLESS = ("columns", "rows", "another column", "spaces", "crlf", "cr", "quotes", "blank lines",
            "no end", "mark")  # fmt: skip
