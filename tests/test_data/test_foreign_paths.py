"""Lists and tables that name files elsewhere: nothing outside of the data set's folder is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.io import savemat

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, load_source, load_target
from fsbench.data.files import is_inside
from fsbench.data.hub import HubReference, HubTable
from fsbench.data.sources.tinyimagenet import FACTS as TINY
from fsbench.data.targets import dogs

Draw = Callable[..., Path]
BIRD, DOG = "001.Black_footed_Albatross", "n02085620-Chihuahua"


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("bar/a.jpg", True),
        ("./a.jpg", True),
        ("a..b/c", True),
        ("../a.jpg", False),
        ("bar/../../a.jpg", False),
        ("/etc/passwd", False),
        ("bar\\..\\..\\a.jpg", False),
        ("a\0b", False),
        ("n" * 300, False),
    ],
)
def test_what_stays_inside(name: str, inside: bool) -> None:
    assert is_inside(name) == inside


def matlab(path: Path, names: list[str]) -> None:
    cells = np.empty((len(names), 1), dtype=object)
    cells[:, 0] = names
    savemat(path, {"file_list": cells, "labels": np.ones((len(names), 1), np.uint8)})


def mit67(root: Path, draw: Draw, name: str) -> None:
    draw(root / "mit67" / "Images" / "bar" / "a.jpg")
    (root / "mit67" / "TrainImages.txt").write_text(f"bar/{name}\n")
    (root / "mit67" / "TestImages.txt").write_text("bar/a.jpg\n")


def cub200(root: Path, draw: Draw, name: str) -> None:
    base = root / "CUB_200_2011"
    draw(base / "images" / BIRD / "a.jpg")
    (base / "images.txt").write_text(f"1 {BIRD}/{name}\n2 {BIRD}/a.jpg\n")
    (base / "image_class_labels.txt").write_text("1 1\n2 1\n")
    (base / "train_test_split.txt").write_text("1 1\n2 0\n")


def dog(root: Path, draw: Draw, name: str) -> None:
    draw(root / "dogs" / "Images" / DOG / "a.jpg")
    matlab(root / "dogs" / "train_list.mat", [f"{DOG}/{name}"])
    matlab(root / "dogs" / "test_list.mat", [f"{DOG}/a.jpg"])


@pytest.mark.parametrize(
    ("dataset", "write"), [("mit67", mit67), ("cub200", cub200), ("dogs", dog)]
)
def test_official_lists(
    dataset: str, write: Callable[..., None], tmp_path: Path, draw: Draw
) -> None:
    roots = DataRoots.parse([str(tmp_path)])
    draw(tmp_path / "secret.jpg")
    write(tmp_path, draw, "b.jpg")
    assert len(load_target(dataset, roots)) == 1
    write(tmp_path, draw, "../../../secret.jpg")
    with pytest.raises(DataError, match=r"outside of the images: .*secret"):
        load_target(dataset, roots)


def test_pets(tmp_path: Path, draw: Draw) -> None:
    base = tmp_path / "oxford-iiit-pet"
    names = ["Abyssinian_1", "Abyssinian_2", "american_bulldog_1", "american_bulldog_2"]
    for name in names:
        draw(base / "images" / f"{name}.jpg")
    (base / "annotations").mkdir()
    draw(tmp_path / "Abyssinian_9.jpg")
    (base / "annotations" / "trainval.txt").write_text(
        "".join(f"{n} {1 if n[0] == 'A' else 2} 1 1\n" for n in ["../../Abyssinian_9", *names])
    )
    with pytest.raises(DataError, match=r"names no class in '../../Abyssinian_9.jpg'"):
        load_source("pets", DataRoots.parse([str(tmp_path)]), tmp_path / "c", 8)


def table(path: Path, image: dict[str, Any]) -> None:
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    columns = {"image": pa.array([image] * 2, kind), "label": pa.array([TINY.classes[0]] * 2)}
    pq.write_table(pa.table(columns), path)


def test_tables_of_images(tmp_path: Path, draw: Draw) -> None:
    """A row may hold the path of an image in place of its bytes."""
    secret = draw(tmp_path / "secret.png")
    folder = tmp_path / "tinyimagenet"
    folder.mkdir()
    for part in ("train", "val"):
        table(folder / f"{part}-0.parquet", {"bytes": None, "path": str(secret)})
    with pytest.raises(DataError, match=r"names a file elsewhere: .*secret.png"):
        load_source("tinyimagenet", DataRoots.parse([str(tmp_path)]), tmp_path / "c", 8)


def test_tables_of_a_download(tmp_path: Path, draw: Draw) -> None:
    from datasets import Dataset

    inside, outside = draw(tmp_path / "kept" / "a.png"), draw(tmp_path / "b.png")
    rows = Dataset.from_dict(
        {"image": [{"bytes": None, "path": str(p)} for p in (inside, outside)], "label": [0, 1]}
    )
    table = HubTable({"t": rows}, "t", HubReference("t"), tmp_path / "kept")
    samples = table.samples(("0", "1"))
    assert samples[0].open().size == (8, 8)
    with pytest.raises(DataError, match="names a file elsewhere"):
        samples[1].open()


def test_lists_of_other_lengths_are_refused(tmp_path: Path, draw: Draw) -> None:
    dog(tmp_path, draw, "b.jpg")
    cells = np.empty((1, 1), dtype=object)
    cells[:, 0] = [f"{DOG}/a.jpg"]
    savemat(
        tmp_path / "dogs" / "test_list.mat",
        {"file_list": cells, "labels": np.ones((2, 1), np.uint8)},
    )
    with pytest.raises(DataError, match=r"cannot read .*test_list.mat"):
        dogs.load(tmp_path / "dogs")


@pytest.mark.parametrize(
    ("file", "text", "match"),
    [
        ("train_test_split.txt", "1 1\n2 2\n", "says 2, neither 0 nor 1"),
        ("images.txt", f"1 {BIRD}/b.jpg\n2 {BIRD}/a.jpg\n2 {BIRD}/c.jpg\n", "more than once"),
    ],
)
def test_tables_of_cub200(file: str, text: str, match: str, tmp_path: Path, draw: Draw) -> None:
    cub200(tmp_path, draw, "b.jpg")
    (tmp_path / "CUB_200_2011" / file).write_text(text)
    with pytest.raises(DataError, match=match):
        load_target("cub200", DataRoots.parse([str(tmp_path)]))


def test_two_files_of_one_id(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "chestx" / "images" / "00000001_000.png")
    draw(tmp_path / "chestx" / "images_001" / "00000001_000.png")
    (tmp_path / "chestx" / "Data_Entry_2017.csv").write_text(
        "Image Index,Finding Labels\n00000001_000.png,Mass\n"
    )
    with pytest.raises(DataError, match="are both called 00000001_000"):
        load_target("chestx", DataRoots.parse([str(tmp_path)]))
