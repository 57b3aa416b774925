"""A run's folder: whose run it is, its logs, and the finished run that `run:DIR` loads.

recipe.json is written first and says which recipe and data the folder belongs to; log.jsonl (one
line an epoch) and rewrites.jsonl (one line a rewrite) grow; shared.jsonl has a line for a round
that was taken over from another run (branching.py); checkpoint.* carry the state; run.json is
written last, so its presence means that the run is complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from pydantic import BaseModel
from torch import Tensor

from fsbench.core.distributed import ALONE, Ranks
from fsbench.core.errors import CheckpointError, FsbenchError, UsageError
from pretrain.training.checkpoint import write_tensors
from pretrain.training.files import write_atomic

if TYPE_CHECKING:
    from fsbench.data.source import SourceDataset
    from pretrain.recipes.recipe import Recipe

LOGS = ("log.jsonl", "rewrites.jsonl", "shared.jsonl")


def finished(folder: Path) -> bool:
    """Whether the folder holds a complete run."""
    return (folder / "run.json").is_file()


@contextmanager
def claimed(
    folder: Path, recipe: Recipe, source: SourceDataset, ranks: Ranks = ALONE
) -> Iterator[None]:
    """The folder belongs to this recipe, data and run while the block runs, which rank 0 sees to.

    Raises UsageError when it holds another run, FsbenchError when another process works in it.
    """
    with locked(folder, recipe, source) if ranks.first else nullcontext():
        ranks.wait()
        yield
        ranks.wait()


@contextmanager
def locked(folder: Path, recipe: Recipe, source: SourceDataset) -> Iterator[None]:
    """No other process trains in the folder, and it is this run's. Raises as `claimed`."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise FsbenchError(
            f"another process is training in {folder}", fix="wait for it, or give another -o"
        ) from error
    with lock:
        identify(folder, recipe, source)
        yield


def identify(folder: Path, recipe: Recipe, source: SourceDataset) -> None:
    """Write who the folder belongs to, or check it."""
    path = folder / "recipe.json"
    identity = {"recipe": recipe.model_dump(mode="json"), "recipe_digest": recipe.digest()}
    identity |= {"source": source.name, "source_fingerprint": source.fingerprint}
    if not path.exists():
        write_atomic(path, json.dumps(identity, indent=1).encode())
        return
    try:
        found = flat(json.loads(path.read_text(encoding="utf8")))
    except ValueError as error:
        raise CheckpointError(f"{path} is corrupt: {error}", fix=f"delete {folder}") from error
    wanted = flat(identity)
    differing = [
        key
        for key in sorted(wanted.keys() | found.keys() - {"recipe_digest"})
        if key != "recipe_digest" and wanted.get(key) != found.get(key)
    ]
    if differing:
        changes = ", ".join(f"{k} {found.get(k)} -> {wanted.get(k)}" for k in differing)
        raise UsageError(
            f"{folder} holds another run; differing: {changes}",
            fix="give another -o, or delete the folder to start over",
        )


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested JSON as dotted name -> leaf; a method's settings stand under its name."""
    if isinstance(value, list) and value and isinstance(value[0], dict) and "name" in value[0]:
        value = {item["name"]: item for item in value}
    if not isinstance(value, dict):
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, item in value.items():
        found |= flat(item, f"{prefix}.{key}" if prefix else key)
    return found


class Journal:
    """The run's line logs, cut back to the checkpoint on resuming so that no line stands twice."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def append(self, name: str, line: BaseModel | dict[str, Any]) -> None:
        data = line.model_dump(mode="json") if isinstance(line, BaseModel) else line
        with (self.folder / name).open("a", encoding="utf8") as file:
            file.write(json.dumps(data) + "\n")

    def positions(self) -> dict[str, int]:
        """Bytes of every log."""
        paths = {name: self.folder / name for name in LOGS}
        return {name: path.stat().st_size if path.exists() else 0 for name, path in paths.items()}

    def read(self, name: str) -> list[dict[str, Any]]:
        """The lines of a log."""
        lines = (self.folder / name).read_text(encoding="utf8").splitlines()
        return [json.loads(line) for line in lines]

    def shared(self) -> dict[str, Any]:
        """Which rounds were taken over from which run, for the run's record; {} for none."""
        rounds = self.read("shared.jsonl") if (self.folder / "shared.jsonl").exists() else []
        return {"shared_rounds": rounds} if rounds else {}

    def rewind(self, positions: dict[str, int]) -> None:
        """Cut every log to this many bytes."""
        for name in LOGS:
            with (self.folder / name).open("ab") as file:
                file.truncate(positions.get(name, 0))


class NoJournal(Journal):
    """That of a rank which does not write."""

    def append(self, name: str, line: BaseModel | dict[str, Any]) -> None:
        return None

    def rewind(self, positions: dict[str, int]) -> None:
        return None


def finish(folder: Path, weights: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Write the finished run: weights first, run.json last."""
    write_tensors(folder / "model.safetensors", weights)
    whole = facts | Journal(folder).shared()
    write_atomic(folder / "run.json", json.dumps(whole, indent=1).encode())
