"""Long work in a process of its own: memory that stays flat, and how much it was at most.

    PYTHONPATH=tests python -m stress.endurance [pretrain | extract | episodes]

Sizes: a source like TinyImageNet (100,000 images of 64 px) for 2,000 steps of a tiny network; a
target like EuroSAT (27,000 images); 600 episodes x 4 shots x 4 data sets at D = 2048.

Held is resident memory less the free blocks that the allocator (glibc's) keeps. A leak is held;
free blocks come and go by tens of MB with the timing of threads, and a bound on resident memory
would judge the machine's load, so its slope is only shown.
"""

import ctypes
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.stats import theilslopes

STEPS, EPOCHS = 2000, 20
TRAIN, SIDE, CLASSES = 100_000, 64, 200
TARGET, TARGET_CLASSES = 27_000, 10
DIM, EPISODES, SHOTS = 2048, 600, (1, 5, 20, 50)
SETS = ("eurosat", "isic", "cropdisease", "chestx")
WARM = 0.25
"""Part of the samples that come before memory has settled."""


@dataclass(frozen=True)
class Bound:
    """slope: MB by which held memory may grow per 1,000 steps (images, cells) after warm-up;
    peak: MB of resident memory at most."""

    slope: float
    peak: float


BOUNDS = {
    # the images take 1.2 GB
    "pretrain": Bound(slope=5.0, peak=2800.0),
    "extract": Bound(slope=2.0, peak=1500.0),
    "episodes": Bound(slope=float("inf"), peak=4096.0),
}


class Allocated(ctypes.Structure):
    """What glibc's mallinfo2 tells of all arenas: ten counts in bytes or of blocks."""

    _fields_ = (
        ("ahead", ctypes.c_size_t * 8),
        ("free", ctypes.c_size_t),
        ("top", ctypes.c_size_t),
    )


LIBC = ctypes.CDLL(None)
LIBC.mallinfo2.restype = Allocated


class Memory:
    """Memory (MB) against work done."""

    def __init__(self) -> None:
        self.done: list[float] = []
        self.resident: list[float] = []
        self.held: list[float] = []

    def sample(self, done: float) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        resident, free = pages * resource.getpagesize(), LIBC.mallinfo2().free
        self.done.append(done)
        self.resident.append(resident / 2**20)
        self.held.append((resident - free) / 2**20)

    def slope(self, memory: list[float]) -> float:
        """MB per 1,000 units of work after warm-up: the median slope over all pairs of looks."""
        first = int(len(self.done) * WARM)
        return float(theilslopes(memory[first:], self.done[first:]).slope) * 1000


def facts(name: str, classes: int) -> Any:
    from fsbench.data.cards import DatasetFacts

    words = dict.fromkeys(("label_rule", "layout", "download", "license", "citation"), "none")
    return DatasetFacts(
        name=name,
        title=name,
        domain="toy",
        classes=tuple(f"c{i:03}" for i in range(classes)),
        images_per_class=(1,) * classes,
        folders=(),
        homepage="none",
        **words,
    )


