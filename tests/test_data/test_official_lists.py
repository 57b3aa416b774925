"""Targets with official train and test lists, on small trees in the official layouts."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.io import savemat
from support.images import draw_images
from torchvision.datasets import Flowers102

from fsbench.core.errors import DataError
from fsbench.data import TARGETS, DataRoots, TargetDataset
from fsbench.data.loading import list_source
from fsbench.data.splits import split_dataset
from fsbench.data.verification import verify_dataset

Load = Callable[..., TargetDataset]
VARIANTS = TARGETS.load("aircraft").FACTS.classes
ALBATROSS, YELLOWTHROAT = "001.Black_footed_Albatross", "200.Common_Yellowthroat"
DALE = "n02085620-Chihuahua"
WOLF = "n02116738-African_hunting_dog"
Content = str | dict[str, Any]


class Layout(NamedTuple):
    """A small copy. images: their folder; lists: texts, or the fields of .mat files, by file.

    train, test: listed images and their labels, in the order of the loaded data set.
    """

    folder: str
    images: str
    unlisted: Sequence[str]
    train: dict[str, int]
    test: dict[str, int]
    lists: dict[str, Content]

    def write(self, root: Path) -> Path:
        base = root / self.folder
        draw_images(base / self.images, *self.train, *self.test, *self.unlisted)
        for file, content in self.lists.items():
            write_list(base / file, content)
        return base


def write_list(path: Path, content: Content) -> None:
    if isinstance(content, str):
        path.write_text(content)
    else:
        savemat(path, content)


def dogs_list(entries: dict[str, int]) -> dict[str, Any]:
    """file_list is an N x 1 cell array of texts, labels an N x 1 array counted from 1."""
    names = np.empty((len(entries), 1), dtype=object)
    names[:, 0] = list(entries)
    labels = np.array(list(entries.values()), np.uint8)[:, None]
    return {"file_list": names, "annotation_list": names, "labels": labels}


def numbered(*values: object) -> str:
    return "".join(f"{n} {value}\n" for n, value in enumerate(values, 1))


DOGS_TRAIN = {f"{WOLF}/n02116738_1.jpg": 120, f"{DALE}/n02085620_5927.jpg": 1}
DOGS_TEST = {f"{DALE}/n02085620_7.jpg": 1, "n02085782-Japanese_spaniel/n02085782_1.jpg": 2}
SETS = {"trnid": [4, 1], "valid": [3, 3], "tstid": [2, 5]}

LAYOUTS = {
    "aircraft": Layout(  # train is not trainval
        "fgvc-aircraft-2013b",
        "data/images",
        ["0900914.jpg"],
        {"1025794.jpg": 0, "0034309.jpg": VARIANTS.index("F-16A/B")},
        {"0747566.jpg": 0, "1514522.jpg": VARIANTS.index("BAE 146-200")},
        {
            "data/images_variant_train.txt": "0034309 F-16A/B\n1025794 707-320\n",
            "data/images_variant_val.txt": "0900914 707-320\n",
            "data/images_variant_test.txt": "1514522 BAE 146-200\n0747566 707-320\n",
        },
    ),
    "cub200": Layout(  # 1 in the split file is train
        "CUB_200_2011",
        "images",
        [],
        {f"{ALBATROSS}/b.jpg": 0, f"{YELLOWTHROAT}/c.jpg": 199},
        {f"{ALBATROSS}/a.jpg": 0, f"{YELLOWTHROAT}/d.jpg": 199},
        {
            "images.txt": numbered(
                *(f"{ALBATROSS}/{n}.jpg" for n in "ba"), *(f"{YELLOWTHROAT}/{n}.jpg" for n in "cd")
            ),
            "image_class_labels.txt": numbered(1, 1, 200, 200),
            "train_test_split.txt": numbered(1, 0, 1, 0),
        },
    ),
    "mit67": Layout(
        "indoorCVPR_09",
        "Images",
        ["bar/unused.jpg"],
        {"airport_inside/airport_inside_0001.jpg": 0, "winecellar/a.jpg": 66},
        {"airport_inside/airport_inside_0002.jpg": 0, "bar/a.jpg": 4},
        {
            "TrainImages.txt": "winecellar/a.jpg\r\nairport_inside/airport_inside_0001.jpg\r\n",
            "TestImages.txt": "airport_inside/airport_inside_0002.jpg\nbar/a.jpg",
        },
    ),
    "dogs": Layout(
        "stanford_dogs",
        "Images",
        [],
        {name: label - 1 for name, label in reversed(DOGS_TRAIN.items())},
        {name: label - 1 for name, label in DOGS_TEST.items()},
        {"train_list.mat": dogs_list(DOGS_TRAIN), "test_list.mat": dogs_list(DOGS_TEST)},
    ),
    "flowers102": Layout(  # labels 77, 1, 102, 1, 5 of images 1 to 5; image 3 is for validation
        "flowers-102",
        "jpg",
        ["image_00003.jpg"],
        {"image_00004.jpg": 0, "image_00001.jpg": 76},
        {"image_00002.jpg": 0, "image_00005.jpg": 4},
        {
            "imagelabels.mat": {"labels": np.array([[77, 1, 102, 1, 5]], np.uint8)},
            "setid.mat": {name: np.array([row], np.uint16) for name, row in SETS.items()},
        },
    ),
}


@pytest.fixture(autouse=True)
def _small_mats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switch torchvision's hashes of the lists of Flowers-102 off."""
    files = {key: (name, None) for key, (name, _) in Flowers102._file_dict.items()}
    monkeypatch.setattr(Flowers102, "_file_dict", files)


