"""Features of a data set: its blocks, the same bits, once, resumed, checked; what is refused."""

import hashlib
import json
import multiprocessing
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
from torch import Tensor, nn

from fsbench import backbones
from fsbench.backbones import features as feature_files
from fsbench.backbones.base import Backbone
from fsbench.backbones.features import FeatureRequest, FeatureStore, blocks, feature_block_size
from fsbench.core import arrays
from fsbench.core.arrays import lock_folder
from fsbench.core.errors import CheckpointError, DataError, UsageError
from fsbench.core.progress import SILENT
from fsbench.core.specs import ImageSpec
from fsbench.data.augmentation import RandomView
from fsbench.data.base import TargetDataset
from fsbench.data.images import to_array

Pictures = Callable[..., TargetDataset]
SMALL = ImageSpec(input_size=16)


@pytest.mark.parametrize("view", [None, RandomView(0, 3)])
@pytest.mark.parametrize(("size", "workers"), [(2, 0), (2, 3), (8, 8), (21, 4)])
@pytest.mark.parametrize("first", [0, 1])
def test_blocks_hold_their_images_and_black_ones_behind_them(
    first: int,
    size: int,
    workers: int,
    view: RandomView | None,
    pictures: Pictures,
    backbone: Backbone,
) -> None:
    """With fewer threads than blocks and with more; without a copy for the network."""
    dataset = pictures(2 * size + size // 2 + 1)
    request = FeatureRequest(backbone, dataset, SMALL, view=view)
    decoded = list(blocks(request, size, first, workers))
    starts = range(first * size, len(dataset), size)
    assert [b[:2] for b in decoded] == [(i, min(size, len(dataset) - i)) for i in starts]
    for start, n, pixels in decoded:
        assert (pixels.shape, pixels.dtype) == ((size, 3, 16, 16), np.uint8)
        assert torch.from_numpy(pixels).is_contiguous(memory_format=torch.channels_last)
        for i in range(n):
            image, name = dataset.image(start + i), dataset.canonical_ids[start + i]
            plain = (
                view.pixels(image, SMALL, dataset.name, name) if view else to_array(image, SMALL)
            )
            np.testing.assert_array_equal(pixels[i], plain)
        assert not pixels[n:].any()


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


def test_features_are_those_of_each_image_and_extracted_once(
    backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    dataset, sizes = pictures(6), count_blocks(backbone)
    features = store.get(request_of(backbone, dataset))
    assert sizes == [2, 4, 4]  # one look at the input size, then full blocks only
    assert np.array_equal(features, store.get(request_of(backbone, dataset)))
    assert len(sizes) == 3
    alone = [torch.from_numpy(to_array(dataset.image(i), SMALL)) for i in range(6)]
    expected = backbone.features(torch.stack(alone)).numpy()
    assert (features.shape, features.dtype) == ((6, 64), np.float32)
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-5)


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
    rest = dataset.take(np.array([0, 3, 6, 7, 8]))
    for other, its in (
        (part, RandomView(0, 4)),
        (part, RandomView(1, 3)),
        (part, None),
        (rest, view),
    ):
        assert (store.get(request_of(backbone, other, view=its)) != features).any()


def test_an_image_keeps_its_bits_whoever_decodes_it_or_is_beside_it(
    backbone: Backbone, pictures: Pictures, tmp_path: Path
) -> None:
    """Other workers, another neighbour, and padding instead of neighbours."""

    def extract(name: str, n: int, workers: int = 2, changed: int = -1) -> Any:
        dataset = pictures(n, name=name, changed=changed)
        return FeatureStore(tmp_path / name, 4, workers).get(request_of(backbone, dataset))

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
    finished = [path.parent.name for path in killed.rglob("array.npy")]
    assert all(".partial" in name for name in finished)
    sizes = count_blocks(backbone)
    resumed = FeatureStore(killed, 4, report=report).get(request_of(native, dataset))
    assert len(sizes) == 5 - n_saved
    assert report.tasks == [["noise features", 18, 4 * n_saved, 18 - 4 * n_saved]]
    assert resumed.tobytes() == whole.tobytes()
    names = [
        {path.name for path in (folder / "features").rglob("*") if path.suffix != ".lock"}
        for folder in (killed, cache)
    ]
    assert names[0] == names[1]


@pytest.mark.parametrize("view", [None, RandomView(0, 3)])
@pytest.mark.parametrize(("n", "estimates"), [(18, 1), (18, 2), (12, 1), (3, 1)])
def test_an_estimate_keeps_its_blocks_and_changes_no_bit(
    n: int,
    estimates: int,
    view: RandomView | None,
    backbone: Backbone,
    pictures: Pictures,
    tmp_path: Path,
) -> None:
    request, n_blocks = request_of(backbone, pictures(n), view=view), -(-n // 4)
    whole = FeatureStore(tmp_path / "whole", 4).get(request)
    store, sizes = FeatureStore(tmp_path / "timed", 4), count_blocks(backbone)
    for i in range(estimates):
        assert store.seconds_per_image(request) > 0
        assert sizes.count(4) == min(n_blocks, 3 * (i + 1))
    assert not store.holds(request)
    assert store.get(request).tobytes() == whole.tobytes()
    assert sizes.count(4) == n_blocks  # no block twice
    assert store.seconds_per_image(request) == 0


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
    damage: str, backbone: Backbone, pictures: Pictures, report: Any, store: FeatureStore
) -> None:
    dataset = pictures(6)
    whole = store.get(request_of(backbone, dataset)).tobytes()
    (folder,) = [path for path in store.folder.iterdir() if path.is_dir()]
    partial = folder.rename(folder.with_name(folder.name + ".partial"))
    array = partial / "array.npy"
    rows = np.load(array)[:4].tobytes()
    mark = json.dumps({"rows": 4, "sha256": hashlib.sha256(rows).hexdigest()})
    (partial / "meta.json").write_text("{" if damage == "count" else mark)
    if damage == "array":
        array.write_bytes(b"\x93NUMPY")
    if damage == "bit":
        array.write_bytes(array.read_bytes().replace(rows, bytes([rows[0] ^ 1]) + rows[1:]))
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
    meta, content = array.with_name("meta.json"), array.read_bytes()
    if damage == "no meta":
        meta.unlink()
    elif damage == "meta":
        meta.write_text("[]")
    else:
        flipped = bytes([content[-5] ^ 1]) if damage == "bit" else b""
        array.write_bytes(content[:-5] + flipped + content[-4:])
    assert store.get(request_of(backbone, dataset)).tobytes() == before
    assert f"{array.parent} is damaged" in report.text


def test_what_belongs_to_the_key(
    backbone: Backbone,
    pictures: Pictures,
    store: FeatureStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anything that can change a bit gives another entry; the model's name does not."""
    dataset, facts = pictures(4), backbone.facts

    def with_facts(**changes: Any) -> Backbone:
        return replace(backbone, facts=facts.model_copy(update=changes))

    store.get(request_of(backbone, dataset))
    changes = {"weights_hash": "1" * 64, "features": "cls token", "mean": (0.5,) * 3}
    for name, value in (changes | {"std": (0.5,) * 3}).items():
        store.get(request_of(with_facts(**{name: value}), dataset))
    for image in (ImageSpec(input_size=17), ImageSpec(input_size=16, resize_factor=1.25)):
        store.get(request_of(backbone, dataset, image))
    store.get(request_of(backbone, dataset, fingerprint="1" * 64))
    FeatureStore(tmp_path / "cache", 8).get(request_of(backbone, dataset))
    torch.set_num_threads(2)
    store.get(request_of(backbone, dataset))
    for name in ("timm", "torchvision"):  # another version in front of the present one
        about = tmp_path / name / f"{name}-99.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 99.0\n")
        monkeypatch.syspath_prepend(tmp_path / name)
        store.get(request_of(backbone, dataset))
    assert len(list(store.folder.glob("*/meta.json"))) == 12
    store.get(request_of(with_facts(ref="an/alias"), dataset))
    assert len(list(store.folder.glob("*/meta.json"))) == 12


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
    backbone: Backbone, pictures: Pictures
) -> None:
    dataset = pictures(6)
    with TemporaryDirectory() as name:  # unlike tmp_path below a folder that others may enter
        cache = Path(name) / "cache"
        store, request = FeatureStore(cache, batch_size=4), request_of(backbone, dataset)
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


