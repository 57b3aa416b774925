"""The decoded cache: built once, keyed by the files, checked on every load."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.reporters import Recorder

from fsbench.core.specs import SourceSubset
from fsbench.data import DataRoots, SourceDataset, load_source, source

Draw = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path, draw: Draw) -> Path:
    for name in ("train/a/1.png", "train/b/2.png", "val/a/3.png", "val/b/4.png"):
        draw(tmp_path / "src" / name, side=16)
    return tmp_path / "src"


def load(folder: Path, size: int = 16) -> tuple[SourceDataset, list[str]]:
    report = Recorder()
    source = load_source(f"folder:{folder}", DataRoots(), folder.parent / "c", size, report)
    return source, report.lines + [task[0] for task in report.tasks]


def test_a_second_load_decodes_nothing(folder: Path) -> None:
    first, lines = load(folder)
    assert lines == ["decode train", "decode val"]
    again, lines = load(folder)
    assert lines == []
    assert isinstance(again.train.images, np.memmap)
    assert again.fingerprint == first.fingerprint
    assert np.array_equal(again.train.images, first.train.images)


def test_a_folder_test_is_a_third_part_and_else_nothing_changes(folder: Path, draw: Draw) -> None:
    plain, _ = load(folder)
    assert plain.test is None
    for name in ("test/a/5.png", "test/b/6.png", "test/b/7.png"):
        draw(folder / name, side=16)
    tested, lines = load(folder)
    assert lines == ["decode train", "decode val", "decode test"]
    assert tested.test
    assert tested.test.labels.tolist() == [0, 1, 1]
    assert (tested.train.labels.tolist(), tested.val.labels.tolist()) == ([0, 1], [0, 1])
    assert tested.fingerprint != plain.fingerprint
    part = source.take_subset(tested, SourceSubset(classes=2, images_per_class=1)).test
    assert part
    assert part.labels.tolist() == [0, 1, 1]
    (folder / "val").rename(folder.parent / "val")
    validated, _ = load(folder)
    assert (validated.test, validated.val.labels.tolist()) == (None, [0, 1, 1])


def test_writing_into_the_arrays_never_reaches_the_cache(folder: Path) -> None:
    for expected in (["decode train", "decode val"], [], []):
        source, lines = load(folder)
        assert lines == expected
        assert source.train.images.any()
        source.train.images[:] = 0


def test_a_damaged_cache_is_built_anew(folder: Path) -> None:
    first, _ = load(folder)
    pixels = first.train.images.copy()
    (path,) = (folder.parent / "c" / "sources").glob("*-train/array.npy")
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    again, lines = load(folder)
    assert "damaged" in lines[0]
    assert again.fingerprint == first.fingerprint
    assert np.array_equal(again.train.images, pixels)


@pytest.mark.parametrize("name", ["meta.json", "array.npy"])
def test_a_half_cache_is_built_anew(folder: Path, name: str) -> None:
    load(folder)
    (path,) = (folder.parent / "c" / "sources").glob(f"*-val/{name}")
    path.write_bytes(path.read_bytes()[:5])
    assert "-val is damaged" in load(folder)[1][0]


def test_other_files_size_or_version_make_another_cache(
    folder: Path, draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = load(folder)
    small, lines = load(folder, size=8)
    assert small.train.images.shape == (2, 3, 8, 8)
    assert lines
    draw(folder / "train" / "a" / "0.png", side=16)
    more, lines = load(folder)
    assert len(more.train) == 3
    assert more.fingerprint != first.fingerprint
    changed = folder / "train" / "a" / "0.png"
    stat = changed.stat()
    os.utime(changed, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert load(folder)[1] == ["decode train", "decode val"]
    monkeypatch.setattr(source, "VERSION", 2)
    assert load(folder)[1] == ["decode train", "decode val"]


def test_a_source_of_images_with_unused_bits_is_warned_of_and_scaled(tmp_path: Path) -> None:
    for name in ("train/a/1.png", "train/b/2.png", "val/a/3.png", "val/b/4.png"):
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True)
        Image.fromarray(np.full((16, 16), 4095, dtype=np.uint16)).save(path)
    dark, lines = load(tmp_path / "src")
    warnings = [line for line in lines if line.startswith("warning: decode train: 2 16-bit images")]
    assert len(warnings) == 1
    assert "?bits=N" in warnings[0]
    log = Recorder()
    ref = f"folder:{tmp_path / 'src'}?bits=12"
    scaled = load_source(ref, DataRoots(), tmp_path / "c", 16, log)
    assert not any("warning" in line for line in log.lines)
    assert (int(dark.train.images.max()), int(scaled.train.images.min())) == (15, 255)
    assert scaled.fingerprint != dark.fingerprint