@pytest.mark.parametrize("name", LAYOUTS)
def test_parts_labels_and_ids_are_the_official_ones(name: str, tmp_path: Path, load: Load) -> None:
    layout = LAYOUTS[name]
    base = layout.write(tmp_path / "data")
    dataset = load(TARGETS.load(name).FACTS.aliases[0])
    for part, listed, index in zip(
        ("train", "test"), (layout.train, layout.test), split_dataset(dataset), strict=True
    ):
        assert [dataset.canonical_ids[i] for i in index] == [f"{part}/{image}" for image in listed]
        assert dataset.labels[index].tolist() == list(listed.values())
    inner = dataset.canonical_ids[0].partition("/")[2]
    assert dataset.paths[0] == f"{layout.images}/{inner}"
    assert dataset.image(0).mode == "RGB"
    assert (len(dataset), dataset.flags) == (4, {"subset"})
    (base / layout.images / inner).unlink()
    assert len(load(name)) == 3
    (base / layout.images).rename(base / "elsewhere")
    with pytest.raises(DataError, match=rf"lacks .*{layout.images}"):
        load(name)


FOREIGN = "../../../secret.jpg"
ALIEN = "is no official line"
WRONG_LISTS: list[tuple[str, str, Content | None, str]] = [
    ("aircraft", "data/images_variant_test.txt", "0747566 708-320\n",
     "test list gives '0747566.jpg' the class 708-320"),
    ("aircraft", "data/images_variant_train.txt", "0747566 707-320\n0034309 F-16A/B\n",
     "names 0747566.jpg more"),
    ("aircraft", "data/images_variant_train.txt", "0747566\n", f"train.txt: '0747566' {ALIEN}"),
    ("cub200", "image_class_labels.txt", numbered(1, 1, 199, 200),
     "train list gives '200.Common_Yellowthroat/c.jpg' the class 200.Common_Yellowthroat 199"),
    ("cub200", "image_class_labels.txt", numbered(1, 1, 200), ALIEN),
    ("cub200", "images.txt", numbered(*(f"001.Albatross/{n}.jpg" for n in "bacd")),
     "gives '001.Albatross/b.jpg' the class 001.Albatross 1"),
    ("cub200", "images.txt", f"1 {ALBATROSS}/b.jpg\n3 {ALBATROSS}/a.jpg\n", ALIEN),
    ("cub200", "images.txt", numbered(*[f"{ALBATROSS}/{FOREIGN}", f"{ALBATROSS}/b.jpg"],
                                      *[f"{YELLOWTHROAT}/{n}.jpg" for n in "cd"]),
     "secret.jpg'.* or outside of its images"),
    ("cub200", "train_test_split.txt", numbered(1, 2, 1, 0), ALIEN),
    ("cub200", "train_test_split.txt", None, r"lacks train_test_split.txt"),
    ("mit67", "TrainImages.txt", "cave/a.jpg\n", "train list gives 'cave/a.jpg' the class cave"),
    ("mit67", "TestImages.txt", "winecellar/a.jpg\n", "names winecellar/a.jpg more than once"),
    ("mit67", "TestImages.txt", f"bar/{FOREIGN}\n", "secret.jpg'.* or outside of its images"),
    ("mit67", "TestImages.txt", "bar/..\\a.jpg", "a.jpg'.* or outside of its images"),
    ("mit67", "TestImages.txt", f"bar/{'n' * 300}\nbar/\0", "has 2 train and 0 test"),
    ("mit67", "TestImages.txt", None, r"lacks TestImages.txt"),
    ("dogs", "test_list.mat", dogs_list({n: y + 1 for n, y in DOGS_TEST.items()}),
     r"test list gives .* the class n02085620-Chihuahua 2"),
    ("dogs", "test_list.mat", dogs_list({f"{DALE}/{FOREIGN}": 1}), "outside of its images"),
    ("dogs", "test_list.mat", dogs_list(DOGS_TEST) | {"labels": np.ones((1, 1))},
     "cannot read .*test_list.mat"),
    ("dogs", "train_list.mat", "no mat", r"cannot read .*train_list.mat"),
    ("dogs", "train_list.mat", {"labels": np.ones((2, 1))}, r"train_list.mat: 'file_list'"),
    ("dogs", "train_list.mat", None, r"lacks train_list.mat"),
    ("flowers102", "setid.mat", None, r"lacks the official imagelabels.mat and setid.mat"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "file", "content", "message"), WRONG_LISTS)
