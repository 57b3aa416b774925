"""Features of a whole data set, extracted once and cached by content.

Images pass through the network in fixed blocks of absolute indices, the last one padded, so bits
are the same for one torch version, CPU capability, thread count and block size
(protocols/README.md, "Determinism and numerics").
"""

import math
import shutil
import statistics
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from numpy.typing import NDArray

from fsbench.backbones.base import Backbone
from fsbench.backbones.cost import describe_cost
from fsbench.backbones.kernels import PRECISION, exact_float32, has_bfloat16, memory_layout
from fsbench.core import process
from fsbench.core.arrays import META, ArrayWriter, evict_arrays, load_array
from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import CheckpointError, FsbenchError, UsageError
from fsbench.core.io import read_sealed
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import FeatureCost
from fsbench.core.specs import ImageSpec, digest
from fsbench.data.base import TargetDataset
from fsbench.data.images import crop_centres

Pixels = NDArray[np.uint8]
Features = NDArray[np.float32]

VERSION = 1
"""Version of the computation from image to features; a new one invalidates old caches."""
LIBRARIES = ("timm", "torchvision", "transformers", "open_clip_torch")
"""Libraries whose code is a part of some backbones: with equal weights it may compute otherwise."""
EVICTED_KINDS = ("features", "images")
"""Folders of the cache with a limit."""
DECODED = 64
"""Images that a thread decodes at once, to keep them."""
NOTHING_MISSING = -1
"""Number that the first rank sends for complete features, in place of finished rows."""


