"""Targets with a folder per class, EuroSAT and CropDisease: layouts, labels, ids, refusals."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.images import draw_images

from fsbench.core.errors import DataError
from fsbench.data import TARGETS, TargetDataset

Load = Callable[..., TargetDataset]
MITES = "Tomato___Spider_mites Two-spotted_spider_mite"
CORN = "Corn_(maize)___healthy/"


def test_eurosat_ids_labels_and_order(eurosat: Path, load: Load) -> None:
    dataset = load("eurosat")
    names = ("Forest/Forest_9.jpg", "River/River_1.jpg", "River/River_2.jpg")
    assert (dataset.canonical_ids, dataset.labels.tolist()) == (names, [1, 8, 8])
    assert dataset.paths[0] == "2750/Forest/Forest_9.jpg"
    assert dataset.file(0) == eurosat / "2750" / "Forest" / "Forest_9.jpg"
    with pytest.raises(DataError, match="eurosat has no groups"):
        dataset.require_groups()


@pytest.mark.parametrize(
    "subfolder",
    ["2750", "EuroSAT/2750", "eurosat/2750", "x", "EuroSAT", "EuroSAT/EuroSAT", "EuroSAT_RGB",
     "eurosat/archive/2750", "eurosat/data/EuroSAT/2750", "eurosat/data/EuroSAT_RGB"],
)  # fmt: skip
def test_layouts_of_eurosat_give_the_same_images(
    tmp_path: Path, load: Load, subfolder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subfolder == "x":
        monkeypatch.setenv("FSBENCH_DATA", f"eurosat={tmp_path / 'data' / 'x'}")
    draw_images(tmp_path / "data" / subfolder, "river/River_1.jpg")
    (tmp_path / "data" / "x").mkdir(exist_ok=True)
    dataset = load("eurosat")
    assert (dataset.canonical_ids, dataset.image(0).size) == (("River/River_1.jpg",), (8, 8))


@pytest.mark.parametrize(
    "subfolder",
    ["dataset/train", "train", "color", "raw/color", "Dataset/Train", "plantvillage dataset/color",
     "New Plant Diseases Dataset(Augmented)/New Plant Diseases Dataset(Augmented)/train"],
)  # fmt: skip
def test_layouts_of_cropdisease(tmp_path: Path, load: Load, subfolder: str) -> None:
    folder = tmp_path / "data" / "plant-disease" / subfolder
    draw_images(folder, f"{MITES}/a,b c.JPG", f"../test/{MITES}/other.JPG")
    dataset = load("plantvillage")
    assert (dataset.canonical_ids, dataset.labels.tolist()) == ((f"{MITES}/a,b c.JPG",), [33])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("river/x.jpg", "two spellings of the class River"),
        ("Rivers/x.jpg", "no class of eurosat: Rivers\n"),
        (".thumbs/x.jpg", ""),
        ("__MACOSX/x.jpg", ""),
    ],
)
def test_other_folders_are_named(eurosat: Path, load: Load, name: str, message: str) -> None:
    draw_images(eurosat / "2750", name)
    if message:
        with pytest.raises(DataError, match=message):
            load("eurosat")
        shutil.rmtree(eurosat / "2750")
        with pytest.raises(DataError, match=r"lacks class folders of eurosat(.|\n)*2750/<Class>"):
            load("eurosat")
    else:
        assert len(load("eurosat")) == 3


def test_the_lists_select_the_official_images_of_a_larger_plantvillage(
    tmp_path: Path, load: Load, change_card: Callable[..., None]
) -> None:
    change_card("cropdisease", classes=("a", "b"), images_per_class=(1, 1))
    draw_images(tmp_path / "data" / "cropdisease" / "color", "a/1.JPG", "a/2.JPG", "b/3.JPG")
    assert load("cropdisease").flags == {"subset"}
    lists = tmp_path / "data" / "startup_splits"
    lists.mkdir()
    (lists / "CropDisease_unlabeled_20.csv").write_text("img_path\nb/3.JPG\n")
    for listed, ids, flags in (
        ("a/2.JPG", ("a/2.JPG", "b/3.JPG"), set()),
        ("a/9.JPG", ("b/3.JPG",), {"subset"}),
    ):
        (lists / "CropDisease_labeled_80.csv").write_text(f"img_path\n{listed}\n")
        dataset = load("cropdisease")
        assert (dataset.canonical_ids, dataset.flags) == (ids, flags)


letters = st.text("ab_. ", max_size=8)
COPIES = ["", " ", "copy", " copy", " copy 12", "  copy  3", " COPY "]


@given(letters, letters, st.sampled_from(COPIES))
def test_copies_of_a_photo_are_one_group(prefix: str, name: str, copy: str) -> None:
    group_of = TARGETS.load("cropdisease").FACTS.group_of
    shared = group_of(f"{CORN}f___R.S_HL {name}8142.jpg")
    again = group_of(f"{CORN}{prefix}___R.S_HL {name}8142{copy}.JPG")
    assert (again == shared) == (copy != " ")
    assert group_of(f"Soybean___healthy/f___R.S_HL {name}8142.jpg") != shared
    assert group_of(f"{CORN}f___R.S_HL {name}8143.jpg") != shared
    assert group_of(f"{CORN}f___R.S_HL {name}8142.1.jpg") != shared