def test_lists_with_errors_are_named(
    name: str, file: str, content: Content | None, message: str, tmp_path: Path, load: Load
) -> None:
    path = LAYOUTS[name].write(tmp_path / "data") / file
    draw_images(tmp_path, "secret.jpg")
    path.unlink()
    if content is not None:
        write_list(path, content)
    with pytest.raises(DataError, match=message):
        split_dataset(load(name))


def test_the_mats_of_flowers_are_checked_by_hash(
    tmp_path: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    LAYOUTS["flowers102"].write(tmp_path / "data")
    wrong = Flowers102._file_dict | {"label": ("imagelabels.mat", "0" * 32)}
    monkeypatch.setattr(Flowers102, "_file_dict", wrong)
    with pytest.raises(DataError, match=r"lacks the official imagelabels.mat and setid.mat"):
        load("flowers102")


def test_classes_are_the_publishers_and_a_download_is_found(tmp_path: Path, load: Load) -> None:
    LAYOUTS["aircraft"].write(tmp_path / "data" / "aircraft")
    assert load("aircraft").paths[0].startswith("fgvc-aircraft-2013b/data/images/")
    assert TARGETS.load("flowers102").FACTS.classes == tuple(Flowers102.classes)
    breeds = TARGETS.load("dogs").FACTS.classes
    assert not any(name.startswith("n02110341") for name in breeds), "it has no dalmatian"


@pytest.mark.parametrize(
    ("train", "test", "note"),
    [
        ("a/1 a/2 b/1", "a/3 b/2", ""),
        ("a/2 b/1", "a/3 b/2 a/1", "2 of 3 train images and 3 of 2 test images are present; the"),
        ("a/1 a/2 a/4", "a/3 a/5", "no image of class b"),
    ],
)
def test_a_data_set_is_complete_with_the_official_number_in_both_parts_and_all_classes(
    tmp_path: Path, load: Load, train: str, test: str, note: str, change_card: Callable[..., None]
) -> None:
    change_card("mit67", classes=("a", "b"), split=(3, 2))
    base = tmp_path / "data" / "mit67"
    draw_images(base / "Images", *train.split(), *test.split())
    (base / "TrainImages.txt").write_text(train.replace(" ", "\n"))
    (base / "TestImages.txt").write_text(test.replace(" ", "\n"))
    dataset = load("mit67")
    assert dataset.flags == ({"subset"} if note else set())
    assert [n.startswith(note) for n in dataset.notes] == ([True] if "present" in note else [])
    check = verify_dataset("mit67", DataRoots((base.parent,)), tmp_path / "cache")
    assert (check.counts[1][1], check.complete) == (None, not note)
    assert not note or "does not have the official images" in str(check.problem())


def test_the_training_list_of_dogs_trains_and_validates(tmp_path: Path) -> None:
    train = {f"{DALE}/{n}.jpg": 1 for n in range(10)} | {f"{WOLF}/{n}.jpg": 120 for n in range(2)}
    lists = {"train_list.mat": dogs_list(train), "test_list.mat": dogs_list(DOGS_TEST)}
    folder = LAYOUTS["dogs"]._replace(train=train, lists=lists).write(tmp_path)
    roots = DataRoots.parse([f"dogs120={folder}"])
    listing = list_source("dogs120", roots, tmp_path / "cache")
    labels = {part: [i.label for i in images] for part, images in listing.parts.items()}
    assert labels == {"train": [0] * 9 + [119], "val": [0, 119], "test": [0, 1]}
    assert listing.flags == {"derived", "subset"}