@dataclass(frozen=True, eq=False)
class FeatureRequest:
    """Images whose features are wanted, by their centre crops.

    fingerprint: of the data set; "" for features that are not stored.
    """

    backbone: Backbone
    dataset: TargetDataset
    image: ImageSpec
    fingerprint: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D) of the features."""
        return len(self.dataset), self.backbone.facts.feature_dim


def blocks(
    request: FeatureRequest, size: int, starts: range, workers: int, decoded: Pixels | None = None
) -> Iterator[tuple[int, int, Pixels]]:
    """Yield (index of the first image, number of images, pixels (size, 3, s, s)) per block.

    starts: the first images of the blocks; decoded: all pixels (N, s, s, 3), if at hand. A block
    holds the `size` images from its first one on, padded with black ones behind the last one of the
    data set. Each thread decodes a whole block: threads that share one would wait for each other.
    Raises DataError naming a corrupt image.
    """
    dataset, n, ahead = request.dataset, len(request.dataset), max(2, workers)

    def decode(start: int) -> Pixels:
        indices = range(start, min(start + size, n))
        if decoded is None:
            return crop_centres(map(dataset.image, indices), request.image, size)
        block = np.zeros((size, *decoded.shape[1:]), np.uint8)
        block[: len(indices)] = decoded[start : start + size]
        return block.transpose(0, 3, 1, 2)

    with ThreadPoolExecutor(max(1, workers)) as pool:
        waiting = deque(pool.submit(decode, start) for start in starts[:ahead])
        for i, start in enumerate(starts):
            waiting += [pool.submit(decode, later) for later in starts[i + ahead : i + ahead + 1]]
            yield start, min(size, n - start), waiting.popleft().result()


def feature_block_size(dim: int, input_size: int) -> int:
    """Return the batch size: a power of two from 8 to 128 that depends on the shapes only.

    A batch has about 4.2 million pixels, half as many for networks of more than 1024 features.
    """
    pixels = 2**22 if dim <= 1024 else 2**21
    return min(128, max(8, 1 << (pixels // input_size**2).bit_length() - 1))


@dataclass(frozen=True, eq=False)
class FeatureStore:
    """Store of features by content: <cache>/features/<key>, float32 (N, D), see core/arrays.py.

    batch_size: at least 2; None for `feature_block_size`; workers: decoding threads; limit: bytes
    of features and decoded images together, beyond which those used longest ago are deleted;
    device: extracts, and may be missing where all features are there. batch_size and the kind of
    device are part of the key.
    """

    cache: Path
    batch_size: int | None = None
    workers: int = 2
    device: str = "cpu"
    report: Reporter = SILENT
    limit: float = math.inf

    @property
    def kind(self) -> str:
        """The kind of the device: cpu, cuda or mps."""
        return torch.device(self.device).type

    def get(self, request: FeatureRequest, ranks: Ranks = ALONE) -> Features:
        """Return the features (N, D) float32 of all images in data set order; extract if missing.

        ranks: as in `extract`. Raises UsageError for an input size that the network does not take,
        DataError for a corrupt image, CheckpointError for features that are not finite or all the
        same.
        """
        folder, shape = self.locate(request), request.shape
        return load_array(folder, shape, lambda: self.extract(request, ranks), self.report).values

    def extract_together(self, request: FeatureRequest, ranks: Ranks) -> None:
        """Extract the features if missing, each block at one of the ranks; rank 0 writes them.

        All ranks call it, for the same requests in the same order. Raises like `get`.
        """
        request = self.place(request)
        if ranks.first:
            self.get(request, ranks)
            ranks.collect(NOTHING_MISSING)
            return
        while (done := ranks.collect(0)[0]) != NOTHING_MISSING:
            for _ in self.rows(request, done, ranks=ranks):
                pass

    def holds(self, request: FeatureRequest) -> bool:
        return self.locate(request).is_dir()

    def locate(self, request: FeatureRequest) -> Path:
        return self.cache / "features" / digest(self.describe(request))

    def block_size(self, request: FeatureRequest) -> int:
        dim, side = request.backbone.facts.feature_dim, request.image.input_size
        return self.batch_size or feature_block_size(dim, side)

    def describe(self, request: FeatureRequest) -> dict[str, Any]:
        """Describe all that the bits of the features depend on."""
        facts = request.backbone.facts
        capability, threads = torch.backends.cpu.get_cpu_capability(), torch.get_num_threads()
        of_cpu = {"cpu_capability": capability, "threads": threads}
        installed = [name for name in LIBRARIES if list(metadata.distributions(name=name))]
        fields = ("weights_hash", "architecture", "features", "mean", "std")
        return {
            **{name: getattr(facts, name) for name in fields},
            "feature_spec": facts.feature_spec.model_dump(mode="json"),
            "module": request.backbone.fingerprint,
            "view": None,  # the centre crop
            "version": VERSION,
            "image": request.image.model_dump(mode="json"),
            "data": request.fingerprint,
            "dtype": "float32",
            "precision": PRECISION,
            "block": self.block_size(request),
            "torch": torch.__version__,
            "pillow": PIL.__version__,
            "libraries": {name: metadata.version(name) for name in installed},
            "device": self.kind,
            **(of_cpu if self.kind == "cpu" else {}),
        }

    def place(self, request: FeatureRequest) -> FeatureRequest:
        """Return the request with its backbone on the device. Raise UsageError if that lacks."""
        backbone, dataset = request.backbone, request.dataset.name
        try:
            device = process.resolve_device(self.device)
        except UsageError as error:
            raise UsageError(
                f"no features of {backbone.facts.ref} on {dataset} are cached: {error.message}",
                fix=f"extract them on {self.device}, or give a larger --cache-size: old ones go",
            ) from error
        return replace(request, backbone=backbone.on(device))

    def read_device(self, request: FeatureRequest) -> str:
        """Return the model of the device that extracted these features, or will."""
        if self.kind == "cpu":
            return "cpu"
        with suppress(OSError, ValueError, LookupError):
            return str(read_sealed(self.locate(request) / META)["device_model"])
        self.place(request)
        return process.device_model(self.device)

    def read_cost(self, request: FeatureRequest) -> FeatureCost | None:
        """Return the cost that the extraction of these features measured, None if it did not."""
        with suppress(OSError, ValueError, LookupError, TypeError):
            meta = read_sealed(self.locate(request) / META)
            return FeatureCost.model_validate(meta["cost"])
        return None

    def extract(self, request: FeatureRequest, ranks: Ranks = ALONE) -> None:
        """Run the network over the blocks that are missing, and publish the array.

        ranks: those that compute blocks, of which this is the first (`extract_together`).
        """
        request = self.place(request)
        n, name, ref = len(request.dataset), request.dataset.name, request.backbone.facts.ref
        check_input_size(request.backbone, request.image.input_size, self.device)
        writer = ArrayWriter(self.locate(request), request.shape, np.float32)
        seconds = list[float]()
        ranks.collect(writer.rows)
        process.reset_peak_memory(self.device)
        with self.report.task(f"{name} features", n, "images", writer.rows) as advance:
            for _, rows in self.rows(request, writer.rows, seconds, ranks):
                writer.write(rows)
                advance(len(rows))
        if is_constant(writer.array):
            raise bad_features_error(ref, f"the same features for all {n} images of {name}")
        about = {**self.describe(request), "model": ref, "dataset": name}
        about["device_model"] = process.device_model(self.device)
        if seconds:
            median = statistics.median(seconds[1:] or seconds)  # the first pass warms up
            speed, size = self.block_size(request) / max(median, 1e-9), request.image.input_size
            about["cost"] = describe_cost(request.backbone, size, speed, self.device).model_dump()
        writer.finish(about)
        evict_arrays(self.cache, EVICTED_KINDS, self.limit)

    def decode(self, request: FeatureRequest) -> Pixels | None:
        """Return the pixels (N, s, s, 3) of all images, decoded once for all backbones.

        None for images that are not stored, or would take more than half of the limit or of what
        the disk has left. Raises DataError for a corrupt image.
        """
        n, side = len(request.dataset), request.image.input_size
        if not request.fingerprint:
            return None
        if 6 * n * side**2 > min(self.limit, shutil.disk_usage(self.cache).free):
            return None
        image = request.image.model_dump(mode="json")
        about = {"data": request.fingerprint, "image": image, "pillow": PIL.__version__}
        folder = self.cache / "images" / digest({**about, "version": VERSION})
        shape = (n, side, side, 3)

        def write() -> None:
            writer = ArrayWriter(folder, shape, np.uint8)
            starts, workers = range(writer.rows, n, DECODED), self.workers
            workers *= process.count_local_ranks()  # the other ranks wait
            with self.report.task(f"{request.dataset.name} images", n, "images", writer.rows) as go:
                for _, count, pixels in blocks(request, DECODED, starts, workers):
                    writer.write(pixels[:count].transpose(0, 2, 3, 1))
                    go(count)
            writer.finish({**about, "dataset": request.dataset.name})

        return load_array(folder, shape, write, self.report).values

    def rows(
        self,
        request: FeatureRequest,
        done: int = 0,
        seconds: list[float] | None = None,
        ranks: Ranks = ALONE,
    ) -> Iterator[tuple[int, Features]]:
        """Yield (index of the first image, features) of every block after `done` images, uncached.

        Of several ranks each computes every nth block, and the first one yields all of them.
        seconds: gets the time of every forward pass of this process. Raises CheckpointError for
        features that are not finite, UsageError for a device without units of the dtype.
        """
        dtype = request.backbone.facts.feature_spec.dtype
        if dtype == "bf16" and not has_bfloat16(self.device):
            raise UsageError(
                f"--dtype bf16: {self.device} has no bfloat16 units",
                fix="leave --dtype out, or use a CPU with avx512_bf16 or amx_bf16, or a GPU",
            )
        size, n = self.block_size(request), len(request.dataset)
        starts = range(-(-done // size) * size, n, size)
        computed = self.compute_blocks(request, starts[ranks.rank :: ranks.size], seconds)
        none = np.empty((size, request.shape[1]), np.float32)
        for low in range(0, len(starts), ranks.size):
            block = torch.from_numpy(next(computed, none))
            for start, rows in zip(starts[low:], ranks.gather(block), strict=False):
                yield start, rows[: n - start].numpy()

    def compute_blocks(
        self, request: FeatureRequest, starts: range, seconds: list[float] | None
    ) -> Iterator[Features]:
        """Yield the features of every block that starts at one of these images, padding included.

        Raises as `rows`.
        """
        backbone, size = request.backbone, self.block_size(request)
        decoded = self.decode(request) if starts else None
        for start, n, pixels in blocks(request, size, starts, self.workers, decoded):
            started = time.monotonic()
            rows = compute_features(backbone, pixels, self.device)
            if seconds is not None:
                seconds.append(time.monotonic() - started)
            if not np.isfinite(rows[:n]).all():
                where = f"images {start} to {start + n - 1}"
                raise bad_features_error(backbone.facts.ref, f"NaN or infinity on {where}")
            yield rows


def compute_features(backbone: Backbone, pixels: Pixels, device: str) -> Features:
    """Compute features (B, D) of pixels (B, 3, s, s) uint8 in true float32, without autotuning.

    The module gets the layout that is fastest for blocks. Raises FsbenchError if the block exceeds
    the memory of the device.
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
    if size == (native := backbone.facts.input_size):
        return
    try:
        compute_features(backbone, np.zeros((2, 3, size, size), dtype=np.uint8), device)
    except torch.AcceleratorError:  # a fault of the GPU, not of the size
        raise
    except (AssertionError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"{backbone.facts.ref} takes no images of {size} px, it was trained at {native} px: "
            f"{str(error).splitlines()[0]}",
            fix=f"--input-size native, or --input-size {native}",
        ) from error


def is_constant(rows: Features) -> bool:
    """Return whether several rows differ by at most 1e-6 of their largest value."""
    spread = float(np.max(rows.max(axis=0) - rows.min(axis=0)))
    return len(rows) > 1 and spread <= 1e-6 * float(np.abs(rows).max())


def bad_features_error(ref: str, what: str) -> CheckpointError:
    return CheckpointError(
        f"{ref} gives {what}",
        fix="its weights are damaged or the network is not trained; check the checkpoint",
    )
