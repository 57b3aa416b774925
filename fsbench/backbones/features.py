"""Features of a whole data set, extracted once and cached by content.

Images pass through the network in fixed blocks of absolute indices, the last one padded, so bits
are the same for one torch version, CPU capability, thread count and block size
(protocols/README.md, "Determinism and numerics").

Layout of the cache: <folder>/features.npy, float32 (N, D), and <folder>/meta.json with the sha-256
of the array, its description, and the sha-256 of both as `seal`. The array grows in
<folder>.partial, where done.json has the number of finished blocks and rows and their sha-256, and
is renamed when complete. Nothing is flushed explicitly, which would cost small networks 2 %: after
a power failure the hash reveals missing data.
"""

import hashlib
import json
import shutil
import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from fsbench.backbones.base import Backbone
from fsbench.backbones.precision import PRECISION, exact_float32
from fsbench.backbones.torch_faults import memory_layout
from fsbench.core import io, process
from fsbench.core.errors import CheckpointError, FsbenchError, UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.specs import NATIVE_FEATURES, ImageSpec, digest
from fsbench.data.augmentation import RandomView
from fsbench.data.base import TargetDataset
from fsbench.data.images import crop_centres

Pixels = NDArray[np.uint8]

AHEAD = 2
"""Minimum number of blocks decoded in advance; the number of threads if that is larger."""


def blocks(
    dataset: TargetDataset,
    image: ImageSpec,
    size: int,
    first: int,
    workers: int,
    view: RandomView | None = None,
) -> Iterator[tuple[int, int, Pixels]]:
    """Yield (index of the first image, number of images, pixels (size, 3, s, s)) per block.

    Starts at block `first`. Pixels are the centre crop or a random view, channels last. Block b
    holds images b * size ... of the data set, padded with black images, so its content does not
    depend on where a run started. Each thread decodes a whole block: threads that share a block of
    small images would wait for each other. Raises DataError naming a corrupt image.
    """
    with ThreadPoolExecutor(max(1, workers)) as pool:
        waiting: deque[tuple[range, Future[Pixels]]] = deque()
        for start in range(first * size, len(dataset), size):
            indices = range(start, min(start + size, len(dataset)))
            waiting.append((indices, pool.submit(_block, dataset, image, size, indices, view)))
            if len(waiting) > max(AHEAD, workers):
                yield _decoded(*waiting.popleft())
        while waiting:
            yield _decoded(*waiting.popleft())


def _block(
    dataset: TargetDataset, image: ImageSpec, size: int, indices: range, view: RandomView | None
) -> Pixels:
    if view is None:
        return crop_centres(map(dataset.image, indices), image, size)
    side = image.input_size
    pixels = np.zeros((size, side, side, 3), dtype=np.uint8).transpose(0, 3, 1, 2)
    for row, index in zip(pixels, indices, strict=False):
        name = dataset.canonical_ids[index]
        row[:] = view.pixels(dataset.image(index), image, dataset.name, name)
    return pixels


def _decoded(indices: range, pixels: Future[Pixels]) -> tuple[int, int, Pixels]:
    return indices.start, len(indices), pixels.result()


Features = NDArray[np.float32]

ARRAY, META, DONE = "features.npy", "meta.json", "done.json"
MARK_SECONDS = 1.0
"""Seconds between marks: the work that a killed run may lose."""


@contextmanager
def lock_features(folder: Path, report: Reporter) -> Iterator[None]:
    """Lock the folder for this process; wait for another one and report that."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.with_name(folder.name + ".lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        report.log(f"another process extracts into {folder}: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def read_features(folder: Path, shape: tuple[int, int]) -> Features | None:
    """Map the finished array copy-on-write; None if it is missing or damaged."""
    try:
        meta = json.loads((folder / META).read_text(encoding="utf8"))
        array: Features = np.load(folder / ARRAY, mmap_mode="c")
        sealed = meta.pop("seal", None) == hash_meta(meta)
        if sealed and array.shape == shape and meta["sha256"] == hash_features(array):
            return array
    except (OSError, ValueError, AttributeError, LookupError, TypeError):
        pass
    return None


def hash_features(array: Features) -> str:
    """Return the sha-256 of the numbers, row by row."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def hash_meta(meta: Mapping[str, Any]) -> str:
    """Return the sha-256 of a meta.json without its seal."""
    return digest(meta)


