"""TinyImageNet from the folder tree, from parquet and from a hub folder: the same label ids."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, SourceDataset, load_source
from fsbench.data.catalog import all_facts

WNIDS = all_facts()["tinyimagenet"].classes
TRAIN = [(WNIDS[199], 10), (WNIDS[0], 20), (WNIDS[1], 30), (WNIDS[0], 40)]
VAL = [(WNIDS[1], 50), (WNIDS[0], 60)]


def grey(level: int) -> bytes:
    buffer = BytesIO()
    Image.new("L", (64, 64), level).save(buffer, "png")
    return buffer.getvalue()


def write_tree(folder: Path) -> Path:
    """The official folder tree; one image is grey, as in the original."""
    for n, (wnid, level) in enumerate(TRAIN):
        path = folder / "train" / wnid / "images" / f"{wnid}_{n}.JPEG"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(grey(level))
    (folder / "val" / "images").mkdir(parents=True)
    lines = []
    for n, (wnid, level) in enumerate(VAL):
        (folder / "val" / "images" / f"val_{n}.JPEG").write_bytes(grey(level))
        lines.append(f"val_{n}.JPEG\t{wnid}\t0\t32\t44\t62\n")
    (folder / "val" / "val_annotations.txt").write_text("".join(lines))
    (folder / "wnids.txt").write_text("\n".join(WNIDS) + "\n")
    return folder


def write_parquet(path: Path, rows: list[tuple[str, int]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {"image": [grey(v) for _, v in rows], "label": [wnid for wnid, _ in rows]}
    pq.write_table(pa.table(table), path)


def levels(dataset: SourceDataset) -> list[tuple[str, str, int]]:
    """(split, wnid, grey level) of every image."""
    parts = (("train", dataset.train), ("val", dataset.val))
    return sorted(
        (name, dataset.facts.classes[label], int(image[0, 0, 0]))
        for name, part in parts
        for image, label in zip(part.images, part.labels, strict=True)
    )


EXPECTED = sorted([*(("train", *row) for row in TRAIN), *(("val", *row) for row in VAL)])


def load(folder: Path, tmp_path: Path, ref: str = "tinyimagenet") -> SourceDataset:
    return load_source(ref, DataRoots.parse([f"tinyimagenet={folder}"]), tmp_path / "c", 64)


def check(dataset: SourceDataset) -> None:
    assert levels(dataset) == EXPECTED
    assert dataset.train.images.shape == (4, 3, 64, 64)
    assert dataset.train.images.dtype == np.uint8
    assert dataset.train.images.flags.c_contiguous
    assert (dataset.train.images[:, 0] == dataset.train.images[:, 2]).all()
    assert dataset.train.labels.dtype == np.int64
    assert dataset.name == "tinyimagenet"
    assert dataset.n_classes == 200
    assert dataset.flags == {"subset"}


def test_the_official_tree(tmp_path: Path) -> None:
    dataset = load(write_tree(tmp_path / "tin"), tmp_path)
    check(dataset)
    assert set(dataset.train.labels.tolist()) == {0, 1, 199}


def test_the_folder_that_the_zip_unpacks_to(tmp_path: Path) -> None:
    write_tree(tmp_path / "tin" / "tiny-imagenet-200")
    check(load(tmp_path / "tin", tmp_path))


def test_val_sorted_into_class_folders(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "tin")
    for n, (wnid, _) in enumerate(VAL):
        (folder / "val" / wnid).mkdir()
        (folder / "val" / "images" / f"val_{n}.JPEG").rename(
            folder / "val" / wnid / f"val_{n}.JPEG"
        )
    check(load(folder, tmp_path))


def test_parquet(tmp_path: Path) -> None:
    write_parquet(tmp_path / "p" / "train-00000-of-00002.parquet", TRAIN[:2])
    write_parquet(tmp_path / "p" / "train-00001-of-00002.parquet", TRAIN[2:])
    write_parquet(tmp_path / "p" / "val-00000-of-00001.parquet", VAL)
    dataset = load(tmp_path / "p", tmp_path)
    check(dataset)
    assert dataset.train.labels.tolist() == [199, 0, 1, 0], "wnids.txt order, without the file"


def test_changed_parquet_is_read_again(tmp_path: Path) -> None:
    write_parquet(tmp_path / "p" / "train-0.parquet", TRAIN)
    write_parquet(tmp_path / "p" / "val-0.parquet", VAL)
    before = load(tmp_path / "p", tmp_path)
    write_parquet(tmp_path / "p" / "val-0.parquet", [(WNIDS[1], 51), VAL[1]])
    after = load(tmp_path / "p", tmp_path)
    assert ("val", WNIDS[1], 51) in levels(after)
    assert before.fingerprint != after.fingerprint


def write_hub(folder: Path, names: list[str], rows: list[tuple[str, int]]) -> None:
    """A data set in the hub's layout: parquet with Image and ClassLabel features."""
    from datasets import ClassLabel, Dataset, Features
    from datasets import Image as ImageFeature

    features = Features({"image": ImageFeature(), "label": ClassLabel(names=names)})
    for split, part in (("train", rows), ("valid", rows[:2])):
        data = {
            "image": [{"bytes": grey(level), "path": None} for _, level in part],
            "label": [names.index(name) for name, _ in part],
        }
        path = folder / "data" / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        Dataset.from_dict(data, features=features).to_parquet(str(path))


