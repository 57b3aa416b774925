"""TinyImageNet from the folder tree, from parquet and from a hub folder: the same label ids."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from datasets import ClassLabel, Value
from datasets import Image as ImageFeature
from support.images import encode_grey, write_table

from fsbench.core.errors import DataError
from fsbench.data import DataRoots, SourceDataset, load_source
from fsbench.data.catalog import all_facts

WNIDS = all_facts()["tinyimagenet"].classes
TRAIN = [(WNIDS[199], 10), (WNIDS[0], 20), (WNIDS[1], 30), (WNIDS[0], 40)]
VAL = [(WNIDS[1], 50), (WNIDS[0], 60)]
EXPECTED = sorted([*(("train", *row) for row in TRAIN), *(("val", *row) for row in VAL)])


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def write_tree(folder: Path) -> None:
    """The official folder tree; its images are grey, as some of the originals."""
    for n, (wnid, level) in enumerate(TRAIN):
        write(folder / "train" / wnid / "images" / f"{wnid}_{n}.JPEG", encode_grey(level))
    for n, (_, level) in enumerate(VAL):
        write(folder / "val" / "images" / f"val_{n}.JPEG", encode_grey(level))
    lines = [f"val_{n}.JPEG\t{wnid}\t0\t32\t44\t62\n" for n, (wnid, _) in enumerate(VAL)]
    (folder / "val" / "val_annotations.txt").write_text("".join(lines))
    (folder / "wnids.txt").write_text("\n".join(WNIDS) + "\n")


def write_sorted_copy(folder: Path) -> None:
    """A copy with folders of classes for validation, too, and sorted wnids."""
    write_tree(folder)
    for n, (wnid, _) in enumerate(VAL):
        (folder / "val" / wnid).mkdir()
        path = folder / "val" / "images" / f"val_{n}.JPEG"
        path.rename(folder / "val" / wnid / path.name)
    (folder / "wnids.txt").write_text("\n".join(sorted(WNIDS)) + "\n")


def write_parquet(path: Path, rows: list[tuple[str, int]], image: str = "image") -> None:
    columns = {image: [encode_grey(v) for _, v in rows], "label": [wnid for wnid, _ in rows]}
    write_table(path, columns, {image: Value("binary"), "label": Value("string")})


def write_tables(folder: Path) -> None:
    write_parquet(folder / "train-00000-of-00002.parquet", TRAIN[:2])
    write_parquet(folder / "train-00001-of-00002.parquet", TRAIN[2:])
    write_parquet(folder / "val-00000-of-00001.parquet", VAL)


def list_levels(dataset: SourceDataset) -> list[tuple[str, str, int]]:
    """(split, wnid, grey level) of every image."""
    return sorted(
        (name, dataset.facts.classes[label], int(image[0, 0, 0]))
        for name, part in (("train", dataset.train), ("val", dataset.val))
        for image, label in zip(part.images, part.labels, strict=True)
    )


def load(folder: Path, tmp_path: Path) -> SourceDataset:
    roots = DataRoots.parse([f"tinyimagenet={folder}"])
    return load_source("tinyimagenet", roots, tmp_path / "c", 64)


@pytest.mark.parametrize(
    ("write", "subfolder"),
    [
        (write_tree, "."),
        (write_tree, "tiny-imagenet-200"),
        (write_sorted_copy, "."),
        (write_tables, "."),
    ],
)
def test_every_layout_gives_the_same_images_and_label_ids(
    tmp_path: Path, write: Callable[[Path], None], subfolder: str
) -> None:
    write(tmp_path / "tin" / subfolder)
    dataset = load(tmp_path / "tin", tmp_path)
    assert list_levels(dataset) == EXPECTED
    images, labels = dataset.train.images, dataset.train.labels
    assert (images.shape, images.dtype, labels.dtype) == ((4, 3, 64, 64), np.uint8, np.int64)
    assert images.flags.c_contiguous
    assert (images[:, 0] == images[:, 2]).all()
    assert set(labels.tolist()) == {0, 1, 199}, "in the official order of wnids.txt"
    assert (dataset.name, dataset.n_classes, dataset.flags) == ("tinyimagenet", 200, {"subset"})


def test_changed_parquet_is_read_again(tmp_path: Path) -> None:
    write_tables(tmp_path / "p")
    before = load(tmp_path / "p", tmp_path)
    write_parquet(tmp_path / "p" / "val-00000-of-00001.parquet", [(WNIDS[1], 51), VAL[1]])
    after = load(tmp_path / "p", tmp_path)
    assert ("val", WNIDS[1], 51) in list_levels(after)
    assert before.fingerprint != after.fingerprint


def write_hub(folder: Path, names: list[str], rows: list[tuple[str, int]]) -> None:
    """A data set in the hub's layout: parquet with Image and ClassLabel features."""
    for split, part in (("train", rows), ("valid", rows[:2])):
        images = [{"bytes": encode_grey(level), "path": None} for _, level in part]
        columns = {"image": images, "label": [names.index(name) for name, _ in part]}
        kinds = {"image": ImageFeature(), "label": ClassLabel(names=names)}
        write_table(folder / "data" / f"{split}-00000-of-00001.parquet", columns, kinds)


def test_a_hub_copy_gets_the_official_label_ids_and_another_data_set_is_custom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(name, n) for n, name in enumerate(WNIDS)]
    write_hub(tmp_path / "zh-plus" / "tiny-imagenet", sorted(WNIDS), rows)
    write_hub(tmp_path / "org" / "pets", ["dog", "cat"], [("dog", 1), ("cat", 2), ("dog", 3)])
    monkeypatch.chdir(tmp_path)
    tiny = load_source("hf-hub:zh-plus/tiny-imagenet", DataRoots(), tmp_path / "c", 64)
    assert (tiny.name, tiny.facts.classes) == ("tinyimagenet", WNIDS)
    assert tiny.train.images[:, 0, 0, 0].tolist() == tiny.train.labels.tolist()
    pets = load_source("hf-hub:org/pets", DataRoots(), tmp_path / "c", 16)
    assert (pets.name, pets.facts.classes) == ("hub-org-pets", ("dog", "cat"))
    assert (pets.train.labels.tolist(), pets.flags) == ([0, 1, 0], {"custom"})
    with pytest.raises(DataError, match="cannot load nobody/nothing"):
        load_source("hf-hub:nobody/nothing", DataRoots(), tmp_path, 16)


def test_wrong_files_are_named(tmp_path: Path) -> None:
    write_tree(tmp_path / "tin")
    write(tmp_path / "tin" / "val" / "images" / "val_1.JPEG", b"broken")
    (tmp_path / "empty").mkdir()
    for part in ("train", "val"):
        write_parquet(tmp_path / "p" / f"{part}-0.parquet", VAL, image="picture")
    for folder, message in (
        ("tin", r"val_1.JPEG"),
        ("empty", r"empty lacks train/ and val/, or train-\*.parquet"),
        ("p", r"columns picture, label(.|\n)*`image` and `label`"),
    ):
        with pytest.raises(DataError, match=message):
            load(tmp_path / folder, tmp_path)
    caches = tmp_path / "c" / "sources"
    assert list(caches.glob("*-train/*"))
    assert not list(caches.glob("*-val/*")), "the good part alone is cached"
