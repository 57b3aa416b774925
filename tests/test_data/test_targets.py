"""The four CD-FSL targets on small trees: labels, ids, order, layouts, error messages."""

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
        ("Image Index,Finding Labels\na.png,Mass\na.png,Mass\n", r"lists a more than once"),
        ("Image Index,Finding Labels\na.png,Mass\na.png,Mass|Nodule\n", r"lists a more than once"),
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
    [("1.0", "has 2 labels"), ("x", "are not 0 and 1"), ("nan", "are not 0 and 1")],
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


@pytest.mark.parametrize("place", ["2750", "EuroSAT/2750", "eurosat/2750", "."])
def test_layouts_of_eurosat_give_the_same_images(tmp_path: Path, draw: Draw, place: str) -> None:
    draw(tmp_path / "x" / place / "River" / "River_1.jpg")
    dataset = load_target("eurosat", DataRoots.parse([f"eurosat={tmp_path / 'x'}"]))
    assert dataset.canonical_ids == ("River/River_1.jpg",)
    assert dataset.image(0).size == (8, 8)


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


@pytest.mark.parametrize("place", ["dataset/train", "train", "color", "raw/color", "Dataset/Train"])
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