class FeatureWriter:
    """Writer of the growing array of a folder. done: blocks that earlier runs finished."""

    def __init__(self, folder: Path, shape: tuple[int, int], report: Reporter = SILENT) -> None:
        self.folder, self.partial = folder, folder.with_name(folder.name + ".partial")
        self.done, self.rows, self.hash = 0, 0, hashlib.sha256()
        self.array = self._resume(shape, report)
        self.marked = time.monotonic()

    def _resume(self, shape: tuple[int, int], report: Reporter) -> np.memmap:
        """Return the array with its first rows, or a new one; report and drop a damaged one."""
        try:
            marked = json.loads((self.partial / DONE).read_text())
            array: np.memmap = np.load(self.partial / ARRAY, mmap_mode="r+")
            done, rows = int(marked["done"]), int(marked["rows"])
            digest = hashlib.sha256(np.ascontiguousarray(array[:rows]).data)
            if array.shape == shape and digest.hexdigest() == marked["sha256"]:
                self.done, self.rows, self.hash = done, rows, digest
                return array
        except FileNotFoundError:  # killed before the first mark
            return self._start(shape)
        except (OSError, ValueError, LookupError, TypeError):
            pass
        report.log(f"{self.partial} is damaged: extracting its features from the start")
        return self._start(shape)

    def _start(self, shape: tuple[int, int]) -> np.memmap:
        shutil.rmtree(self.partial, ignore_errors=True)
        self.partial.mkdir(parents=True)
        return io.create_array(self.partial / ARRAY, np.float32, shape)

    def write(self, start: int, rows: Features) -> None:
        """Store the next block, whose first row is `start`, and mark progress once a second."""
        data = np.ascontiguousarray(rows, np.float32).data
        with (self.partial / ARRAY).open("r+b") as file:  # cheaper than a mapped page's first use
            file.seek(self.array.offset + start * self.array.strides[0])
            file.write(data)
        self.hash.update(data)
        self.done, self.rows = self.done + 1, start + len(rows)
        if time.monotonic() - self.marked >= MARK_SECONDS:
            self.mark()

    def mark(self) -> None:
        """Record which blocks are stored."""
        self.marked = time.monotonic()
        beside = self.partial / f"{DONE}.new"
        mark = {"done": self.done, "rows": self.rows, "sha256": self.hash.hexdigest()}
        beside.write_text(json.dumps(mark))
        beside.replace(self.partial / DONE)

    def finish(self, about: Mapping[str, Any]) -> None:
        """Publish the complete array, with `about` in its meta.json."""
        meta = {**about, "shape": self.array.shape, "sha256": self.hash.hexdigest()}
        text = json.dumps({**meta, "seal": hash_meta(meta)}, indent=1)
        (self.partial / META).write_text(text, encoding="utf8")
        (self.partial / DONE).unlink(missing_ok=True)
        self.partial.replace(self.folder)


VERSION = 1
"""Version of the computation from image to features; a new one invalidates old caches."""

LIBRARIES = ("timm", "torchvision", "transformers", "open_clip_torch")
"""Libraries whose code is a part of some backbones: with equal weights it may compute otherwise."""

TIMED_BLOCKS = 2
"""Blocks whose time says how long an extraction takes, after one to warm up."""

CONSTANT = 1e-6
"""Features count as constant if they differ by at most this fraction of their largest value."""


