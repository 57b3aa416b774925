"""Features of a data set: the same bits, once, resumed, checked."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from fsbench.backbones import features as feature_files
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureRequest, FeatureStore
from fsbench.core import arrays
from fsbench.core.specs import ImageSpec
from fsbench.data.augmentation import RandomView
from fsbench.data.base import TargetDataset
from fsbench.data.content import hash_contents
from fsbench.data.images import to_array

Pictures = Callable[..., TargetDataset]
SMALL = ImageSpec(input_size=16)


def request_of(
    backbone: Backbone,
    dataset: TargetDataset,
    image: ImageSpec = SMALL,
    fingerprint: str = "0" * 64,
    view: RandomView | None = None,
) -> FeatureRequest:
    return FeatureRequest(backbone, dataset, image, fingerprint, view)


def count_blocks(backbone: Backbone) -> list[int]:
    """Sizes of all blocks that go through the network from now on."""
    sizes: list[int] = []
    backbone.module.register_forward_hook(lambda _m, args, _o: sizes.append(len(args[0])))
    return sizes


def test_features_are_those_of_each_image(
    backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    dataset = pictures(6)
    features = store.get(request_of(backbone, dataset))
    alone = [torch.from_numpy(to_array(dataset.image(i), SMALL)) for i in range(6)]
    expected = backbone.features(torch.stack(alone)).numpy()
    assert (features.shape, features.dtype) == ((6, 64), np.float32)
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-5)


def test_the_second_call_needs_no_network(
    backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    dataset, sizes = pictures(6), count_blocks(backbone)
    first = store.get(request_of(backbone, dataset))
    assert sizes == [2, 4, 4]  # one look at the input size, then full blocks only
    again = store.get(request_of(backbone, dataset))
    assert len(sizes) == 3
    assert np.array_equal(first, again)


def test_random_views_of_a_part_are_kept_apart_and_equal_those_made_on_the_way(
    backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    dataset, view = pictures(9), RandomView(0, 3)
    part = dataset.take(np.array([1, 2, 4, 5, 8]))
    assert part.canonical_ids == ("001", "002", "004", "005", "008")
    features = store.get(request_of(backbone, part, view=view))
    pixels = [view.pixels(dataset.image(i), SMALL, "noise", f"{i:03}") for i in (1, 2, 4, 5, 8)]
    expected = backbone.features(torch.from_numpy(np.stack(pixels))).numpy()
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-5)
    rows = [rows for _, rows in store.rows(request_of(backbone, part, fingerprint="", view=view))]
    np.testing.assert_array_equal(np.concatenate(rows), features)
    sizes = count_blocks(backbone)
    store.get(request_of(backbone, part, view=view))
    assert not sizes
    for other in ((part, RandomView(0, 4)), (part, RandomView(1, 3)), (part, None)):
        assert (store.get(request_of(backbone, other[0], view=other[1])) != features).any()
    rest = dataset.take(np.array([0, 3, 6, 7, 8]))
    assert (store.get(request_of(backbone, rest, view=view)) != features).any()


def test_the_number_of_workers_changes_no_bit(
    backbone: Backbone, pictures: Pictures, tmp_path: Path
) -> None:
    dataset = pictures(9)
    features = [
        FeatureStore(tmp_path / f"c{workers}", 4, workers).get(request_of(backbone, dataset))
        for workers in (0, 1, 3)
    ]
    assert features[0].tobytes() == features[1].tobytes() == features[2].tobytes()


def test_an_image_keeps_its_bits_whoever_stands_beside_it(
    backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    """Another neighbour, and padding instead of neighbours."""
    ten = store.get(request_of(backbone, pictures(10, name="ten"), fingerprint="0" * 64))
    other = store.get(
        request_of(backbone, pictures(10, name="other", changed=1), fingerprint="1" * 64)
    )
    twelve = store.get(request_of(backbone, pictures(12, name="twelve"), fingerprint="2" * 64))
    assert not np.array_equal(ten[1], other[1])
    assert np.array_equal(np.delete(ten, 1, axis=0), np.delete(other, 1, axis=0))
    assert np.array_equal(ten, twelve[:10])


@pytest.mark.parametrize(("seconds", "n_saved"), [(0.0, 2), (1e9, 0)])
def test_a_kill_midway_resumes_to_the_same_bytes(
    seconds: float,
    n_saved: int,
    backbone: Backbone,
    pictures: Pictures,
    tmp_path: Path,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The disk as it was while the third of five blocks was in the network."""
    monkeypatch.setattr(arrays, "MARK_SECONDS", seconds)
    dataset, cache, killed = pictures(18), tmp_path / "whole", tmp_path / "killed"
    calls: list[int] = []

    def snapshot(_module: nn.Module, _args: object, _out: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            shutil.copytree(cache, killed)

    native = replace(backbone, facts=backbone.facts.model_copy(update={"input_size": 16}))
    hook = backbone.module.register_forward_hook(snapshot)
    whole = FeatureStore(cache, 4).get(request_of(native, dataset))
    hook.remove()
    assert not any(
        path.name == "array.npy" and ".partial" not in path.parent.name
        for path in killed.rglob("*")
    )
    sizes = count_blocks(backbone)
    resumed = FeatureStore(killed, 4, report=report).get(request_of(native, dataset))
    assert len(sizes) == 5 - n_saved
    done = 4 * n_saved
    assert report.tasks == [["noise features", 18, done, 18 - done]]
    assert resumed.tobytes() == whole.tobytes()
    names = {path.name for path in (killed / "features").rglob("*") if path.suffix != ".lock"}
    assert names == {
        path.name for path in (cache / "features").rglob("*") if path.suffix != ".lock"
    }


@pytest.mark.parametrize("view", [None, RandomView(0, 3)])
@pytest.mark.parametrize(("n", "estimates"), [(18, 1), (18, 2), (12, 1), (6, 1), (3, 1)])
def test_an_estimate_keeps_its_blocks_and_changes_no_bit(
    n: int,
    estimates: int,
    view: RandomView | None,
    backbone: Backbone,
    pictures: Pictures,
    tmp_path: Path,
) -> None:
    dataset, n_blocks = pictures(n), -(-n // 4)
    whole = FeatureStore(tmp_path / "whole", 4).get(request_of(backbone, dataset, view=view))
    store, sizes = FeatureStore(tmp_path / "timed", 4), count_blocks(backbone)
    for i in range(estimates):
        assert store.seconds_per_image(request_of(backbone, dataset, view=view)) > 0
        assert sizes.count(4) == min(n_blocks, 3 * (i + 1))
    assert not store.holds(request_of(backbone, dataset))
    features = store.get(request_of(backbone, dataset, view=view))
    assert features.tobytes() == whole.tobytes()
    assert sizes.count(4) == n_blocks  # no block twice
    assert store.seconds_per_image(request_of(backbone, dataset, view=view)) == 0


@pytest.mark.parametrize(
    ("n", "seconds"), [(18, 2.5), (10, 20 / 6), (6, 5.0), (4, 25.0), (3, 100 / 3)]
)
def test_the_first_block_warms_up_and_counts_where_it_is_the_last(
    n: int,
    seconds: float,
    backbone: Backbone,
    pictures: Pictures,
    store: FeatureStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Blocks of 4 images: 100 s for the first, 10 s for the others."""
    clock = [0.0]

    def compute(backbone: Backbone, pixels: Any, device: str) -> Any:
        clock[0] += 10.0 if clock[0] else 100.0
        return np.ones((len(pixels), 64), np.float32)

    monkeypatch.setattr(feature_files, "compute_features", compute)
    monkeypatch.setattr(feature_files, "check_input_size", lambda *_: None)
    monkeypatch.setattr(feature_files.time, "monotonic", lambda: clock[0])
    taken = store.seconds_per_image(request_of(backbone, pictures(n)))
    assert taken == pytest.approx(seconds)


@pytest.mark.parametrize("damage", ["count", "array", "bit"])
def test_a_damaged_journal_starts_over_and_says_so(
    damage: str, backbone: Backbone, pictures: Pictures, report: Any, tmp_path: Path
) -> None:
    dataset, store = pictures(6), FeatureStore(tmp_path / "cache", 4, report=report)
    whole = store.get(request_of(backbone, dataset)).tobytes()
    (folder,) = [p for p in (tmp_path / "cache" / "features").iterdir() if p.is_dir()]
    partial = folder.rename(folder.with_name(folder.name + ".partial"))
    array = partial / "array.npy"
    rows = np.load(array)[:4]
    digest = hashlib.sha256(rows.tobytes()).hexdigest()
    mark = json.dumps({"rows": 4, "sha256": digest})
    (partial / "meta.json").write_text("{" if damage == "count" else mark)
    if damage == "array":
        array.write_bytes(b"\x93NUMPY")
    if damage == "bit":
        content = bytearray(array.read_bytes())
        content[content.index(rows.tobytes())] ^= 1
        array.write_bytes(content)
    assert store.get(request_of(backbone, dataset)).tobytes() == whole
    assert f"{partial} is damaged" in report.text


@pytest.mark.parametrize("damage", ["bit", "cut", "meta", "no meta"])
def test_a_damaged_cache_is_built_again_and_said(
    damage: str, backbone: Backbone, pictures: Pictures, store: FeatureStore, report: Any
) -> None:
    dataset = pictures(6)
    before = store.get(request_of(backbone, dataset)).tobytes()
    assert not report.lines
    (array,) = store.folder.rglob("array.npy")
    meta = array.with_name("meta.json")
    if damage == "bit":
        content = bytearray(array.read_bytes())
        content[-1] ^= 1
        array.write_bytes(content)
    elif damage == "cut":
        array.write_bytes(array.read_bytes()[:-5])
    elif damage == "meta":
        meta.write_text("[]")
    else:
        meta.unlink()
    assert store.get(request_of(backbone, dataset)).tobytes() == before
    assert str(array.parent) in report.text
    assert "damaged" in report.text


def test_what_belongs_to_the_key(
    backbone: Backbone, pictures: Pictures, store: FeatureStore, tmp_path: Path
) -> None:
    """Anything that can change a bit gives another entry; the model's name does not."""
    dataset, facts = pictures(4), backbone.facts
    store.get(request_of(backbone, dataset))

    def others(**changes: Any) -> Backbone:
        return replace(backbone, facts=facts.model_copy(update=changes))

    store.get(request_of(others(weights_hash="1" * 64), dataset))
    store.get(request_of(others(features="cls token"), dataset))
    store.get(request_of(others(mean=(0.5, 0.5, 0.5)), dataset))
    store.get(request_of(others(std=(0.5, 0.5, 0.5)), dataset))
    store.get(request_of(backbone, dataset, ImageSpec(input_size=17)))
    store.get(request_of(backbone, dataset, ImageSpec(input_size=16, resize_factor=1.25)))
    store.get(request_of(backbone, dataset, fingerprint="1" * 64))
    FeatureStore(tmp_path / "cache", 8).get(request_of(backbone, dataset))
    torch.set_num_threads(2)
    store.get(request_of(backbone, dataset))
    assert len(list(store.folder.glob("*/meta.json"))) == 10
    store.get(request_of(others(ref="an/alias"), dataset))
    assert len(list(store.folder.glob("*/meta.json"))) == 10


def test_versions_of_libraries_with_networks_belong_to_the_key(
    backbone: Backbone,
    pictures: Pictures,
    store: FeatureStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other versions of timm and torchvision are installed in front of the present ones."""
    dataset, sizes = pictures(4), count_blocks(backbone)
    for i, name in enumerate(("timm", "torchvision"), 1):
        about = tmp_path / name / f"{name}-99.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.0\n")
        store.get(request_of(backbone, dataset))
        monkeypatch.syspath_prepend(tmp_path / name)
        store.get(request_of(backbone, dataset))
        assert len(list(store.folder.glob("*/meta.json"))) == 1 + i
    assert sizes == [2, 4] * 3


@contextmanager
def no_rights() -> Iterator[None]:
    """Run as a user that may not write: root may write anywhere."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


def test_a_read_only_cache_that_holds_everything_is_read(
    backbone: Backbone, pictures: Pictures, report: Any
) -> None:
    dataset = pictures(6)
    with TemporaryDirectory() as name:  # unlike tmp_path below a folder that others may enter
        images, cache = Path(name) / "images", Path(name) / "cache"
        shutil.copytree(dataset.root, images)
        dataset = replace(dataset, root=images)
        store = FeatureStore(cache, batch_size=4, report=report)
        written = hash_contents(dataset, cache, report).fingerprint
        first = store.get(request_of(backbone, dataset, fingerprint=written))
        for lock in cache.rglob("*.lock"):
            lock.unlink()
        folders = [Path(name), *(path for path in Path(name).rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        with no_rights():
            assert hash_contents(dataset, cache, report).fingerprint == written
            assert np.array_equal(
                store.get(request_of(backbone, dataset, fingerprint=written)), first
            )
            with pytest.raises(PermissionError):
                store.get(request_of(backbone, dataset, fingerprint="1" * 64))
        for folder in folders:
            folder.chmod(0o755)
        for path in images.iterdir():
            os.utime(path)
        (cache / "hashes").chmod(0o555)
        with no_rights():
            assert hash_contents(dataset, cache, report).fingerprint == written
        (cache / "hashes").chmod(0o755)
    assert "content hashes are not cached" in report.text
