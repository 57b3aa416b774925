"""Fingerprints follow the bytes, and hashes are kept by path and what replacing a file changes."""

import hashlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fsbench.core.errors import DataError
from fsbench.core.progress import Reporter, Silent
from fsbench.data import DataRoots, describe_dataset, load_target
from fsbench.data.base import hash_lines
from fsbench.data.content import hash_contents
from fsbench.data.image_folder import stamp_files


def test_it_is_the_hash_of_sorted_ids_and_contents(eurosat: Path, tmp_path: Path) -> None:
    dataset = load_target("eurosat", DataRoots.parse([str(eurosat.parent)]))
    lines = []
    for name in ("Forest/Forest_9.jpg", "River/River_1.jpg", "River/River_2.jpg"):
        content = (eurosat / "2750" / name).read_bytes()
        lines.append(f"{name} {hashlib.sha256(content).hexdigest()}\n")
    expected = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert hash_contents(dataset, tmp_path / "c").fingerprint == expected


def test_hashes_are_reused_until_a_file_changes(eurosat: Path, tmp_path: Path) -> None:
    dataset = load_target("eurosat", DataRoots.parse([str(eurosat.parent)]))
    before = hash_contents(dataset, tmp_path / "c").fingerprint
    (store,) = (tmp_path / "c" / "hashes").iterdir()
    invented = store.read_text().split("\n")[1].replace(known_hash(store.read_text()), "0" * 64)
    store.write_text(f"{hash_lines([invented])}\n{invented}")
    other = hash_contents(dataset, tmp_path / "c").fingerprint
    assert other != before, "unchanged files are not read again"
    for path in (eurosat / "2750").rglob("*.jpg"):
        os.utime(path)
    assert hash_contents(dataset, tmp_path / "c").fingerprint == before


@pytest.mark.parametrize("how", ["in place", "by a file of another place"])
def test_images_replaced_at_equal_size_and_mtime_are_hashed_again(
    eurosat: Path, tmp_path: Path, how: str
) -> None:
    dataset = load_target("eurosat", DataRoots.parse([str(eurosat.parent)]))
    before = hash_contents(dataset, tmp_path / "c").fingerprint
    changed = eurosat / "2750" / "River" / "River_1.jpg"
    written = changed if how == "in place" else tmp_path / "new.jpg"
    stat = changed.stat()
    stamp = stamp_files([changed])
    time.sleep(0.02)  # the clock of a file system ticks every few milliseconds
    written.write_bytes(changed.read_bytes()[::-1])
    os.utime(written, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    written.replace(changed)
    assert (changed.stat().st_size, changed.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    assert (
        hash_contents(dataset, tmp_path / "c").fingerprint
        == hash_contents(dataset, tmp_path / "other").fingerprint
    )
    assert hash_contents(dataset, tmp_path / "c").fingerprint != before
    assert stamp_files([changed]) != stamp, "decoded sources are decoded again"


def test_a_damaged_store_is_written_anew(eurosat: Path, tmp_path: Path) -> None:
    dataset = load_target("eurosat", DataRoots.parse([str(eurosat.parent)]))
    before = hash_contents(dataset, tmp_path).fingerprint
    (store,) = (tmp_path / "hashes").iterdir()
    whole = store.read_text()
    flipped = whole.replace(before_hash := known_hash(whole), before_hash[::-1])
    for text in ("{", "[]", "", whole[:-1], flipped):
        store.write_text(text)
        said: list[str] = []
        assert hash_contents(dataset, tmp_path, listener(said)).fingerprint == before
        assert [str(store) in line and "damaged" in line for line in said] == [True]
    assert store.read_text() == whole, "the good store is back"


def known_hash(store: str) -> str:
    """The content hash of one image in the store's second line."""
    first = next(iter(json.loads(store.split("\n")[1]).values()))
    return str(first[-1])


def listener(lines: list[str]) -> Reporter:
    """A reporter that adds what it hears to the lines."""
    listener = Silent()
    listener.log = lines.append  # type: ignore[method-assign]
    return listener


def test_a_file_that_went_away_is_named(eurosat: Path, tmp_path: Path) -> None:
    dataset = load_target("eurosat", DataRoots.parse([str(eurosat.parent)]))
    (eurosat / "2750" / "River" / "River_1.jpg").unlink()
    with pytest.raises(DataError, match="River_1"):
        hash_contents(dataset, tmp_path)


def test_record_states_the_classes_present(
    eurosat: Path, tmp_path: Path, draw: Callable[..., Path]
) -> None:
    dataset = load_target("eurosat", DataRoots.parse([str(eurosat.parent)]))
    record = describe_dataset(dataset, tmp_path)
    assert (record.class_ids, record.class_counts) == ((1, 8), (1, 2))
    assert record.class_names == ("Forest", "River")
    assert record.flags == ("subset",)
    assert record.images_hash == dataset.images_hash
