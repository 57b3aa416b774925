"""Sweeps of seconds: a source and a target of 8 px images, and jobs that only write files."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image
from support import fakes

from fsbench.api.options import SweepOptions
from fsbench.core.seeding import words
from fsbench.sweep.file import SweepFile

SIDE = 8
TINY = {
    "width": 2,
    "input_size": SIDE,
    "batch_size": 8,
    "plan.rounds": 2,
    "plan.epochs": 4,
    "plan.epoch_images": 16,
}
"""As in fakes_pretrain: two steps an epoch, eight epochs."""
ENTRY = {"authors": "nobody", "link": "none", "license": "Apache-2.0", "statement": "A test."}


def images(root: Path, classes: int, count: int, side: int = SIDE) -> Path:
    """Folders of random images whose brightness tells the class."""
    for label in range(classes):
        folder = root / f"class{label}"
        folder.mkdir(parents=True, exist_ok=True)
        for i in range(count):
            noise = words(side * side * 3, root.name, label, i) % np.uint64(64)
            pixels = (noise + np.uint64(label * 40)).astype(np.uint8).reshape(side, side, 3)
            Image.fromarray(pixels).save(folder / f"{i}.png")
    return root


def sweep(root: Path, methods: tuple[str, ...] = ("seal", "llf"), **more: Any) -> dict[str, Any]:
    """A sweep of these methods on the folders below `root`, which are made."""
    source, target = root / "source", images(root / "target", 5, 20)
    images(source / "train", 4, 12)
    images(source / "val", 4, 4)
    block = {"recipes": ["toy"], "methods": [*methods], **more.pop("runs", {})}
    tiny = {**TINY, "source": f"folder:{source}"}
    evaluation = {"tasks": [f"folder:{target}:5w1s"], "episodes": 4, "input_size": "native"}
    return {"pretrain": [{**block, "set": tiny}], "evaluate": [evaluation], **more}


def read(data: Mapping[str, Any]) -> SweepFile:
    return SweepFile.model_validate(data)


def write(path: Path, data: Mapping[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(dict(data)), encoding="utf8")
    return path


def make_options(root: Path, output: str = "out", **more: Any) -> SweepOptions:
    return SweepOptions(output=root / output, cache=root / "cache", **more)


def hashes(output: Path) -> dict[str, str]:
    """Weights of all runs and outcomes of all results below a sweep's folder."""
    runs = {path.parent.name: read_json(path) for path in output.glob("runs/*/run.json")}
    weights = {name: record["weights_hash"] for name, record in runs.items()}
    return weights | fakes.digests(*output.glob("results"))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf8"))


def where(root: Path, output: str) -> list[str]:
    return ["-o", str(root / output), "--cache", str(root / "cache")]


def start(root: Path, output: str, file: Path, *more: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "fsbench", "sweep", str(file), *where(root, output), *more]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def children(pid: int) -> list[int]:
    """Processes that the threads of a process started (Linux)."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for path in files for child in path.read_text().split()]


def wait_for_training(sweeping: subprocess.Popen[bytes], output: Path) -> list[int]:
    """Return the processes of a sweep as soon as a run has written a checkpoint."""
    until = time.monotonic() + 600
    while not list(output.glob("runs/*/checkpoint.json")):
        assert time.monotonic() < until, "no checkpoint was written"
        assert sweeping.poll() is None, sweeping.stderr and sweeping.stderr.read()
        time.sleep(0.01)
    return children(sweeping.pid)


def wait_for_end(pid: int) -> None:
    until = time.monotonic() + 120
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, 0)
            assert time.monotonic() < until, f"process {pid} goes on"
            time.sleep(0.05)
