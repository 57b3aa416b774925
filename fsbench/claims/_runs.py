"""Short training runs that the claims share: two small sources, recipes, and processes.

The digits of scikit-learn, 1,797 grey images of ten classes, need no download. Values from 0 to 16
are scaled to 0..255 and repeated to three channels. Networks reach 96 to 98 % on them, which leaves
no room for a gain; wrong labels on a part of the training images make over-fitting visible.

Ten classes of TinyImageNet, where they are on disk, are the colour images: few of them are learned
by heart, and accuracies on others stay far below 100 %.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from fsbench.claims import ClaimCondition, ClaimSettings
from fsbench.core import seeding
from fsbench.core.io import cache_folder
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import DatasetFacts
from fsbench.data.base import hash_lines
from fsbench.data.loading import list_source
from fsbench.data.source import SourceDataset, SourceImage, SourceListing, Split, decode_source
from fsbench.data.sources import tinyimagenet

if TYPE_CHECKING:
    from pretrain.method import Method
    from pretrain.recipes.recipe import Recipe
    from pretrain.training.context import Context

_Job = TypeVar("_Job")
_Cell = TypeVar("_Cell")
_Result = TypeVar("_Result")

SIDE, CLASSES, IMAGES = 8, 10, 1797
VALIDATION = 360
"""Images for validation; the others are for training."""
COLOUR_VALIDATION = 1000
"""Colour images for validation."""
MEMORY_FOLDER, FREE_BYTES = "/dev/shm", 2**30
"""Folder that Linux keeps in memory, and the free bytes required there (more than a run needs)."""


def load_digits_source(
    seed: int = 0, train: int = IMAGES - VALIDATION, zoom: int = 1, noise: float = 0.0
) -> SourceDataset:
    """Load `train` (at most 1,437) digits and 360 for validation, in an order set by the seed.

    zoom: enlarge every pixel to zoom x zoom, for networks that need larger images; noise: part of
    the training images that get a wrong label, drawn evenly from the other nine.
    """
    images, labels = _read_digits()
    images = images.repeat(zoom, axis=2).repeat(zoom, axis=3)
    order = seeding.permutations(1, IMAGES, "digits", seed)[0]
    val, used = order[:VALIDATION], order[VALIDATION : VALIDATION + train]
    mean, std = float(images[used].mean() / 255), float(images[used].std() / 255)
    name = f"digits-{seed}-{train}" + (f"-zoom{zoom}" if zoom > 1 else "")
    name += f"-noise{noise:g}" if noise else ""
    taught = labels[used]
    if noise:
        drawn = seeding.uniforms((len(used), 2), "label noise", seed)
        other = taught + 1 + (drawn[:, 1] * (CLASSES - 1)).astype(np.int64)
        taught = np.where(drawn[:, 0] < noise, other % CLASSES, taught)
    return SourceDataset(
        name=name,
        facts=describe_generated_data(
            name="digits",
            title="Handwritten digits of scikit-learn",
            classes=tuple("0123456789"),
            label_rule="the digit",
            license="CC BY 4.0",
            citation="Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998",
        ),
        train=Split(images[used], taught),
        val=Split(images[val], labels[val]),
        n_classes=CLASSES,
        mean=(mean, mean, mean),
        std=(std, std, std),
        fingerprint=name,
    )


@cache
def _read_digits() -> tuple[
    np.ndarray[Any, np.dtype[np.uint8]], np.ndarray[Any, np.dtype[np.int64]]
]:
    """Return all images (1797, 3, 8, 8) and labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    grey = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    return np.repeat(grey[:, None], 3, axis=1), digits.target.astype(np.int64)


def describe_generated_data(**fields: Any) -> DatasetFacts:
    """Return the facts of a source that is made in memory; fields: those that describe it."""
    in_memory = {
        "domain": "source",
        "images_per_class": (),
        "layout": "made in memory",
        "folders": (),
        "download": "nothing to download",
        "homepage": "",
    }
    return DatasetFacts.model_validate(in_memory | fields)