def test_a_hub_copy_gets_the_official_label_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(name, n) for n, name in enumerate(WNIDS)]
    write_hub(tmp_path / "zh-plus" / "tiny-imagenet", sorted(WNIDS), rows)
    monkeypatch.chdir(tmp_path)
    dataset = load_source("hf-hub:zh-plus/tiny-imagenet", DataRoots(), tmp_path / "c", 64)
    assert dataset.name == "tinyimagenet"
    assert dataset.facts.classes == WNIDS
    assert dataset.train.images[:, 0, 0, 0].tolist() == dataset.train.labels.tolist()


def test_another_hub_data_set_is_custom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_hub(tmp_path / "org" / "pets", ["dog", "cat"], [("dog", 1), ("cat", 2), ("dog", 3)])
    monkeypatch.chdir(tmp_path)
    dataset = load_source("hf-hub:org/pets", DataRoots(), tmp_path / "c", 16)
    assert dataset.name == "hub-org-pets"
    assert dataset.facts.classes == ("dog", "cat")
    assert dataset.train.labels.tolist() == [0, 1, 0]
    assert dataset.flags == {"custom"}
    assert "hub" in dataset.facts.label_rule


def test_an_unavailable_hub_data_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot load nobody/nothing"):
        load_source("hf-hub:nobody/nothing", DataRoots(), tmp_path, 16)


def test_columns_are_named(tmp_path: Path) -> None:
    for name in ("train", "val"):
        path = tmp_path / f"{name}-0.parquet"
        pq.write_table(pa.table({"picture": [b"x"], "label": ["y"]}), path)
    with pytest.raises(DataError, match=r"columns picture, label(.|\n)*`image` and `label`"):
        load(tmp_path, tmp_path)


def test_the_order_of_wnids_txt_decides(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "tin")
    (folder / "wnids.txt").write_text(f"{WNIDS[199]}\n{WNIDS[1]}\n{WNIDS[0]}\n")
    dataset = load(folder, tmp_path)
    assert dataset.facts.classes == (WNIDS[199], WNIDS[1], WNIDS[0])
    assert dataset.train.labels.tolist() == [0, 1, 2, 2]
    assert dataset.flags == {"subset"}
    assert levels(dataset) == EXPECTED


def test_unknown_wnids_and_empty_folders_are_refused(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "tin")
    (folder / "wnids.txt").write_text("n00000000\n")
    with pytest.raises(DataError, match=r"wnids.txt repeats a wnid or has one that"):
        load(folder, tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"empty lacks train/ and val/, or train-\*.parquet"):
        load(tmp_path / "empty", tmp_path)


def test_a_corrupt_image_is_named(tmp_path: Path, draw: Callable[..., Path]) -> None:
    folder = write_tree(tmp_path / "tin")
    (folder / "val" / "images" / "val_1.JPEG").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"val_1.JPEG"):
        load(folder, tmp_path)
    written = {path.name for path in (tmp_path / "c" / "sources").glob("*-train/*")}
    assert written == {"array.npy", "meta.json"}
    assert not list((tmp_path / "c" / "sources").glob("*-val/*"))


def test_the_wnids_are_the_official_200() -> None:
    assert len(set(WNIDS)) == 200
    assert list(WNIDS) != sorted(WNIDS)
    assert (WNIDS[0], WNIDS[199]) == ("n02124075", "n02504458")
