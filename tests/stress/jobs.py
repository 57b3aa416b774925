"""The commands that faults are injected into: each on generated images, over in a second or two.

A job works below one folder, from a state that `prepare` makes; `outcome` tells what it left, file
by file, with nothing in it that may differ between two runs (clock values).
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from stress.command import call
from support import fakes

Outcome = dict[str, str]
"""Visible file -> digest of what matters in it."""

MODEL = ["-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native"]
TASKS = ("toy_scan:5w1s", "toy_scan:5w5s")
CLOCKS = {"started", "seconds", "command", "git_commit", "submitted", "peak_memory_bytes"}
CLOCKS |= {"date", "entry_digest"}
"""Fields that differ between equal runs."""


def nothing(folder: Path) -> None:
    """Starts from an empty folder."""


@dataclass(frozen=True)
class Job:
    """name: in the table; arguments: of the command that works in a folder; parts: what of the
    folder counts as its outcome."""

    name: str
    arguments: Callable[[Path], list[str]]
    parts: tuple[str, ...]
    prepare: Callable[[Path], None] = nothing

    def outcome(self, folder: Path) -> Outcome:
        digests = {}
        for part in self.parts:
            for file in visible(folder / part):
                name = file.relative_to(folder).as_posix()
                if content := settled(file):
                    digests[name] = hashlib.sha256(content).hexdigest()
        return digests


def visible(folder: Path) -> Iterator[Path]:
    """Files that a reader may take for finished."""
    for file in sorted(folder.rglob("*")):
        inside = file.relative_to(folder).parts
        hidden = any(
            p.startswith(".") or p.endswith((".partial", ".part", ".lock")) for p in inside
        )
        if file.is_file() and not hidden:
            yield file


def settled(file: Path) -> bytes:
    """The content without clock values; nothing for files that only a running job needs."""
    if file.name.startswith("checkpoint"):
        return b""
    if file.suffix not in (".json", ".jsonl"):
        return file.read_bytes()
    texts = [file.read_text()] if file.suffix == ".json" else file.read_text().splitlines()
    return json.dumps([without_clocks(json.loads(text)) for text in texts], sort_keys=True).encode()


def without_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_clocks(v) for k, v in value.items() if k not in CLOCKS}
    return [without_clocks(v) for v in value] if isinstance(value, list) else value


def evaluation(folder: Path, task: str, episodes: int, cache: str = "cache") -> list[str]:
    """An evaluation of the control; its cache lies in the folder as well."""
    places = ["-o", str(folder / "results"), "--cache", str(folder / cache)]
    size = ["--episodes", str(episodes), "--threads", "1", "-b", "8", "--workers", "0"]
    return ["episodic", *MODEL, "-t", task, *size, *places]


def pretraining(folder: Path) -> list[str]:
    """Two rounds on a folder of images, which are decoded once into the cache."""
    sets = ["--set", "width=2", "--set", "plan.epochs=4", "--set", "plan.epoch_images=32"]
    places = ["-o", str(folder / "runs"), "--cache", str(folder / "cache"), "--threads", "1"]
    return ["pretrain", "toy/seal", *sets, *places, "--source", f"folder:{source(folder)}"]


def source(folder: Path) -> Path:
    """The images of all pretraining beside this folder."""
    return folder.parent / "pictures"


def with_pictures(folder: Path) -> None:
    for seed, part in enumerate(("train", "val")):
        if not (source(folder) / part).exists():
            pictures(source(folder) / part, seed)


def pictures(folder: Path, seed: int) -> list[Path]:
    """Two classes of 20 noisy images."""
    noise, files = np.random.default_rng(seed), []
    for label in "ab":
        (folder / label).mkdir(parents=True)
        for i in range(20):
            files.append(folder / label / f"{i}.png")
            Image.fromarray(noise.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(files[-1])
    return files


def prepared(
    name: str,
    commands: Callable[[Path], list[list[str]]],
    first: Callable[[Path], None] = nothing,
    removed: str = "",
) -> Callable[[Path], None]:
    """Return what copies into a folder the state that some commands left in a folder beside it.

    first: prepares that folder; removed: the part of it that is deleted at the end. It is made by
    the first who asks.
    """

    def prepare(folder: Path) -> None:
        made = folder.parent / f"made-{name}"
        if not made.exists():
            made.mkdir()
            first(made)
            log = made / "log.txt"
            for command in commands(made):
                assert call(command, log) == 0, log.read_text()
            if removed:
                shutil.rmtree(made / removed)
        shutil.copytree(made, folder, dirs_exist_ok=True)

    return prepare


def submission(folder: Path, name: str = "control", *more: str) -> list[str]:
    places = [str(folder / "results"), "--board", str(folder / "board")]
    fakes.declare(folder / "results", pretraining_data=())
    return ["submit", *places, "--name", name, *more]


def page(folder: Path) -> list[str]:
    places = ["--board", str(folder / "board"), "-o", str(folder / "site")]
    return ["leaderboard", "build", *places]


with_decoded = prepared("decoded", lambda f: [pretraining(f)], with_pictures, "runs")
with_features = prepared("features", lambda f: [evaluation(f, TASKS[0], 1)], removed="results")
with_few = prepared("few", lambda f: [evaluation(f, TASKS[1], 400)], with_features)
with_results = prepared("results", lambda f: [evaluation(f, TASKS[0], 600)], with_features)
with_board = prepared(
    "board", lambda f: [submission(f), page(f), submission(f, "other")], with_results
)
"""One entry, the page of the board, and a second entry."""

JOBS = {
    job.name: job
    for job in (
        Job("pretrain", pretraining, ("runs",), with_decoded),
        Job("decode", pretraining, ("runs", "cache"), with_pictures),
        Job("features", lambda f: evaluation(f, TASKS[0], 1), ("cache", "results")),
        Job("episodes", lambda f: evaluation(f, TASKS[1], 600), ("results",), with_features),
        Job("more episodes", lambda f: evaluation(f, TASKS[1], 600), ("results",), with_few),
        Job("submit", lambda f: submission(f, "control", "--replace"), ("board",), with_board),
        Job("build", page, ("site",), with_board),
    )
}  # fmt: skip
