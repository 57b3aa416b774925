"""Fingerprints follow the bytes; hashes are cached until a file is replaced."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from fsbench.core.errors import DataError
from fsbench.core.io import read_sealed, write_sealed
from fsbench.data import DataRoots, TargetDataset, describe_dataset, load_target
from fsbench.data.content import hash_contents
from fsbench.data.source import locate_image


@pytest.fixture
def dataset(eurosat: Path) -> TargetDataset:
    return load_target("eurosat", DataRoots.parse([str(eurosat.parent)]))


def test_it_is_the_hash_of_sorted_ids_and_contents(dataset: TargetDataset, tmp_path: Path) -> None:
    lines = []
    for name in ("Forest/Forest_9.jpg", "River/River_1.jpg", "River/River_2.jpg"):
        content = (dataset.root / "2750" / name).read_bytes()
        lines.append(f"{name} {hashlib.sha256(content).hexdigest()}\n")
    expected = hashlib.sha256("".join(lines).encode()).hexdigest()
    record = describe_dataset(dataset, tmp_path / "c")
    assert record.fingerprint == expected
    assert (record.class_ids, record.class_counts) == ((1, 8), (1, 2))
    assert record.class_names == ("Forest", "River")
    assert (record.flags, record.images_hash) == (("subset",), dataset.images_hash)


def cached_hash(store: Path) -> str:
    """The content hash of one image in the store."""
    first = next(iter(read_sealed(store)["entries"].values()))
    return str(first[-1])


def test_hashes_are_reused_until_a_file_changes(dataset: TargetDataset, tmp_path: Path) -> None:
    before = hash_contents(dataset, tmp_path / "c").fingerprint
    (store,) = (tmp_path / "c" / "hashes").iterdir()
    invented = json.dumps(read_sealed(store)).replace(cached_hash(store), "0" * 64)
    write_sealed(store, json.loads(invented))
    assert hash_contents(dataset, tmp_path / "c").fingerprint != before, "files are not read again"
    for path in (dataset.root / "2750").rglob("*.jpg"):
        os.utime(path)
    assert hash_contents(dataset, tmp_path / "c").fingerprint == before
    (dataset.root / "2750" / "River" / "River_1.jpg").unlink()
    with pytest.raises(DataError, match="River_1"):
        hash_contents(dataset, tmp_path / "c")


@pytest.mark.parametrize("how", ["in place", "by a file of another place"])
def test_images_replaced_at_equal_size_and_mtime_are_hashed_again(
    dataset: TargetDataset, tmp_path: Path, how: str
) -> None:
    before = hash_contents(dataset, tmp_path / "c").fingerprint
    changed = dataset.root / "2750" / "River" / "River_1.jpg"
    written = changed if how == "in place" else tmp_path / "new.jpg"
    stat, stamp = changed.stat(), locate_image(0, changed).stamp
    time.sleep(0.02)  # the clock of a file system ticks every few milliseconds
    written.write_bytes(changed.read_bytes()[::-1])
    os.utime(written, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    written.replace(changed)
    assert (changed.stat().st_size, changed.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    cached, anew = (hash_contents(dataset, tmp_path / c).fingerprint for c in ("c", "other"))
    assert cached == anew != before
    assert locate_image(0, changed).stamp != stamp, "decoded sources are decoded again"


def test_a_damaged_store_is_written_anew(dataset: TargetDataset, tmp_path: Path) -> None:
    before = hash_contents(dataset, tmp_path).fingerprint
    (store,) = (tmp_path / "hashes").iterdir()
    whole, sha256 = store.read_text(), cached_hash(store)
    for text in ("{", "[]", "", whole[:-1], whole.replace(sha256, sha256[::-1])):
        store.write_text(text)
        assert hash_contents(dataset, tmp_path).fingerprint == before
    assert store.read_text() == whole, "the good store is back"
