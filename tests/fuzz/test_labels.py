"""Label files and split lists of the CD-FSL data sets: the same ids and labels, or a refusal."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random

import pytest
from fuzz.cases import DAMAGE, SIZES, Tally, damage
from hypothesis import strategies as st
from support.images import draw_images

from fsbench.core.errors import DataError
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import TARGETS

Rows = list[list[str]]
Fault = Callable[[Rows, str, Random], Rows]
CLASSES = {name: TARGETS.load(name).FACTS.classes for name in ("chestx", "isic", "eurosat")}
IDS = [f"ISIC_{n:07}" for n in range(7)]
FINDINGS = {
    f"0000000{n}_00{n % 3}.png": f for n, f in enumerate([*CLASSES["chestx"], "Mass|Nodule"])
}
SCENES = [f"{c}/{c[:4]}_{n}.jpg" for c in CLASSES["eurosat"][:3] for n in range(3)]
IMAGES = {
    "chestx": [f"images/{name}" for name in FINDINGS],
    "isic": [f"ISIC2018_Task3_Training_Input/{image}.jpg" for image in IDS],
    "eurosat": SCENES,
}
CHESTX = [["Image Index", "Finding Labels", "Follow-up #"], *([*i, "0"] for i in FINDINGS.items())]
ISIC = [["image", *CLASSES["isic"]]]
ISIC += [[image, *(f"{float(c == n)}" for c in range(7))] for n, image in enumerate(IDS)]
LESIONS = [["image", "lesion_id"], *([image, f"HAM_{n % 4}"] for n, image in enumerate(IDS))]
TABLE = "ISIC2018_Task3_Training_GroundTruth"
HARMLESS = ("columns", "rows", "another column", "spaces", "crlf", "cr", "quotes", "blank lines",
            "no end", "mark")  # fmt: skip


def without(rows: Rows, key: str, random: Random) -> Rows:
    """A column that is needed is not there."""
    position = rows[0].index(key)
    return [[*row[:position], *row[position + 1 :]] for row in rows]


def renamed(rows: Rows, key: str, random: Random) -> Rows:
    other = random.choice([key.upper() + "!", key + "s", "", "../" + key])
    return [[other if name == key else name for name in rows[0]], *rows[1:]]


def unknown(rows: Rows, key: str, random: Random) -> Rows:
    """A label that nothing knows, in a column that is not the key."""
    changed = [list(row) for row in rows]
    labels = ["Massx", "", "nan", "inf", "0.5", "2", "1.0.0", "\u202e", "Mass|", "-1"]
    random.choice(changed[1:])[1] = random.choice(labels)
    return changed


STRUCTURE: dict[str, Fault] = {
    "without": without,
    "renamed": renamed,
    "column_twice": lambda rows, key, random: [[*row, row[rows[0].index(key)]] for row in rows],
    "nothing": lambda rows, key, random: [],
}
TWICE: dict[str, Fault] = {"row": lambda rows, key, random: [*rows, [*random.choice(rows[1:])]]}
ALONE: dict[str, Fault] = {"header_alone": lambda rows, key, random: rows[:1]}
"""A list may repeat an id, which says nothing new."""


@dataclass(frozen=True)
class Table:
    """One label file: the data set and pool that it belongs to, and what it must refuse."""

    dataset: str
    file: str
    rows: Rows
    key: str
    faults: dict[str, Fault]
    pool: str = "full"


TABLES = {
    "chestx": Table("chestx", "chestx/Data_Entry_2017.csv", CHESTX, "Image Index",
                    STRUCTURE | TWICE | {"unknown": unknown}),
    "isic": Table("isic", f"isic/{TABLE}/{TABLE}.csv", ISIC, "image",
                  STRUCTURE | TWICE | {"unknown": unknown}),
    "isic lesions": Table("isic", "isic/ISIC2018_Task3_Training_LesionGroupings.csv", LESIONS,
                          "image", STRUCTURE | TWICE),
    "startup chestx": Table("chestx", "startup_splits/ChestX_labeled_80.csv",
                            [["img_path", "x"], *([name, "1"] for name in [*FINDINGS][:-1])],
                            "img_path", STRUCTURE | ALONE, "labeled_80"),
    "startup eurosat": Table("eurosat", "startup_splits/EuroSAT_labeled_80.csv",
                             [["img_path", "x"], *([name, "1"] for name in SCENES[:-1])],
                             "img_path", STRUCTURE | ALONE, "labeled_80"),
}  # fmt: skip


def text(rows: Rows, newline: str = "\n", quoting: int = csv.QUOTE_MINIMAL) -> str:
    out = StringIO()
    csv.writer(out, lineterminator=newline, quoting=quoting).writerows(rows)
    return out.getvalue()


def rewrite(rows: Rows, kinds: frozenset[str], random: Random) -> bytes:
    """The same content, written otherwise."""
    order, (header, *body) = list(range(len((rows or [[]])[0]))), rows or [[]]
    if "columns" in kinds:
        random.shuffle(order)
    if "rows" in kinds:
        body = random.sample(body, len(body))
    changed = [[row[i] for i in order] for row in [header, *body]] if rows else []
    if "another column" in kinds:
        changed = [[f"note {n}", *row] for n, row in enumerate(changed)]
    if "spaces" in kinds:
        changed = [[f" {value} " for value in row] for row in changed]
    newline = "\r\n" if "crlf" in kinds else "\r" if "cr" in kinds else "\n"
    written = text(changed, newline, csv.QUOTE_ALL if "quotes" in kinds else csv.QUOTE_MINIMAL)
    if "blank lines" in kinds:
        written = written.replace(newline, newline * 2)
    if "no end" in kinds:
        written = written.rstrip("\r\n")
    return ("\ufeff" if "mark" in kinds else "").encode() + written.encode()


class Case:
    """A table on disk, with all images and the label file of its data set."""

    def __init__(self, table: Table, root: Path) -> None:
        self.table, self.root, self.file = table, root, root / table.file
        draw_images(root / table.dataset, *IMAGES[table.dataset], side=4)
        for needed in (TABLES.get(table.dataset, table), table):
            (root / needed.file).parent.mkdir(parents=True, exist_ok=True)
            (root / needed.file).write_text(text(needed.rows))

    def load(self) -> TargetDataset:
        module = TARGETS.load(self.table.dataset)
        folder = self.root / self.table.dataset
        return module.load(folder, self.table.pool, self.root / "startup_splits")


def labels(dataset: TargetDataset) -> dict[str, int]:
    return dict(zip(dataset.canonical_ids, dataset.labels.tolist(), strict=True))


@pytest.fixture(params=list(TABLES))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    return Case(TABLES[request.param], tmp_path)


@SIZES
def test_the_same_labels_or_a_refusal(size: int, case: Case, tally: Tally) -> None:
    first, table = case.load(), case.table

    def check(kinds: frozenset[str], fault: str, seed: int) -> None:
        random = Random(seed)
        rows = table.faults[fault](table.rows, table.key, random) if fault else table.rows
        case.file.write_bytes(rewrite(rows, kinds, random))
        named = "" if fault == "header_alone" else case.file.name
        outcome = tally.attempt(case.load, DataError, named)
        assert (outcome is None) == bool(fault), (fault, kinds)
        if outcome is not None:
            assert labels(outcome) == labels(first)
            assert outcome.images_hash == first.images_hash
            assert (outcome.groups and outcome.groups.hash) == (first.groups and first.groups.hash)

    faults = st.sampled_from(["", "", *table.faults])
    kinds = st.frozensets(st.sampled_from(HARMLESS))
    tally.explore(size, check, kinds, faults, st.integers(0, 2**32))


@SIZES
def test_damaged_tables(size: int, case: Case, tally: Tally) -> None:
    """Bytes more, less or other never give an image another label."""
    first, whole = case.load(), case.file.read_bytes()

    def check(how: str, position: int, more: bytes) -> None:
        case.file.write_bytes(damage(whole, how, position, more))
        outcome = tally.attempt(case.load, DataError)
        assert outcome is None or labels(outcome).items() <= labels(first).items()

    tally.explore(size, check, *DAMAGE)