def pretrain(memory: Memory, folder: Path) -> None:
    """STEPS steps; a look after every epoch, which validates and writes a checkpoint."""
    from fsbench.data import SourceDataset, Split
    from pretrain.recipes import registry
    from pretrain.training.loop import train_recipe as train

    noise, half, batch = np.random.default_rng(0), (0.5, 0.5, 0.5), 32

    def split(n: int) -> Split:
        images = noise.integers(0, 256, (n, 3, SIDE, SIDE), dtype=np.uint8)
        return Split(images, np.arange(n) % CLASSES)

    parts, about = (split(TRAIN), split(1000)), facts("noise", CLASSES)
    source = SourceDataset("noise", about, *parts, CLASSES, half, half, "0" * 64)
    # width 8 crashes torch 2.15: oneDNN, 1x1 stride 2, 8 channels of 64 x 64 kept last
    size = {"width": 16, "input_size": SIDE, "batch_size": batch, "plan.rounds": 1}
    epoch = {"plan.epochs": EPOCHS, "plan.epoch_images": STEPS // EPOCHS * batch}
    recipe = registry.load_recipe("toy/normal").replace(
        {k: str(v) for k, v in {**size, **epoch}.items()}
    )
    train(recipe, source, folder / "run", watch=lambda ctx: memory.sample(ctx.clock.step))


def target(name: str, n: int, classes: int) -> Any:
    """A data set whose images are drawn when they are asked for."""
    from PIL import Image

    from fsbench.data.base import TargetDataset

    class Drawn(TargetDataset):
        def image(self, index: int) -> Image.Image:
            pixels = np.random.default_rng(index).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
            return Image.fromarray(pixels)

        def file(self, index: int) -> None:
            return None

    labels = np.arange(n, dtype=np.int64) * classes // n
    ids = tuple(f"c{c:03}/{i:06}" for i, c in enumerate(labels))
    about = facts(name, classes)
    return Drawn(name, about, Path(name), ids, ids, labels, about.classes)


def extract(memory: Memory, folder: Path) -> None:
    """Features of TARGET images; a look after every block."""
    from fsbench import backbones
    from fsbench.backbones.features import FeatureRequest, FeatureStore
    from fsbench.core.progress import Silent
    from fsbench.core.specs import ImageSpec

    class Watch(Silent):
        @contextmanager
        def task(self, *args: Any) -> Iterator[Callable[[int], None]]:
            done = [0]

            def advance(n: int) -> None:
                done[0] += n
                memory.sample(done[0])

            yield advance

    backbone = backbones.load_backbone("fsbench/toy_resnet", random_init=0)
    store = FeatureStore(folder, report=Watch())
    store.get(
        FeatureRequest(
            backbone, target("drawn", TARGET, TARGET_CLASSES), ImageSpec(input_size=32), "0" * 64
        )
    )


def episodes(memory: Memory, folder: Path) -> None:
    """All shots on all data sets; a look after every block. Features are generated."""
    from fsbench.core.specs import EpisodeSpec, EpisodicSpec
    from protocols.base import Inputs
    from protocols.episodic import linear

    for name in SETS:
        noise = np.random.default_rng(len(memory.done))
        features = noise.random((TARGET, DIM), dtype=np.float32)
        inputs = Inputs(None, target(name, TARGET, TARGET_CLASSES), features)
        for shots in SHOTS:
            spec = EpisodicSpec(episode=EpisodeSpec(k_shot=shots))
            size = linear.block_size(spec, DIM)
            for block in range(-(-EPISODES // size)):
                linear.evaluate_block(inputs, spec, block)
                memory.sample(len(memory.done))


WORK = {"pretrain": pretrain, "extract": extract, "episodes": episodes}


def measure(name: str) -> None:
    """Do one kind of work here and print its figures as JSON."""
    memory, started = Memory(), time.monotonic()
    with TemporaryDirectory() as folder:
        WORK[name](memory, Path(folder))
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) / 2**10  # ru_maxrss counts who began us
    seconds = time.monotonic() - started
    slopes = {name: memory.slope(getattr(memory, name)) for name in ("held", "resident")}
    print(json.dumps({**slopes, "peak": peak, "seconds": seconds}))


def report() -> bool:
    """A line for each kind of work; whether all keep their bounds."""
    whole = True
    for name, bound in BOUNDS.items():
        command = [sys.executable, "-m", "stress.endurance", name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            whole = False
            print(f"endurance {name}: BROKEN, exit {done.returncode}: {done.stderr[-2000:]}")
            continue
        figures = json.loads(done.stdout.splitlines()[-1])
        good = figures["held"] <= bound.slope and figures["peak"] <= bound.peak
        whole &= good
        print(
            f"endurance {name}: held {figures['held']:+.2f} MB per 1,000 (bound {bound.slope:g}),"
            f" resident {figures['resident']:+.2f}, peak {figures['peak']:.0f} MB"
            f" (bound {bound.peak:.0f}), {figures['seconds']:.0f} s:"
            f" {'kept' if good else 'BROKEN'}",
            flush=True,
        )
    return whole


if __name__ == "__main__":
    measure(sys.argv[1])
