"""The decoded cache of sources, keyed by the files and checked on every load, and their parts."""

import os
from pathlib import Path

import numpy as np
import pytest
from support.images import draw_grey, draw_images
from support.reporters import Recorder

from fsbench.core import arrays
from fsbench.core.errors import DataError
from fsbench.core.specs import SourceSubset
from fsbench.data import DataRoots, SourceDataset, load_source, source
from fsbench.data.source import take_subset
from pretrain.recipes.registry import load_recipe

FILES = ("train/a/1.png", "train/b/2.png", "val/a/3.png", "val/b/4.png")
DECODED = ["decode train", "decode val"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return draw_images(tmp_path / "src", *FILES, side=16)


def load(folder: Path, size: int = 16, query: str = "") -> tuple[SourceDataset, list[str]]:
    report, cache = Recorder(), folder.parent / "c"
    source = load_source(f"folder:{folder}{query}", DataRoots(), cache, size, report)
    return source, report.lines + [task[0] for task in report.tasks]


def test_a_second_load_decodes_nothing_and_nothing_writes_to_the_cache(folder: Path) -> None:
    first, lines = load(folder)
    pixels = first.train.images.copy()
    assert lines == DECODED
    for _ in range(2):
        again, lines = load(folder)
        assert lines == []
        assert isinstance(again.train.images, np.memmap)
        assert again.fingerprint == first.fingerprint
        assert np.array_equal(again.train.images, pixels)
        with pytest.raises(ValueError, match="read-only"):
            again.train.images[:] = 0


def test_a_folder_test_is_a_third_part_and_else_nothing_changes(folder: Path) -> None:
    plain, _ = load(folder)
    assert plain.test is None
    draw_images(folder, "test/a/5.png", "test/b/6.png", "test/b/7.png", side=16)
    tested, lines = load(folder)
    assert lines == ["decode test"]
    assert tested.test
    assert tested.test.labels.tolist() == [0, 1, 1]
    assert (tested.train.labels.tolist(), tested.val.labels.tolist()) == ([0, 1], [0, 1])
    assert tested.fingerprint != plain.fingerprint
    part = take_subset(tested, SourceSubset(classes=2, images_per_class=1)).test
    assert part
    assert part.labels.tolist() == [0, 1, 1]
    (folder / "val").rename(folder.parent / "val")
    validated, _ = load(folder)
    assert (validated.test, validated.val.labels.tolist()) == (None, [0, 1, 1])


def test_a_large_array_is_hashed_once_and_when_its_file_has_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "LARGE", 0)
    first, _ = load(folder)
    with monkeypatch.context() as patch:
        patch.setattr(arrays, "hashlib", None)
        assert load(folder)[1] == []
    (path,) = (folder.parent / "c" / "sources").glob("*-train/array.npy")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    os.utime(path, (0, 0))
    again, lines = load(folder)
    assert "is damaged" in lines[0]
    assert again.fingerprint == first.fingerprint
    assert path.read_bytes() == whole


def test_other_files_size_or_version_make_another_cache(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = load(folder)
    small, lines = load(folder, size=8)
    assert (small.train.images.shape, lines) == ((2, 3, 8, 8), DECODED)
    changed = draw_images(folder, "train/a/0.png", side=16) / "train" / "a" / "0.png"
    more, lines = load(folder)
    assert (len(more.train), more.fingerprint != first.fingerprint) == (3, True)
    assert lines == ["decode train"], "only the part that changed"
    stat = changed.stat()
    os.utime(changed, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert load(folder)[1] == ["decode train"]
    monkeypatch.setattr(source, "VERSION", 2)
    assert load(folder)[1] == DECODED


def test_sixteen_bit_images_are_scaled(folder: Path) -> None:
    draw_grey(folder, *FILES, value=4095)
    dark, scaled = load(folder)[0], load(folder, query="?bits=12")[0]
    assert (int(dark.train.images.max()), int(scaled.train.images.min())) == (15, 255)
    assert scaled.fingerprint != dark.fingerprint


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SourceDataset:
    return load_source("toy_source", DataRoots(), Path(tmp_path_factory.mktemp("c")), 16)


def part(whole: SourceDataset, classes: int, images: int) -> SourceDataset:
    return take_subset(whole, SourceSubset(classes=classes, images_per_class=images))


def keys(images: np.ndarray) -> set[bytes]:
    return {image.tobytes() for image in images}


def test_a_part_has_its_counts_and_all_other_images_validate(whole: SourceDataset) -> None:
    small = part(whole, 4, 6)
    assert np.bincount(small.train.labels).tolist() == [6] * 4
    assert (small.n_classes, small.facts.images_per_class) == (4, (6,) * 4)
    assert set(small.flags) == {*whole.flags, "subset"}
    assert small.fingerprint != whole.fingerprint
    for label, name in enumerate(small.facts.classes):
        original = whole.facts.classes.index(name)
        train, val = (keys(s.take(s.labels == label).images) for s in (small.train, small.val))
        splits = (whole.train, whole.val)
        every, old = (keys(s.take(s.labels == original).images) for s in splits)
        assert train | val == every | old
        assert not train & val
    assert len(small.train) + len(small.val) == 4 * 180


def test_a_larger_part_contains_a_smaller_one(whole: SourceDataset) -> None:
    small, more, wider = (keys(part(whole, *n).train.images) for n in ((4, 6), (4, 9), (6, 6)))
    assert small < more
    assert small < wider
    for size in ((999, 2), (2, 10**6)):
        with pytest.raises(
            DataError, match=r"too few for \d+ classes x (.|\n)*lower source_subset"
        ):
            part(whole, *size)


def test_a_recipe_states_its_part() -> None:
    recipe = load_recipe("regime/lw")
    assert str(recipe.source_subset) == "20 classes x 25 images"
    fewer = recipe.override(["source_subset.images_per_class=10"])
    assert fewer.source_subset == SourceSubset(classes=20, images_per_class=10)
    assert fewer.digest() != recipe.digest()
    stated = load_recipe("toy/seal").override(
        ['source_subset={"classes": 3, "images_per_class": 4}']
    )
    assert stated.source_subset == SourceSubset(classes=3, images_per_class=4)
    assert "source_subset" not in load_recipe("pilot/seal").model_dump()