def feature_block_size(dim: int, input_size: int) -> int:
    """Return the batch size: a power of two from 8 to 128 that depends on the shapes only.

    A batch has about 4.2 million pixels, half as many for networks of more than 1024 features (64
    images of 224 px for ResNet-18, 32 for ResNet-50). Free memory plays no role.
    """
    pixels = 2**22 if dim <= 1024 else 2**21
    return min(128, max(8, 1 << (pixels // input_size**2).bit_length() - 1))


class FeatureStore:
    """Store of features by content, in <cache>/features/<key>/.

    batch_size: at least 2; None for `feature_block_size`; workers: decoding threads. Neither
    changes the episodes, and only batch_size is part of the key.
    """

    def __init__(
        self,
        cache: Path,
        batch_size: int | None = None,
        workers: int = 2,
        device: str = "cpu",
        report: Reporter = SILENT,
    ) -> None:
        if batch_size is not None and batch_size < 2:
            raise UsageError(
                f"a batch size of {batch_size} is too small",
                fix="use at least 2: single images give slightly different numbers",
            )
        self.folder = cache / "features"
        self.batch_size, self.workers = batch_size, workers
        self.device, self.report = device, report

    def get(
        self,
        backbone: Backbone,
        dataset: TargetDataset,
        image: ImageSpec,
        fingerprint: str,
        view: RandomView | None = None,
    ) -> Features:
        """Return the features (N, D) float32 of all images in data set order; extract if missing.

        fingerprint: of the whole data set (fsbench.data.base), of which `dataset` may be a
        part if a random view is requested. Raises UsageError for an input size that the network
        does not take, DataError for a corrupt image, CheckpointError for features that are not
        finite or all the same.
        """
        about = self.describe(backbone, image, fingerprint, view, dataset)
        folder = self.folder / cache_key(about)
        shape = (len(dataset), backbone.facts.feature_dim)
        # A finished array appears by rename, so it needs no lock, which a read-only cache refuses.
        if (features := read_features(folder, shape)) is not None:
            return features
        with lock_features(folder, self.report):
            if (features := read_features(folder, shape)) is not None:
                return features
            if folder.is_dir():
                self.report.log(f"{folder} is damaged: extracting its features again")
                shutil.rmtree(folder)
            check_input_size(backbone, image.input_size, self.device)
            writer = FeatureWriter(folder, shape, self.report)
            self.extract(backbone, dataset, image, writer, about, view)
            features = read_features(folder, shape)
        if features is None:
            raise FsbenchError(f"{folder} differs from what was written", fix="check the disk")
        return features

    def seconds_per_image(
        self,
        backbone: Backbone,
        dataset: TargetDataset,
        image: ImageSpec,
        fingerprint: str,
        view: RandomView | None = None,
    ) -> float:
        """Time the next few blocks, which `get` then finds extracted; 0 if none is missing.

        The first one warms up: it counts only where it is the last. Arguments and errors are those
        of `get`.
        """
        about = self.describe(backbone, image, fingerprint, view, dataset)
        folder = self.folder / cache_key(about)
        with lock_features(folder, self.report):
            if folder.is_dir():
                return 0.0
            check_input_size(backbone, image.input_size, self.device)
            writer = FeatureWriter(folder, (len(dataset), backbone.facts.feature_dim), self.report)
            end = min(len(dataset), (writer.done + 1 + TIMED_BLOCKS) * int(about["block"]))
            part, ends = dataset.take(np.arange(end)), [(time.monotonic(), writer.rows)]
            for start, rows in self.rows(backbone, part, image, writer.done, view):
                writer.write(start, rows)
                ends.append((time.monotonic(), writer.rows))
            writer.mark()
        (started, first), (ended, last) = ends[1 if len(ends) > 2 else 0], ends[-1]
        return (ended - started) / max(1, last - first)

    def holds(self, backbone: Backbone, image: ImageSpec, fingerprint: str) -> bool:
        """Return whether these features are cached."""
        return (self.folder / cache_key(self.describe(backbone, image, fingerprint))).is_dir()

    def describe(
        self,
        backbone: Backbone,
        image: ImageSpec,
        fingerprint: str,
        view: RandomView | None = None,
        part: TargetDataset | None = None,
    ) -> dict[str, Any]:
        """Describe all that the bits of the features depend on; part: the images of a view."""
        import PIL

        facts = backbone.facts
        choices: dict[str, Any] = {"module": backbone.fingerprint} if backbone.fingerprint else {}
        if view is not None and part is not None:
            choices |= {"view": asdict(view), "images": part.images_hash}
        if facts.feature_spec != NATIVE_FEATURES:
            choices["feature_spec"] = facts.feature_spec.model_dump(mode="json")
        return choices | {
            "version": VERSION,
            "weights_hash": facts.weights_hash,
            "architecture": facts.architecture,
            "features": facts.features,
            "mean": facts.mean,
            "std": facts.std,
            "image": image.model_dump(mode="json"),
            "data": fingerprint,
            "dtype": "float32",
            "precision": PRECISION,
            "block": self.batch_size or feature_block_size(facts.feature_dim, image.input_size),
            "torch": torch.__version__,
            "pillow": PIL.__version__,
            "libraries": library_versions(),
            "device": process.device_model(self.device),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "threads": torch.get_num_threads(),
        }

    def extract(
        self,
        backbone: Backbone,
        dataset: TargetDataset,
        image: ImageSpec,
        writer: FeatureWriter,
        about: dict[str, Any],
        view: RandomView | None = None,
    ) -> None:
        """Run the network over the blocks that the writer lacks, and publish the array."""
        n, size, ref = len(dataset), int(about["block"]), backbone.facts.ref
        what, done = f"{dataset.name} features", min(writer.done * size, n)
        with self.report.task(what, n, "images", done) as advance:
            for start, rows in self.rows(backbone, dataset, image, writer.done, view):
                writer.write(start, rows)
                advance(len(rows))
        if is_constant(writer.array):
            raise bad_features_error(ref, f"the same features for all {n} images of {dataset.name}")
        writer.finish({**about, "model": ref, "dataset": dataset.name})

    def rows(
        self,
        backbone: Backbone,
        dataset: TargetDataset,
        image: ImageSpec,
        first: int = 0,
        view: RandomView | None = None,
    ) -> Iterator[tuple[int, Features]]:
        """Yield (index of the first image, features) of every block from `first` on, uncached.

        Raises CheckpointError for features that are not finite.
        """
        ref = backbone.facts.ref
        size = self.batch_size or feature_block_size(backbone.facts.feature_dim, image.input_size)
        for start, n, pixels in blocks(dataset, image, size, first, self.workers, view):
            rows = compute_features(backbone, pixels, self.device)[:n]
            if not np.isfinite(rows).all():
                raise bad_features_error(
                    ref, f"NaN or infinity on images {start} to {start + n - 1}"
                )
            yield start, rows


def library_versions() -> dict[str, str]:
    """Return the versions of the installed libraries that define backbones."""
    versions = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def cache_key(about: dict[str, Any]) -> str:
    """Return the sha-256 of a description, 64 hex digits."""
    return digest(about)


def compute_features(backbone: Backbone, pixels: Pixels, device: str) -> Features:
    """Compute features (B, D) of pixels (B, 3, s, s) uint8 in true float32, without autotuning.

    The module gets the layout that is fastest for blocks; a loaded one has that of its file, so
    that single calls give the bits of its authors' code.

    Raises FsbenchError if the block exceeds the memory of the device.
    """
    layout = memory_layout(backbone.module)
    backbone.module.to(memory_format=layout)
    images = torch.from_numpy(pixels).to(device).contiguous(memory_format=layout)
    try:
        with torch.no_grad(), exact_float32(device):
            rows: Features = backbone.features(images).cpu().numpy()
    except torch.OutOfMemoryError as error:
        raise FsbenchError(
            f"{len(pixels)} images of {pixels.shape[-1]} px do not fit into the memory of {device}",
            fix="pass a smaller --batch-size",
        ) from error
    return rows


def check_input_size(backbone: Backbone, size: int, device: str) -> None:
    """Raise UsageError if the network does not take images of side `size` (px)."""
    native = backbone.facts.input_size
    if size == native:
        return
    try:
        compute_features(backbone, np.zeros((2, 3, size, size), dtype=np.uint8), device)
    except (AssertionError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"{backbone.facts.ref} takes no images of {size} px, it was trained at {native} px: "
            f"{str(error).splitlines()[0]}",
            fix=f"--input-size native, or --input-size {native}",
        ) from error


def is_constant(rows: Features) -> bool:
    """Return whether all of several rows are the same vector."""
    spread = float(np.max(rows.max(axis=0) - rows.min(axis=0)))
    return len(rows) > 1 and spread <= CONSTANT * float(np.abs(rows).max())


def bad_features_error(ref: str, what: str) -> CheckpointError:
    """Return the error for unusable features."""
    return CheckpointError(
        f"{ref} gives {what}",
        fix="its weights are damaged or the network is not trained; check the checkpoint",
    )
