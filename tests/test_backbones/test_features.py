"""Features of a data set: its blocks, the same bits, once, resumed, checked; what is refused."""

import errno
import hashlib
import itertools
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from torch import nn

from fsbench import backbones
from fsbench.backbones import features as feature_files
from fsbench.backbones.base import Backbone
from fsbench.backbones.cost import count_macs
from fsbench.backbones.features import FeatureRequest, FeatureStore, feature_block_size
from fsbench.core import arrays
from fsbench.core.arrays import ArrayWriter, evict_arrays, lock_folder, read_array
from fsbench.core.errors import CheckpointError, DataError, FsbenchError, UsageError
from fsbench.core.io import read_sealed, write_sealed
from fsbench.core.progress import SILENT
from fsbench.core.specs import FeatureSpec, ImageSpec
from fsbench.data.base import TargetDataset
from fsbench.data.images import crop_centres

Pictures = Callable[..., TargetDataset]
Want = Callable[..., FeatureRequest]
Fake = Callable[[Callable[[int], Any]], None]
SMALL = ImageSpec(input_size=16)


@pytest.fixture
def want(backbone: Backbone, pictures: Pictures) -> Want:
    """want(n): the request of n noise images of 16 px; fields: those that differ."""

    def make(n: int, *, name: str = "noise", changed: int = -1, **fields: Any) -> FeatureRequest:
        dataset = pictures(n, name=name, changed=changed)
        return replace(FeatureRequest(backbone, dataset, SMALL, "0" * 64), **fields)

    return make


@pytest.fixture
def sizes(backbone: Backbone) -> list[int]:
    """Sizes of all blocks that go through the network."""
    sizes: list[int] = []
    backbone.module.register_forward_hook(lambda _m, args, _o: sizes.append(len(args[0])))
    return sizes


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_normalising_is_that_of_every_pixel_alone(
    layout: torch.memory_format, backbone: Backbone
) -> None:
    """Bit for bit, and in the layout of the images."""
    every = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(2, 3, 16, 16)
    images = every.contiguous(memory_format=layout)
    for pixels in (images, images.double() / 255):
        before, normalised = pixels.clone(), backbone.normalised(pixels)
        assert normalised.is_contiguous(memory_format=layout)
        assert torch.equal(pixels, before)
        for c, (mean, std) in enumerate(zip(backbone.facts.mean, backbone.facts.std, strict=True)):
            x = pixels[:, c].float() / 255 if pixels is images else pixels[:, c]
            assert torch.equal(normalised[:, c], (x - x.new_tensor(mean)) / x.new_tensor(std))


def test_features_are_those_of_each_image_and_extracted_once(
    want: Want, store: FeatureStore, sizes: list[int]
) -> None:
    request = want(6)
    features = store.get(request)
    assert sizes == [2, 4, 4, 2]  # a test of the input size, full blocks only, the cost
    assert np.array_equal(features, store.get(request))
    assert len(sizes) == 4
    assert (features.shape, features.dtype) == ((6, 64), np.float32)
    pixels = crop_centres(map(request.dataset.image, range(6)), SMALL, 6)
    alone = request.backbone.features(torch.from_numpy(pixels))
    np.testing.assert_allclose(features, alone, rtol=1e-5, atol=1e-5)


def test_an_image_keeps_its_bits_whoever_decodes_it_or_is_beside_it(
    want: Want, tmp_path: Path
) -> None:
    """Other workers, another neighbour, and padding instead of neighbours."""

    def extract(name: str, n: int, workers: int = 2, changed: int = -1) -> Any:
        return FeatureStore(tmp_path / name, 4, workers).get(want(n, name=name, changed=changed))

    ten, other = extract("ten", 10), extract("other", 10, changed=1)
    assert not np.array_equal(ten[1], other[1])
    assert np.array_equal(np.delete(ten, 1, axis=0), np.delete(other, 1, axis=0))
    assert np.array_equal(ten, extract("twelve", 12)[:10])
    for workers in (0, 1, 3):
        assert extract(f"workers{workers}", 10, workers).tobytes() == ten.tobytes()


