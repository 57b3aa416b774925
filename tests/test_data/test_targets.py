"""The four CD-FSL targets on small trees: labels, ids, order, layouts, error messages."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, load_target
from fsbench.data.targets import chestx as chestx_module
from fsbench.data.targets import cropdisease as crop_module

Draw = Callable[..., Path]


def roots(folder: Path) -> DataRoots:
    return DataRoots.parse([str(folder.parent)])


def test_chestx_keeps_single_findings_of_the_seven_and_sorts_by_class_and_id(chestx: Path) -> None:
    dataset = load_target("chestx", roots(chestx))
    assert dataset.canonical_ids == ("00000003_000", "00000001_000", "00000002_000")
    assert dataset.labels.tolist() == [0, 4, 4]
    assert dataset.paths[0] == "images/00000003_000.png"
    assert dataset.class_counts == {0: 1, 4: 2}
    assert dataset.class_names[4] == "Mass"
    assert dataset.flags == {"subset"}
    assert dataset.image(0).mode == "RGB"
    assert dataset.image(0).size == (256, 256)


def test_chestx_takes_the_unmerged_folders_and_the_2020_label_file(chestx: Path) -> None:
    (chestx / "Data_Entry_2017.csv").rename(chestx / "Data_Entry_2017_v2020.csv")
    (chestx / "images_001").mkdir()
    (chestx / "images").rename(chestx / "images_001" / "images")
    dataset = load_target("ChestX", roots(chestx))
    assert dataset.paths[0] == "images_001/images/00000003_000.png"


def test_chestx_takes_images_beside_the_table(chestx: Path) -> None:
    for path in [*(chestx / "images").iterdir()]:
        path.rename(chestx / path.name)
    (chestx / "images").rmdir()
    assert load_target("chestx", roots(chestx)).paths[0] == "00000003_000.png"


def test_rows_without_a_file_are_skipped_and_noted(chestx: Path) -> None:
    (chestx / "images" / "00000001_000.png").unlink()
    dataset = load_target("chestx", roots(chestx))
    assert dataset.class_counts == {0: 1, 4: 1}
    assert dataset.notes == ("1 of 3 images named in Data_Entry_2017.csv are missing",)
    for path in (chestx / "images").iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"no image of chestx.*3 of 3 images named"):
        load_target("chestx", roots(chestx))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"lacks the columns Image Index, Finding Labels; found: none"),
        ("Image Index,Labels\na.png,Mass\n", r"lacks the columns Finding Labels; found: Image"),
        ("Image Index,Finding Labels\na.png,Mas\n", r"unknown finding 'Mas'"),
        ("Image Index,Finding Labels\na.png,Mass\na.png,Mass\n", r"names a more than once"),
        ("Image Index,Finding Labels\na.png,Mass\na.png,Mass|Nodule\n", r"names a more than once"),
        ("Image Index,Finding Labels\na.png\n", r"row 2 has 1 fields"),
        ('Image Index,Finding Labels\n"a.png,Mass\n', r"cannot read the label file"),
    ],
)
def test_wrong_label_files_are_named(chestx: Path, text: str, message: str) -> None:
    (chestx / "Data_Entry_2017.csv").write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        load_target("chestx", roots(chestx))
    assert str(chestx / "Data_Entry_2017.csv") in str(caught.value)


def test_chestx_accepts_all_fifteen_labels_of_the_archive() -> None:
    assert len({*chestx_module.FACTS.classes, *chestx_module.OTHER_LABELS}) == 15


def test_isic_reads_columns_by_name_and_keeps_official_ids(isic: Path) -> None:
    dataset = load_target("ISIC2018", roots(isic))
    assert dataset.canonical_ids == ("ISIC_0000002", "ISIC_0000001")
    assert dataset.labels.tolist() == [0, 3]  # MEL and AKIEC in the official order


def test_isic_takes_images_and_label_file_side_by_side(isic: Path) -> None:
    for path in [*isic.glob("*/*")]:
        path.rename(isic / path.name)
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    assert load_target("isic", roots(isic)).paths == ("ISIC_0000002.jpg", "ISIC_0000001.jpg")


@pytest.mark.parametrize(
    ("cell", "message"),
    [("1.0", "are not a 1 among 0"), ("x", "are not a 1 among 0"), ("nan", "nan")],
)
def test_isic_requires_exactly_one_label(isic: Path, cell: str, message: str) -> None:
    table = next(isic.glob("*GroundTruth/*.csv"))
    table.write_text(table.read_text().replace("0.0,0.0,ISIC_0000002", f"0.0,{cell},ISIC_0000002"))
    with pytest.raises(DataError, match=message) as caught:
        load_target("isic", roots(isic))
    assert table.name in str(caught.value)


@pytest.mark.parametrize("file", ["Data_Entry_2017.csv", "ISIC2018_Task3_Training_GroundTruth.csv"])
def test_missing_label_file_is_named(tmp_path: Path, file: str) -> None:
    name = "chestx" if file.startswith("Data") else "isic"
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match=file):
        load_target(name, DataRoots.parse([str(tmp_path)]))


def test_eurosat_ids_labels_and_order(eurosat: Path) -> None:
    dataset = load_target("eurosat", roots(eurosat))
    assert dataset.canonical_ids == (
        "Forest/Forest_9.jpg",
        "River/River_1.jpg",
        "River/River_2.jpg",
    )
    assert dataset.labels.tolist() == [1, 8, 8]
    assert dataset.paths[0] == "2750/Forest/Forest_9.jpg"
    assert dataset.file(0) == eurosat / "2750" / "Forest" / "Forest_9.jpg"


DIAGNOSES = ("mel", "nv", "bcc", "akiec", "bkl", "df", "vasc", "nv")
PARTS = ("HAM10000_images_part_1", "HAM10000_images_part_2")


def kaggle_copy(root: Path, draw: Draw, folders: tuple[str, ...], table: str) -> DataRoots:
    """Write HAM10000 as Kaggle has it: images in several folders, and a table of diagnoses."""
    lines = ["lesion_id,image_id,dx,dx_type,age,sex,localization"]
    for n, diagnosis in enumerate(DIAGNOSES):
        draw(root / folders[n % len(folders)] / f"ISIC_{n:07d}.jpg")
        lines.append(f"HAM_{n // 2:07d},ISIC_{n:07d},{diagnosis},histo,50.0,male,back")
    (root / table).parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    (root / table).write_text(text.replace(",", "\t") if table.endswith(".tab") else text)
    return DataRoots.parse([str(root.parent)])


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
    tmp_path: Path, draw: Draw, folder: str, parts: tuple[str, ...], table: str
) -> None:
    dataset = load_target("isic", kaggle_copy(tmp_path / folder, draw, parts, table))
    official = tmp_path / "o" / "isic" / "ISIC2018_Task3_Training_GroundTruth.csv"
    lines = ["image,MEL,NV,BCC,AKIEC,BKL,DF,VASC"]
    for n, diagnosis in enumerate(DIAGNOSES):
        draw(official.parent / f"ISIC_{n:07d}.jpg")
        marks = [f"{float(diagnosis.upper() == name)}" for name in lines[0].split(",")[1:]]
        lines.append(",".join([f"ISIC_{n:07d}", *marks]))
    official.write_text("\n".join(lines) + "\n")
    expected = load_target("isic", DataRoots.parse([str(tmp_path / "o")]))
    assert dataset.canonical_ids == expected.canonical_ids
    assert dataset.labels.tolist() == expected.labels.tolist() == [0, 1, 1, 2, 3, 4, 5, 6]
    assert dataset.file(0).is_file()  # type: ignore[union-attr]
    groups = dataset.require_groups().by_class
    assert (groups[0].tolist(), groups[1].tolist()) == ([0], [0, 1]), "lesions of the same table"


def test_kaggles_double_folders_count_once(tmp_path: Path, draw: Draw) -> None:
    roots = kaggle_copy(tmp_path / "isic", draw, PARTS, "HAM10000_metadata.csv")
    kaggle_copy(tmp_path / "isic", draw, tuple(map(str.lower, PARTS)), "HAM10000_metadata.csv")
    assert len(load_target("isic", roots)) == len(DIAGNOSES)


def test_an_unknown_diagnosis_is_named(tmp_path: Path, draw: Draw) -> None:
    roots = kaggle_copy(tmp_path / "isic", draw, PARTS, "HAM10000_metadata.csv")
    table = tmp_path / "isic" / "HAM10000_metadata.csv"
    table.write_text(table.read_text().replace("akiec", "scc"))
    with pytest.raises(DataError, match="unknown diagnosis 'scc'"):
        load_target("isic", roots)


def test_a_label_file_that_is_a_pointer_says_what_to_run(isic: Path) -> None:
    (table,) = isic.glob("*/*.csv")
    table.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n")
    with pytest.raises(DataError, match="run `git lfs pull`"):
        load_target("isic", roots(isic))


EUROSAT_PLACES = [
    "2750", "EuroSAT/2750", "eurosat/2750", ".", "EuroSAT", "EuroSAT/EuroSAT", "EuroSAT_RGB",
    "archive/2750", "data/EuroSAT/2750", "data/EuroSAT_RGB",
]  # fmt: skip


@pytest.mark.parametrize("place", EUROSAT_PLACES)
def test_layouts_of_eurosat_give_the_same_images(tmp_path: Path, draw: Draw, place: str) -> None:
    draw(tmp_path / "x" / place / "River" / "River_1.jpg")
    dataset = load_target("eurosat", DataRoots.parse([f"eurosat={tmp_path / 'x'}"]))
    assert dataset.canonical_ids == ("River/River_1.jpg",)
    assert dataset.image(0).size == (8, 8)


@pytest.mark.parametrize("place", ["2750", "EuroSAT_RGB", "EuroSAT/EuroSAT", "eurosat"])
def test_eurosat_is_found_below_a_root(tmp_path: Path, draw: Draw, place: str) -> None:
    draw(tmp_path / place / "river" / "River_1.jpg")
    dataset = load_target("eurosat", DataRoots.parse([str(tmp_path)]))
    assert dataset.canonical_ids == ("River/River_1.jpg",)
    assert dataset.image(0).size == (8, 8)


@pytest.mark.parametrize(
    "place",
    [
        "EuroSAT_MS",
        "eurosat",
        "EuroSATallBands/ds/images/remote_sensing/otherDatasets/sentinel_2/tif",
        "eurosat/ds/images/remote_sensing/otherDatasets/sentinel_2/tif",
    ],
)
def test_the_archive_of_thirteen_bands_is_named(tmp_path: Path, place: str) -> None:
    path = tmp_path / place / "River" / "River_1.tif"
    path.parent.mkdir(parents=True)
    path.write_bytes(tiff_of_bands(13))
    with pytest.raises(DataError, match=r"13 bands(.|\n)*data download eurosat"):
        load_target("eurosat", DataRoots.parse([str(tmp_path)]))


def tiff_of_bands(bands: int) -> bytes:
    """A TIFF of one pixel with 16 bits in each of so many bands."""
    tags = [(256, 1), (257, 1), (258, 16), (259, 1), (262, 1), (273, 200), (277, bands)]
    tags += [(278, 1), (279, 2 * bands)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    head = b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4)
    return head.ljust(200, b"\0") + bytes(2 * bands)


def test_a_copy_of_rgb_tiffs_is_read(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "eurosat" / "River" / "River_1.tif")
    assert len(load_target("eurosat", DataRoots.parse([str(tmp_path)]))) == 1


def test_two_folders_of_one_class_are_named(eurosat: Path, draw: Draw) -> None:
    draw(eurosat / "2750" / "river" / "x.jpg")
    with pytest.raises(DataError, match="two spellings of the class River"):
        load_target("eurosat", roots(eurosat))


def test_an_unknown_class_folder_is_named(eurosat: Path) -> None:
    (eurosat / "2750" / "Rivers").mkdir()
    (eurosat / "2750" / ".thumbs").mkdir()
    (eurosat / "2750" / "__MACOSX").mkdir()
    with pytest.raises(DataError, match="no class of eurosat: Rivers\n"):
        load_target("eurosat", roots(eurosat))


def test_a_tree_without_class_folders_names_the_layout(tmp_path: Path) -> None:
    (tmp_path / "eurosat" / "2750").mkdir(parents=True)
    with pytest.raises(DataError, match=r"no class folder of eurosat(.|\n)*2750/<Class>"):
        load_target("eurosat", DataRoots.parse([str(tmp_path)]))


CROP_PLACES = [
    "dataset/train", "train", "color", "raw/color", "Dataset/Train", "plantvillage dataset/color",
    "New Plant Diseases Dataset(Augmented)/New Plant Diseases Dataset(Augmented)/train",
]  # fmt: skip


@pytest.mark.parametrize("place", CROP_PLACES)
def test_layouts_of_cropdisease(tmp_path: Path, draw: Draw, place: str) -> None:
    name = "Tomato___Spider_mites Two-spotted_spider_mite"
    draw(tmp_path / "plant-disease" / place / name / "a,b c.JPG")
    draw(tmp_path / "plant-disease" / Path(place).parent / "test" / name / "other.JPG")
    dataset = load_target("plantvillage", DataRoots.parse([str(tmp_path)]))
    assert dataset.canonical_ids == (f"{name}/a,b c.JPG",)
    assert dataset.labels.tolist() == [33]


def test_the_lists_select_the_kaggle_images_of_a_larger_plantvillage(
    tmp_path: Path, draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = crop_module.FACTS.model_copy(update={"classes": ("a", "b"), "images_per_class": (1, 1)})
    monkeypatch.setattr(crop_module, "FACTS", facts)
    for name in ("a/1.JPG", "a/2.JPG", "b/3.JPG"):
        draw(tmp_path / "cropdisease" / "color" / name)
    roots = DataRoots.parse([str(tmp_path)])
    assert load_target("cropdisease", roots).flags == {"subset"}
    lists = tmp_path / "startup_splits"
    lists.mkdir()
    (lists / "CropDisease_labeled_80.csv").write_text("img_path\na/2.JPG\n")
    (lists / "CropDisease_unlabeled_20.csv").write_text("img_path\nb/3.JPG\n")
    dataset = load_target("cropdisease", roots)
    assert dataset.canonical_ids == ("a/2.JPG", "b/3.JPG")
    assert not dataset.flags
