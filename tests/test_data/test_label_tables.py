"""Targets with tables of labels, ChestX and ISIC: filters, layouts, groups, pools, refusals."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.images import draw_images

from fsbench.core.errors import DataError
from fsbench.data import TARGETS, DataRoots, TargetDataset, load_target
from fsbench.data.base import hash_lines
from fsbench.data.files import without_suffix

Load = Callable[..., TargetDataset]
CHESTX = TARGETS.load("chestx").FACTS
HEAD = "Image Index,Finding Labels\n"
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"
PARTS = ("HAM10000_images_part_1", "HAM10000_images_part_2")
DIAGNOSES = ("mel", "nv", "bcc", "akiec", "bkl", "df", "vasc", "nv")


def group_lists(dataset: TargetDataset) -> dict[int, list[int]]:
    return {c: codes.tolist() for c, codes in dataset.require_groups().by_class.items()}


def test_chestx_keeps_single_findings_of_the_seven_and_sorts_by_class_and_id(
    chestx: Path, load: Load
) -> None:
    draw_images(chestx, "images/00000001_003.png", mode="L")
    with (chestx / "Data_Entry_2017.csv").open("a", encoding="utf8") as table:
        table.write("Mass,1,00000001_003.png\n")
    dataset = load("chestx")
    ids = ("00000003_000", "00000001_000", "00000001_003", "00000002_000")
    assert (dataset.canonical_ids, dataset.labels.tolist()) == (ids, [0, 4, 4, 4])
    assert dataset.paths[0] == "images/00000003_000.png"
    assert (dataset.class_names[4], dataset.flags) == ("Mass", {"subset"})
    assert (dataset.image(0).mode, dataset.image(0).size) == ("RGB", (256, 256))
    assert group_lists(dataset) == {0: [0], 4: [1, 1, 2]}, "images of one patient"


@pytest.mark.parametrize("subfolder", ["images_001/images", "images_012", "."])
def test_chestx_takes_other_folders_and_the_2020_label_file(
    chestx: Path, load: Load, subfolder: str
) -> None:
    (chestx / "Data_Entry_2017.csv").rename(chestx / "Data_Entry_2017_v2020.csv")
    (chestx / subfolder).mkdir(parents=True, exist_ok=True)
    for path in [*(chestx / "images").iterdir()]:
        path.rename(chestx / subfolder / path.name)
    (chestx / "images").rmdir()
    assert load("ChestX").paths[0] == (Path(subfolder) / "00000003_000.png").as_posix()


def test_rows_without_a_file_are_skipped_and_noted(chestx: Path, load: Load) -> None:
    (chestx / "images" / "00000001_000.png").unlink()
    dataset = load("chestx")
    assert dataset.class_counts == {0: 1, 4: 1}
    assert dataset.notes == ("1 of 3 images named in Data_Entry_2017.csv are missing",)
    for path in (chestx / "images").iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"lacks images of chestx.*3 of 3 images named"):
        load("chestx")


LABELS, TRUTH = "Data_Entry_2017.csv", "ISIC2018_Task3_Training_GroundTruth"
LIST = "../startup_splits/ChestX_labeled_80.csv"
MARKED = "image,MEL,NV,BCC,AKIEC,BKL,DF,VASC\nISIC_0000002,0.0,{},1.0,0.0,0.0,0.0,0.0\n"


@pytest.mark.parametrize(
    ("name", "file", "text", "message"),
    [
        ("chestx", LABELS, "", r"lacks the columns Image Index, Finding Labels; found: none"),
        (
            "chestx",
            LABELS,
            "Image Index,Labels\na.png,Mass\n",
            r"columns Finding Labels; found: Im",
        ),
        ("chestx", LABELS, f"{HEAD}a.png,Mas\n", r"unknown label 'Mas'"),
        ("chestx", LABELS, f"{HEAD}a.png,Mass\na.png,Mass|Nodule\n", r"names a more than once"),
        ("chestx", LABELS, f"{HEAD}a.png\n", r"row 2 has 1 fields"),
        ("chestx", LABELS, f"{HEAD}a,png,Mass\n", r"row 2 has 3 fields, the header 2"),
        ("chestx", LABELS, f'{HEAD}"a.png,Mass\n', r"cannot read the label file"),
        ("chestx", LABELS, f"{HEAD}\udcff\n", r"cannot read the label file"),
        ("chestx", LABELS, LFS, "run `git lfs pull`"),
        ("chestx", LABELS, None, r"lacks Data_Entry_2017.csv"),
        ("isic", f"{TRUTH}/{TRUTH}.csv", MARKED.format("1.0"), "1.0, 1.0.* are not a 1 among 0"),
        ("isic", f"{TRUTH}/{TRUTH}.csv", MARKED.format("x"), "x, 1.0.* are not a 1 among 0"),
        ("isic", f"{TRUTH}/{TRUTH}.csv", MARKED.format("nan"), "nan.* are not a 1 among 0"),
        ("isic", f"{TRUTH}/{TRUTH}.csv", None, rf"lacks {TRUTH}.csv"),
        ("chestx", LIST, None, r"list ChestX_labeled_80.csv, not found in --data"),
        ("chestx", f"{LIST}.gz", "", r"list ChestX_labeled_80.csv, not found in .*startup_splits"),
        ("chestx", LIST, "path\nx\n", r"lacks the columns img_path; found: path"),
    ],
)
def test_wrong_tables_are_named(
    load: Load, request: pytest.FixtureRequest, name: str, file: str, text: str | None, message: str
) -> None:
    path: Path = request.getfixturevalue(name) / file
    path.unlink(missing_ok=True)
    if text is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, errors="surrogateescape")
    with pytest.raises(DataError, match=message) as caught:
        load(name, *(["labeled_80"] if "startup" in file else []))
    assert Path(file).name.removesuffix(".gz") in str(caught.value)


def test_chestx_accepts_all_fifteen_labels_of_the_archive(chestx: Path, load: Load) -> None:
    others = "No Finding|Consolidation|Edema|Emphysema|Fibrosis|Hernia|Pleural_Thickening|Pneumonia"
    (chestx / "Data_Entry_2017.csv").write_text(
        f"{HEAD}00000001_000.png,Mass\n00000002_000.png,{others}|{'|'.join(CHESTX.classes)}\n"
    )
    assert load("chestx").canonical_ids == ("00000001_000",)
    draw_images(chestx, "images_001/00000001_000.png")
    with pytest.raises(DataError, match="are both called 00000001_000"):
        load("chestx")


def test_isic_reads_columns_by_name_and_keeps_official_ids(isic: Path, load: Load) -> None:
    dataset = load("ISIC2018")
    assert dataset.canonical_ids == ("ISIC_0000002", "ISIC_0000001")
    assert dataset.labels.tolist() == [0, 3]  # MEL and AKIEC in the official order
    for path in [*isic.glob("*/*")]:
        path.rename(isic / path.name)
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    assert load("isic").paths == ("ISIC_0000002.jpg", "ISIC_0000001.jpg"), "side by side"


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("HAM10000_metadata.csv", "image_id"),
        ("ISIC2018_Task3_Training_LesionGroupings.csv", "image"),
    ],
)
def test_lesions_come_from_either_table_if_it_names_every_image(
    isic: Path, load: Load, name: str, column: str
) -> None:
    with pytest.raises(DataError, match=r"LesionGroupings\.csv"):
        load("isic").require_groups()
    rows = [f"lesion_id,{column}", "HAM_7,ISIC_0000001", "HAM_7,ISIC_0000002"]
    (isic / name).write_text("\n".join(rows[:2]) + "\n")
    assert load("isic").groups is None
    (isic / name).write_text("\n".join([*rows, ",ISIC_0000003"]) + "\n")
    with pytest.raises(DataError, match=f"{name} has an image without its group"):
        load("isic")
    (isic / name).write_text("\n".join(rows) + "\n")
    assert group_lists(load("isic")) == {0: [0], 3: [0]}


def write_kaggle_copy(root: Path, folders: tuple[str, ...], table: str) -> Path:
    """Write HAM10000 as Kaggle has it: images in several folders, and a table of diagnoses."""
    lines = ["lesion_id,image_id,dx,dx_type,age,sex,localization"]
    for n, diagnosis in enumerate(DIAGNOSES):
        draw_images(root / folders[n % len(folders)], f"ISIC_{n:07d}.jpg")
        lines.append(f"HAM_{n // 2:07d},ISIC_{n:07d},{diagnosis},histo,50.0,male,back")
    (root / table).parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    (root / table).write_text(text.replace(",", "\t") if table.endswith(".tab") else text)
    return root / table


@pytest.mark.parametrize(
    ("folder", "parts", "table"),
    [
        ("isic", PARTS, "HAM10000_metadata.csv"),
        ("HAM10000", tuple(part.lower() for part in PARTS), "HAM10000_metadata"),
        ("ham10000", (".",), "HAM10000_metadata.csv"),
        ("isic", PARTS, "HAM10000_metadata.tab"),
        ("skin-cancer-mnist-ham10000", ("all_images",), "HAM10000_metadata.csv"),
        ("isic2018", tuple(f"archive/{p}/{p}" for p in PARTS), "archive/HAM10000_metadata.csv"),
    ],
)
def test_copies_of_ham10000_are_the_official_images(
    tmp_path: Path, load: Load, folder: str, parts: tuple[str, ...], table: str
) -> None:
    write_kaggle_copy(tmp_path / "data" / folder, parts, table)
    dataset = load("isic")
    assert [int(image[-1]) for image in dataset.canonical_ids] == [0, 1, 7, 2, 3, 4, 5, 6]
    assert dataset.labels.tolist() == [0, 1, 1, 2, 3, 4, 5, 6]
    assert dataset.image(0).size == (8, 8)
    groups = group_lists(dataset)
    assert (groups[0], groups[1]) == ([0], [0, 1]), "lesions of the same table"


def test_kaggles_double_folders_count_once_and_an_unknown_diagnosis_is_named(
    tmp_path: Path, load: Load
) -> None:
    for parts in (PARTS, tuple(map(str.lower, PARTS))):
        table = write_kaggle_copy(tmp_path / "data" / "isic", parts, "HAM10000_metadata.csv")
    assert len(load("isic")) == len(DIAGNOSES)
    table.write_text(table.read_text().replace("akiec", "scc"))
    with pytest.raises(DataError, match="unknown label 'scc'"):
        load("isic")


def write_list(folder: Path, *lines: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "ChestX_labeled_80.csv").write_text("\n".join(lines) + "\n")


def test_the_pool_holds_the_listed_images_only(
    chestx: Path, load: Load, change_card: Callable[..., None]
) -> None:
    lists = chestx.parent / "startup_splits"
    write_list(lists, "img_path", "00000001_000.png", "00009999_000.png")
    dataset = load("chestx", "labeled_80")
    assert (dataset.canonical_ids, dataset.pool) == (("00000001_000",), "labeled_80")
    assert dataset.flags == {"subset"}
    assert dataset.notes == ("1 of the 2 images of labeled_80 are present",)
    beside = load_target("chestx", DataRoots.parse([f"chestx={chestx}"]), "labeled_80")
    assert beside.images_hash == dataset.images_hash
    assert CHESTX.startup is not None
    digest = hash_lines(["00000001_000", "00000003_000"])
    change_card("chestx", startup=CHESTX.startup._replace(labeled_80_hash=digest))
    write_list(chestx.parent / "mine", "img_path", "00000003_000.png", "00000001_000.png")
    roots = DataRoots.parse([str(chestx.parent), f"startup_splits={chestx.parent / 'mine'}"])
    assert load_target("chestx", roots, "labeled_80").flags == set(), "the official list"
    assert load_target("chestx", roots).flags == {"subset"}


def test_only_image_suffixes_are_cut() -> None:
    assert [*map(without_suffix, ("a_0.png", "a.JPG", "a", "v1.2"))] == ["a_0", "a", "a", "v1.2"]
