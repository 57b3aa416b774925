"""Targets with official train and test lists, on small trees in the official layouts."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat
from torchvision.datasets import Flowers102

from fsbench.core.errors import DataError
from fsbench.data import TARGETS, DataRoots, TargetDataset, load_target
from fsbench.data.splits import assemble_official, split_dataset
from fsbench.data.targets.mit67 import FACTS
from fsbench.data.verification import verify_dataset

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
        for name in (*self.train, *self.test, *self.unlisted):
            (base / self.images / name).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8)).save(base / self.images / name)
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
    cells = np.empty((len(entries), 1), dtype=object)
    cells[:, 0] = list(entries)
    labels = np.array(list(entries.values()), np.uint8)[:, None]
    return {"file_list": cells, "annotation_list": cells, "labels": labels}


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


def load(name: str, root: Path) -> TargetDataset:
    return load_target(name, DataRoots.parse([str(root)]))


@pytest.mark.parametrize("name", LAYOUTS)
def test_parts_labels_and_ids_are_the_official_ones(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    base = layout.write(tmp_path)
    dataset = load(TARGETS.load(name).FACTS.aliases[0], tmp_path)
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
    assert len(load(name, tmp_path)) == 3
    (base / layout.images).rename(base / "elsewhere")
    with pytest.raises(DataError, match=rf"lacks .*{layout.images}"):
        load(name, tmp_path)


def test_a_download_into_a_folder_of_another_name_is_found(tmp_path: Path) -> None:
    LAYOUTS["aircraft"].write(tmp_path / "aircraft")
    dataset = load("aircraft", tmp_path)
    assert dataset.paths[0].startswith("fgvc-aircraft-2013b/data/images/")
    assert dataset.image(0).size == (8, 8)


WRONG_LISTS: list[tuple[str, str, Content | None, str]] = [
    ("aircraft", "data/images_variant_test.txt", "0747566 708-320\n",
     "test.txt names no class in '0747566.jpg"),
    ("aircraft", "data/images_variant_train.txt", "0747566 707-320\n0034309 F-16A/B\n",
     "names 0747566.jpg more"),
    ("aircraft", "data/images_variant_train.txt", "0747566\n",
     "train.txt names no class in '0747566.jpg'"),
    ("cub200", "image_class_labels.txt", numbered(1, 1, 199, 200),
     "label of 200.Common_Yellowthroat/c.jpg"),
    ("cub200", "image_class_labels.txt", numbered(1, 1, 200), "name different images"),
    ("cub200", "images.txt", numbered(*(f"001.Albatross/{n}.jpg" for n in "bacd")),
     "names no class in '001.Albatross/b.jpg'"),
    ("cub200", "images.txt", "1\n001.Albatross/b.jpg\n", "has a line without two fields"),
    ("cub200", "train_test_split.txt", None, r"cannot read .*train_test_split.txt"),
    ("mit67", "TrainImages.txt", "cave/a.jpg\n", r"TrainImages.txt names no class in 'cave/a.jpg'"),
    ("mit67", "TestImages.txt", "winecellar/a.jpg\n", "names winecellar/a.jpg more than once"),
    ("mit67", "TestImages.txt", None, r"lacks TestImages.txt"),
    ("dogs", "test_list.mat", dogs_list({n: y + 1 for n, y in DOGS_TEST.items()}),
     r"test_list.mat: the label of .* is not that of its"),
    ("dogs", "test_list.mat", dogs_list({n: y - 1 for n, y in DOGS_TEST.items()}),
     r"test_list.mat: the label of .* is not that of its"),
    ("dogs", "train_list.mat", "no mat", r"cannot read .*train_list.mat"),
    ("dogs", "train_list.mat", {"labels": np.ones((2, 1))}, r"train_list.mat: 'file_list'"),
    ("dogs", "train_list.mat", None, r"lacks train_list.mat"),
    ("flowers102", "setid.mat", None, r"lacks the official imagelabels.mat and setid.mat"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "file", "content", "message"), WRONG_LISTS)
def test_lists_with_errors_are_named(
    name: str, file: str, content: Content | None, message: str, tmp_path: Path
) -> None:
    path = LAYOUTS[name].write(tmp_path) / file
    path.unlink()
    if content is not None:
        write_list(path, content)
    with pytest.raises(DataError, match=message):
        load(name, tmp_path)


def test_the_mats_of_flowers_are_checked_by_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LAYOUTS["flowers102"].write(tmp_path)
    wrong = Flowers102._file_dict | {"label": ("imagelabels.mat", "0" * 32)}
    monkeypatch.setattr(Flowers102, "_file_dict", wrong)
    with pytest.raises(DataError, match=r"lacks the official imagelabels.mat and setid.mat"):
        load("flowers102", tmp_path)


def test_classes_are_the_publishers() -> None:
    assert TARGETS.load("flowers102").FACTS.classes == tuple(Flowers102.classes)
    breeds = TARGETS.load("dogs").FACTS.classes
    assert not any(name.startswith("n02110341") for name in breeds), "it has no dalmatian"


def test_verify_checks_the_parts_and_not_every_class(tmp_path: Path) -> None:
    LAYOUTS["mit67"].write(tmp_path)
    roots = DataRoots.parse([str(tmp_path)])
    verdict = verify_dataset("mit67", roots, tmp_path / "cache")
    assert (verdict.counts[0], verdict.complete) == ((2, None), False)
    problem = verdict.problem()
    assert problem is not None
    assert "2 of 5360 train images and 2 of 1340 test images" in problem.message


SMALL = FACTS.model_copy(update={"classes": ("a", "b"), "split": (3, 2)})
TRAIN = ((0, "a/1.jpg"), (0, "a/2.jpg"), (1, "b/1.jpg"))
TEST = ((0, "a/3.jpg"), (1, "b/2.jpg"))


@pytest.fixture
def assemble(tmp_path: Path, draw: Callable[..., Path]) -> Callable[..., TargetDataset]:
    for _, name in (*TRAIN, *TEST):
        draw(tmp_path / "Images" / name)

    def make(
        train: Sequence[tuple[int, str]] = TRAIN, test: Sequence[tuple[int, str]] = TEST
    ) -> TargetDataset:
        return assemble_official(SMALL, tmp_path, tmp_path / "Images", (train, test))

    return make


def test_a_data_set_is_complete_with_the_official_number_in_both_parts_and_all_classes(
    assemble: Callable[..., TargetDataset],
) -> None:
    whole = assemble()
    assert (whole.flags, whole.notes) == (frozenset(), ())
    moved = assemble(TRAIN[1:], (*TEST, TRAIN[0]))
    assert moved.flags == {"subset"}
    assert moved.notes == (
        "2 of 3 train images and 3 of 2 test images are present; the lists name 5",
    )
    assert moved.images_hash != whole.images_hash
    parts = ([(0, name) for _, name in part] for part in (TRAIN, TEST))
    assert assemble(*parts).flags == {"subset"}, "no image of class b"
    with pytest.raises(DataError, match=r"names a/1.jpg more than once"):
        assemble(TRAIN, (*TEST, TRAIN[0]))
