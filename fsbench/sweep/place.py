"""Folders, data and machine of a sweep, the same for every job and engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fsbench import data
from fsbench.api.machine import Machine

if TYPE_CHECKING:
    from fsbench.data import SourceDataset
    from pretrain.recipes.recipe import Recipe


@dataclass(frozen=True)
class Workplace:
    """All paths are absolute: jobs may run anywhere that sees them.

    runs/, rounds/, results/ and jobs/ lie in `output`. findings: of analyses, whose records count
    as done where the run is gone; by default with the results. roots: as --data; threads: of torch.
    """

    output: Path
    cache: Path
    roots: tuple[str, ...] = ()
    board: Path | None = None
    findings: Path | None = None
    device: str = "auto"
    threads: int = 1
    workers: int = 2

    @property
    def machine(self) -> Machine:
        return Machine(self.device, self.threads, self.workers, cache=self.cache)

    @property
    def results(self) -> Path:
        return self.output / "results"

    @property
    def analyses(self) -> Path:
        return self.findings or self.results

    def run(self, label: str) -> Path:
        return self.output / "runs" / label

    def source(self, recipe: Recipe) -> SourceDataset:
        """Read the images that the recipe trains on, once per process."""
        return _source(recipe.source, recipe.input_size, self.roots, self.cache)


@cache
def _source(ref: str, size: int, roots: tuple[str, ...], folder: Path) -> SourceDataset:
    return data.load_source(ref, data.DataRoots.parse(roots), folder, size)


def absolute_roots(roots: Sequence[str]) -> tuple[str, ...]:
    """Return the values of --data and FSBENCH_DATA with absolute folders."""
    values = [*roots, *filter(None, os.environ.get("FSBENCH_DATA", "").split(os.pathsep))]
    return tuple(_absolute(value) for value in values)


def _absolute(value: str) -> str:
    name, equals, folder = value.partition("=")
    if not equals or Path(value).is_dir():
        return str(Path(value).expanduser().absolute())
    return f"{name}={Path(folder).expanduser().absolute()}"
