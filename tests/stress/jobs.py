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

from stress.command import call
from support import fakes
from support.sweep import images

Outcome = dict[str, str]
"""Visible file -> digest of what matters in it."""

MODEL = ["-m", "fsbench/toy_resnet", "--random-init", "0", "--input-size", "native"]
TASKS = ("toy_scan:5w1s", "toy_scan:5w5s")
CLOCKS = {"started", "seconds", "command", "git_commit", "submitted", "peak_memory_bytes"}
CLOCKS |= {"date", "entry_digest", "cost", "costs", "checksum"}
"""Fields that differ between equal runs."""


@dataclass(frozen=True)
class Job:
    """arguments: of the command that works in a folder; parts: what of the folder counts as its
    outcome; prepare: makes the state of the folder in which it starts."""

    arguments: Callable[[Path], list[str]]
    parts: tuple[str, ...]
    prepare: Callable[[Path], object] = lambda folder: None

    def files(self, folder: Path) -> Iterator[Path]:
        """Yield the files that a reader may take for finished."""
        for file in sorted(file for part in self.parts for file in (folder / part).rglob("*")):
            inside = file.relative_to(folder).parts
            is_hidden = any(
                p[0] == "." or p.endswith((".partial", ".part", ".lock")) for p in inside
            )
            if file.is_file() and not is_hidden:
                yield file

    def outcome(self, folder: Path) -> Outcome:
        return {
            file.relative_to(folder).as_posix(): hashlib.sha256(content).hexdigest()
            for file in self.files(folder)
            if (content := read_settled(file))
        }


def read_settled(file: Path) -> bytes:
    """Return the content without clock values; nothing for files that only a running job needs.

    Lines that differ in clock values alone count once: an entry that two processes replace has two
    events in the history of its board, if they end in different seconds.
    """
    if file.name.startswith("checkpoint"):
        return b""
    if file.suffix not in (".json", ".jsonl"):
        return file.read_bytes()
    texts = [file.read_text()] if file.suffix == ".json" else file.read_text().splitlines()
    try:
        contents = [without_clocks(json.loads(text)) for text in texts]
    except ValueError:  # half-written
        return file.read_bytes()
    settled = dict.fromkeys(json.dumps(content, sort_keys=True) for content in contents)
    return "\n".join(settled).encode()


def without_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_clocks(v) for k, v in value.items() if k not in CLOCKS}
    return [without_clocks(v) for v in value] if isinstance(value, list) else value


def evaluation(folder: Path, task: str, episodes: int) -> list[str]:
    """An evaluation of the control; its cache lies in the folder as well."""
    outputs = ["-o", str(folder / "results"), "--cache", str(folder / "cache")]
    size = ["--episodes", str(episodes), "--threads", "1", "-b", "8", "--workers", "0"]
    return ["episodic", *MODEL, "-t", task, *size, *outputs]


def pretraining(folder: Path) -> list[str]:
    """Two rounds on a folder of images, which are decoded once into the cache."""
    sets = ["--set", "width=2", "--set", "plan.epochs=4", "--set", "plan.epoch_images=32"]
    outputs = ["-o", str(folder / "runs"), "--cache", str(folder / "cache"), "--threads", "1"]
    return ["pretrain", "toy/seal", *sets, *outputs, "--source", f"folder:{source(folder)}"]


def source(folder: Path) -> Path:
    """The images of all pretraining beside this folder."""
    return folder.parent / "pictures"


def with_pictures(folder: Path) -> None:
    for part in ("train", "val"):
        if not (source(folder) / part).exists():
            images(source(folder) / part, 2, 20, 32)


def prepared(
    name: str,
    commands: Callable[[Path], list[list[str]]],
    first: Callable[[Path], object] = lambda folder: None,
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
    fakes.declare(folder / "results", pretraining_data=())
    board = ["--board", str(folder / "board")]
    return ["submit", str(folder / "results"), *board, "--name", name, *more]


def page(folder: Path) -> list[str]:
    board = ["--board", str(folder / "board")]
    return ["leaderboard", "build", *board, "-o", str(folder / "site")]


with_decoded = prepared("decoded", lambda f: [pretraining(f)], with_pictures, "runs")
with_features = prepared("features", lambda f: [evaluation(f, TASKS[0], 1)], removed="results")
with_few = prepared("few", lambda f: [evaluation(f, TASKS[1], 400)], with_features)
with_results = prepared("results", lambda f: [evaluation(f, TASKS[0], 600)], with_features)
with_board = prepared(
    "board", lambda f: [submission(f), page(f), submission(f, "other")], with_results
)
"""One entry, the page of the board, and a second entry."""

JOBS = {
    "pretrain": Job(pretraining, ("runs",), with_decoded),
    "decode": Job(pretraining, ("runs", "cache"), with_pictures),
    "features": Job(lambda f: evaluation(f, TASKS[0], 1), ("cache", "results")),
    "episodes": Job(lambda f: evaluation(f, TASKS[1], 600), ("results",), with_features),
    "more episodes": Job(lambda f: evaluation(f, TASKS[1], 600), ("results",), with_few),
    "own images": Job(
        lambda f: evaluation(f, f"folder:{f.parent / 'images'}:2w1s", 50),
        ("results",),
        lambda f: images(f.parent / "images", 2, 20, 32),
    ),
    "submit": Job(lambda f: submission(f, "control", "--replace"), ("board",), with_board),
    "build": Job(page, ("site",), with_board),
}
EVERY = tuple(name for name in JOBS if name != "own images")
"""Jobs whose images do not change."""