@pytest.mark.parametrize(("seconds", "n_saved"), [(0.0, 2), (1e9, 0)])
def test_a_kill_midway_resumes_to_the_same_bytes(
    seconds: float,
    n_saved: int,
    want: Want,
    sizes: list[int],
    tmp_path: Path,
    report: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The disk as it was while the third of five blocks was in the network."""
    monkeypatch.setattr(arrays, "MARK_SECONDS", seconds)
    cache, killed, request = tmp_path / "whole", tmp_path / "killed", want(18)

    def snapshot(_module: nn.Module, _args: object, _out: object) -> None:
        if len(sizes) == 4:  # the first one is a test of the input size
            shutil.copytree(cache, killed)

    hook = request.backbone.module.register_forward_hook(snapshot)
    whole = FeatureStore(cache, 4).get(request)
    hook.remove()
    finished = [path.parent.name for path in killed.glob("features/*/array.npy")]
    assert all(".partial" in name for name in finished)
    sizes.clear()
    resumed = FeatureStore(killed, 4, report=report).get(request)
    assert sizes == [2, *[4] * (5 - n_saved), 2]
    assert report.tasks == [["noise features", 18, 4 * n_saved, 18 - 4 * n_saved]]
    assert resumed.tobytes() == whole.tobytes()
    files = [{path.name for path in folder.rglob("*.*")} for folder in (killed, cache)]
    assert files[0] == files[1]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """fake(rows): features of block 0, 1, ... in place of the network's."""

    def replace_network(rows: Callable[[int], Any]) -> None:
        calls = itertools.count()
        monkeypatch.setattr(feature_files, "compute_features", lambda *_: rows(next(calls)))
        monkeypatch.setattr(feature_files, "check_input_size", lambda *_: None)

    return replace_network


@pytest.fixture
def slow_blocks(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 4 images: 100 s for the first, 10 s for the others."""
    clock = [0.0]

    def compute(block: int) -> Any:
        clock[0] += 10.0 if block else 100.0
        return np.random.default_rng(block).normal(size=(4, 64)).astype(np.float32)

    fake(compute)
    monkeypatch.setattr(feature_files.time, "monotonic", lambda: clock[0])


@pytest.mark.usefixtures("slow_blocks")
@pytest.mark.parametrize(("n", "speed"), [(18, 0.4), (6, 0.4), (3, 0.04)])
def test_cost_is_of_forward_passes_and_stays_with_the_features(
    n: int, speed: float, want: Want, store: FeatureStore
) -> None:
    request = want(n)
    assert store.read_cost(request) is None
    store.get(request)
    cost = store.read_cost(request)
    assert cost is not None
    assert cost.images_per_second == speed
    assert cost.macs == count_macs(request.backbone, 16, "cpu")
    meta = store.locate(request) / "meta.json"
    facts = read_sealed(meta)
    del facts["cost"]
    write_sealed(meta, facts)
    assert store.read_cost(request) is None, "older features have no cost"


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a bit of the first row": (
        "array.npy",
        lambda c: c[:-1530] + bytes([c[-1530] ^ 1]) + c[-1529:],
    ),
    "a cut end": ("array.npy", lambda c: c[:-1000]),
    "a cut header": ("array.npy", lambda c: c[:6]),
    "another fact": ("meta.json", lambda c: c.replace(b"float32", b"float64")),
    "other content": ("meta.json", lambda _: b"[]"),
    "no content": ("meta.json", lambda _: b"{"),
}


@pytest.mark.parametrize("is_finished", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_array_is_computed_again(
    damage: str, is_finished: bool, want: Want, store: FeatureStore, report: Any
) -> None:
    """Six rows of 64 features, of an unfinished array four."""
    request = want(6)
    whole, folder = store.get(request).tobytes(), store.locate(request)
    if not is_finished:
        folder = folder.rename(folder.with_name(f"{folder.name}.partial"))
        done = hashlib.sha256(np.load(folder / "array.npy")[:4].tobytes()).hexdigest()
        (folder / "meta.json").write_text(json.dumps({"rows": 4, "sha256": done}))
    name, change = DAMAGES[damage]
    (folder / name).write_bytes(change((folder / name).read_bytes()))
    assert not report.lines
    assert store.get(request).tobytes() == whole
    assert (f"{folder} is damaged" in report.text) == is_finished


def test_an_array_larger_than_memory_is_read(tmp_path: Path) -> None:
    folder, shape = tmp_path / "large", (2**42,)
    ArrayWriter(folder, shape, np.uint8).finish({})  # a sparse file of 4 TiB
    cached = read_array(folder, shape)
    assert cached is not None
    assert cached.values.shape == shape


@pytest.mark.parametrize("suffix", ["", ".partial"])
def test_an_array_that_the_system_does_not_map_is_not_deleted(
    suffix: str, want: Want, store: FeatureStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = want(6)
    store.get(request)
    folder = store.locate(request)
    folder = folder.rename(folder.with_name(f"{folder.name}{suffix}"))

    def refuse(path: Path, mode: str, **_: object) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(np.lib.format, "open_memmap", refuse)
    with pytest.raises(FsbenchError, match="cannot be read: Cannot allocate memory"):
        store.get(request)
    assert (folder / "array.npy").stat().st_size > 6 * 64 * 4


def test_what_belongs_to_the_key(
    want: Want, store: FeatureStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anything that can change a bit gives another entry; the model's name does not."""
    request = want(4)
    backbone = request.backbone

    def with_facts(**changes: Any) -> FeatureRequest:
        facts = backbone.facts.model_copy(update=changes)
        return replace(request, backbone=replace(backbone, facts=facts))

    changes = {"weights_hash": "1" * 64, "features": "cls token", "mean": (0.5,) * 3}
    changes |= {"std": (0.5,) * 3, "feature_spec": FeatureSpec(layers="layer1")}
    images = [ImageSpec(input_size=17), ImageSpec(input_size=16, resize_factor=1.25)]
    requests = [
        request,
        *(with_facts(**{name: value}) for name, value in changes.items()),
        *(replace(request, image=image) for image in images),
        replace(request, fingerprint="1" * 64),
        replace(request, backbone=replace(backbone, fingerprint="1")),
    ]
    keys = [store.locate(request).name for request in requests]
    keys.append(FeatureStore(tmp_path / "cache", 8).locate(request).name)
    gpu = FeatureStore(tmp_path / "cache", 4, device="cuda")
    of_gpu = gpu.locate(request)
    torch.set_num_threads(2)
    assert gpu.locate(request) == of_gpu, "nodes with GPUs have other processors"
    keys += [store.locate(request).name, of_gpu.name]
    for name in ("timm", "torchvision"):  # another version in front of the present one
        about = tmp_path / name / f"{name}-99.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.0\n")
        monkeypatch.syspath_prepend(tmp_path / name)
        keys.append(store.locate(request).name)
    assert len(set(keys)) == len(keys) == 15
    assert store.locate(with_facts(ref="an/alias")).name == keys[-1]


@contextmanager
def no_rights() -> Iterator[None]:
    """Run as a user that may not write: root may write anywhere."""
    user = os.geteuid()
    os.seteuid(user or 65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_read_only_cache_that_holds_everything_is_read(want: Want) -> None:
    with TemporaryDirectory() as name:  # unlike tmp_path below a folder that others may enter
        cache = Path(name) / "cache"
        store, request = FeatureStore(cache, batch_size=4), want(6)
        first = store.get(request)
        for lock in cache.rglob("*.lock"):
            lock.unlink()
        folders = [Path(name), *(path for path in Path(name).rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        with no_rights():
            assert np.array_equal(store.get(request), first)
            with pytest.raises(PermissionError):
                store.get(replace(request, fingerprint="1" * 64))
        for folder in folders:
            folder.chmod(0o755)


@pytest.mark.parametrize(
    ("value", "message"), [(np.nan, "gives NaN.*images 4 to 5"), (0.0, "gives the same features")]
)
def test_features_that_are_not_finite_or_constant_are_refused(
    value: float, message: str, want: Want, store: FeatureStore, fake: Fake
) -> None:
    fake(lambda block: np.full((4, 64), value if block else 0.0, np.float32))
    with pytest.raises(CheckpointError, match=f"fsbench/toy_resnet {message}"):
        store.get(want(6))
    suffixes = {path.parent.suffix for path in store.cache.glob("features/*/meta.json")}
    assert suffixes == {".partial"}


def test_bfloat16_is_another_backbone_with_features_near_those_of_float32(
    want: Want, store: FeatureStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    low, plain = (
        backbones.load_backbone(
            "fsbench/toy_resnet", random_init=0, features=backbones.base.feature_spec(dtype=dtype)
        )
        for dtype in ("bf16", "fp32")
    )
    assert plain.facts.identity == want(2).backbone.facts.identity == plain.facts.weights_hash
    assert low.facts.identity != plain.facts.identity
    assert low.facts.feature_spec.variant == ("bf16",)
    request = replace(want(6, name="six"), backbone=plain)
    exact = store.get(request)
    monkeypatch.setattr(feature_files, "has_bfloat16", lambda device: False)
    with pytest.raises(UsageError, match="--dtype bf16: cpu has no bfloat16 units"):
        store.get(replace(request, backbone=low))
    monkeypatch.setattr(feature_files, "has_bfloat16", lambda device: True)
    features = store.get(replace(request, backbone=low))
    assert features.dtype == np.float32
    assert 0 < np.abs(features - exact).max() < 0.05 * np.abs(exact).max()


def test_bad_sizes_and_images_are_refused(
    want: Want, store: FeatureStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the GPU says nothing of the size."""
    request = want(6)
    fixed = backbones.load_backbone("timm/test_vit_relpos", random_init=0)
    message = "takes no images of 16 px, it was trained at 160"
    with pytest.raises(UsageError, match=message) as caught:
        store.get(replace(request, backbone=fixed))
    assert "--input-size native" in caught.value.fix
    with monkeypatch.context() as patch:
        fault = torch.AcceleratorError("CUDA error: an illegal memory access was encountered")
        patch.setattr(feature_files, "compute_features", Mock(side_effect=fault))
        with pytest.raises(torch.AcceleratorError):
            store.get(replace(request, backbone=fixed))
    (request.dataset.root / "004.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"004\.png"):
        store.get(request)


def test_images_are_decoded_once_for_all_backbones(
    want: Want, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless they would take more than half of the limit; the bits are the same."""
    request, decoded = want(10), list[int]()
    other = replace(request, backbone=backbones.load_backbone("fsbench/toy_resnet", random_init=1))

    def crop(images: Any, image: ImageSpec, n: int) -> Any:
        pixels = crop_centres(images, image, n)
        decoded.append(n)
        return pixels

    monkeypatch.setattr(feature_files, "crop_centres", crop)
    features = [FeatureStore(tmp_path / "kept", 4).get(r).copy() for r in (request, other)]
    assert decoded == [64]
    few = FeatureStore(tmp_path / "few", 4, limit=2 * 10 * 3 * 16**2 - 1)
    for expected, r in zip(features, (request, other), strict=True):
        assert few.get(r).tobytes() == expected.tobytes()
    assert decoded == [64, *[4] * 6]
    assert not (tmp_path / "few" / "images").exists()


def test_an_eviction_takes_what_was_used_longest_ago(tmp_path: Path) -> None:
    """Not what is computed or used, and what it takes is never seen half, whenever it is killed."""
    folders = {name: tmp_path / "features" / name for name in "abcd"}
    for age, folder in enumerate(folders.values()):
        writer = ArrayWriter(folder, (1000,), np.uint8)
        writer.write(np.zeros(1000, np.uint8))
        writer.finish({})
        os.utime(folder, (age, age))
    size = sum(file.stat().st_size for file in folders["a"].iterdir())

    def evict(n_left: int) -> str:
        evict_arrays(tmp_path, ("features",), n_left * size)
        return "".join(name for name, folder in folders.items() if folder.exists())

    assert evict(4) == "abcd"
    mapped = read_array(folders["a"], (1000,))
    os.utime(folders["a"], (0, 0))
    with lock_folder(folders["b"], SILENT):
        assert evict(3) == "abd", "the oldest one that nobody uses"
        assert evict(0) == "ab"
    os.utime(folders["b"], (1, 1))
    assert read_array(folders["b"], (1000,)), "a use counts"
    assert mapped is not None
    del mapped
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: pytest.exit("killed"))
        with pytest.raises(pytest.exit.Exception):
            evict(1)
    assert read_array(folders["a"], (1000,)) is None
    assert evict(1) == "b"
    assert [path.name for path in (tmp_path / "features").iterdir() if path.is_dir()] == ["b"]


def test_the_block_size_is_a_function_of_the_shapes() -> None:
    """About 2**22 pixels a block, half for wide networks, between 8 and 128 images."""
    assert [feature_block_size(512, s) for s in (32, 64, 224, 384, 1024)] == [128, 128, 64, 16, 8]
    assert [feature_block_size(2048, s) for s in (32, 64, 224, 384, 1024)] == [128, 128, 32, 8, 8]


def test_two_processes_do_not_extract_at_once(tmp_path: Path, report: Any) -> None:
    def extract() -> None:
        with lock_folder(tmp_path / "key", report):
            pass

    other = threading.Thread(target=extract)
    with lock_folder(tmp_path / "key", SILENT):
        other.start()
        other.join(0.5)
        assert other.is_alive()
    other.join(20)
    assert not other.is_alive()
    assert "waiting" in report.text