def load_colour_source(settings: ClaimSettings, size: int, images: int, seed: int) -> SourceDataset:
    """Load colour images of size x size px: `images` for training, 1,000 for validation.

    They are training images of the ten TinyImageNet classes with the smallest hash of their name,
    in an order set by the seed; decoded once into the cache. Raises DataError without TinyImageNet.
    """
    cache = cache_folder(None)
    listing = list_source("tinyimagenet", settings.data, cache)
    names = listing.facts.classes
    ranked = sorted(range(len(names)), key=lambda label: seeding.seed_for("claims", names[label]))
    position = {label: i for i, label in enumerate(ranked[:CLASSES])}

    def select(part: Sequence[SourceImage]) -> list[SourceImage]:
        return [i._replace(label=position[i.label]) for i in part if i.label in position]

    facts = listing.facts.model_copy(
        update={
            "classes": tuple(names[label] for label in position),
            "images_per_class": (tinyimagenet.TRAIN,) * CLASSES,
        }
    )
    stamp = None if listing.stamp is None else hash_lines([listing.stamp, *facts.classes])
    part = SourceListing(facts, select(listing.train), select(listing.val), stamp, listing.flags)
    source = decode_source(part, cache, size)
    order = seeding.permutations(1, len(source.train), "colour", seed)[0]
    used, val = order[:images], order[images : images + COLOUR_VALIDATION]
    return replace(
        source,
        train=Split(source.train.images[used], source.train.labels[used]),
        val=Split(source.train.images[val], source.train.labels[val]),
        fingerprint=hash_lines([source.fingerprint, str(seed), str(images)]),
    )


def require_colour_images(settings: ClaimSettings) -> ClaimCondition:
    """Require TinyImageNet on disk."""
    folder = settings.data.find(tinyimagenet.FACTS)
    return ClaimCondition(
        what="colour images (TinyImageNet)",
        required="on disk (--data or FSBENCH_DATA)",
        ours="not found" if folder is None else "found",
        holds=folder is not None,
    )


PLAIN = {
    "weight_decay": 0.0,
    "schedule": "constant",
    "warmup": 0.0,
    "label_smoothing": 0.0,
    "channels_last": False,
}
"""Fields of training without decay, schedule and smoothing, in which some papers compare."""


def build_claim_recipe(
    methods: "Sequence[Mapping[str, Any] | Method]",
    plan: Mapping[str, object],
    seed: int,
    **fields: object,
) -> "Recipe":
    """Build a recipe without augmentation, on digits unless `fields` name another source."""
    from pretrain.recipes.recipe import Recipe

    names = (method["name"] if isinstance(method, Mapping) else method.name for method in methods)
    values: dict[str, object] = {
        "name": f"paper/{'+'.join(names)}",
        "source": "digits",
        "input_size": SIDE,
        "plan": plan,
        "methods": methods,
        "augmentation": "none",
        "seed": seed,
    }
    return Recipe.model_validate(values | fields)


class RunFiles(NamedTuple):
    """Lines of log.jsonl and the record in run.json."""

    log: list[dict[str, Any]]
    facts: dict[str, Any]


def train_once(
    chosen: "Recipe",
    source: SourceDataset,
    watch: "Callable[[Context], None] | None" = None,
    device: str = "cpu",
) -> RunFiles:
    """Train in a temporary folder; `watch` gets the context after setup and after every epoch."""
    from pretrain.training.loop import ignore, train_recipe

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        return read_run_files(
            train_recipe(chosen, source, out, device=device, watch=watch or ignore)
        )


def read_run_files(folder: Path) -> RunFiles:
    """Read the log and the record of a finished run."""
    log = (folder / "log.jsonl").read_text("utf8").splitlines()
    record = json.loads((folder / "run.json").read_text("utf8"))
    return RunFiles([json.loads(line) for line in log], record)


def run_seeds(
    function: Callable[[tuple[_Cell, int]], _Result],
    cells: Iterable[_Cell],
    settings: ClaimSettings,
    name: str,
    report: Reporter = SILENT,
) -> dict[_Cell, list[_Result]]:
    """Return cell -> function((cell, seed)) for every seed, in order."""
    cells, seeds = tuple(cells), settings.seed_range
    jobs = [(cell, seed) for cell in cells for seed in seeds]
    results = run_jobs(function, jobs, settings, name, report)
    n = len(seeds)
    return {cell: results[i * n : (i + 1) * n] for i, cell in enumerate(cells)}


def run_jobs(
    function: Callable[[_Job], _Result],
    jobs: Sequence[_Job],
    settings: ClaimSettings,
    name: str,
    report: Reporter = SILENT,
    unit: str = "runs",
) -> list[_Result]:
    """Return function(job) for every job, in order; function and jobs must be picklable."""
    results = []
    with report.task(name, len(jobs), unit) as advance, start_workers(settings.processes) as pool:
        for result in pool.map(function, jobs):
            results.append(result)
            advance(1)
    return results


@contextmanager
def start_workers(processes: int = 2) -> Iterator[ProcessPoolExecutor]:
    """Start processes of one thread; on an error, cancel the jobs that have not started."""
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _prepare)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    import torch

    torch.set_num_threads(1)
    if "TMPDIR" not in os.environ:
        tempfile.tempdir = find_memory_folder()


def find_memory_folder() -> str | None:
    """Return a folder in memory for checkpoints; None without one that has enough free space."""
    if os.access(MEMORY_FOLDER, os.W_OK) and shutil.disk_usage(MEMORY_FOLDER).free >= FREE_BYTES:
        return MEMORY_FOLDER
    return None