class Sick(nn.Module):
    """One feature an image, NaN from the given call on; or the same for all."""

    def __init__(self, sick_call: int | None) -> None:
        super().__init__()
        self.calls, self.sick_call = 0, sick_call

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.sick_call is None:
            return torch.ones(len(x), 64)
        bad = float("nan") if self.calls > self.sick_call else 0.0
        return x.mean((2, 3)).repeat(1, 22)[:, :64] + bad


@pytest.mark.parametrize(
    ("sick_call", "message"), [(2, "gives NaN.*images 4 to 5"), (None, "gives the same features")]
)
def test_features_that_are_not_finite_or_constant_are_refused(
    sick_call: int | None, message: str, backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    sick = replace(backbone, module=Sick(sick_call))
    with pytest.raises(CheckpointError, match=f"fsbench/toy_resnet {message}"):
        store.get(request_of(sick, pictures(6)))
    assert not list(store.folder.glob("*/meta.json"))


def test_bad_sizes_and_images_are_refused(
    backbone: Backbone, pictures: Pictures, store: FeatureStore
) -> None:
    dataset = pictures(6)
    fixed = backbones.load_backbone("timm/test_vit_relpos", random_init=0)
    message = "takes no images of 16 px, it was trained at 160"
    with pytest.raises(UsageError, match=message) as caught:
        store.get(request_of(fixed, dataset))
    assert "--input-size native" in caught.value.fix
    (dataset.root / "004.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"004\.png"):
        store.get(request_of(backbone, dataset))


def test_the_block_size_is_a_function_of_the_shapes() -> None:
    """About 2**22 pixels a block, half for wide networks, between 8 and 128 images."""
    assert [feature_block_size(512, s) for s in (32, 64, 224, 384, 1024)] == [128, 128, 64, 16, 8]
    assert [feature_block_size(2048, s) for s in (32, 64, 224, 384, 1024)] == [128, 128, 32, 8, 8]


def lock(folder: Path, started: Any, release: Any) -> None:
    with lock_folder(folder, SILENT):
        started.set()
        release.wait(20)


def test_two_processes_do_not_extract_at_once(tmp_path: Path, report: Any) -> None:
    context = multiprocessing.get_context("fork")
    started, release = context.Event(), context.Event()
    other = context.Process(target=lock, args=(tmp_path / "key", started, release))
    other.start()
    assert started.wait(20)
    report.log = lambda text: (report.lines.append(text), release.set())
    with lock_folder(tmp_path / "key", report):
        assert release.is_set()
    other.join(20)
    assert "waiting" in report.text
