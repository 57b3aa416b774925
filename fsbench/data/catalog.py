"""Registries of the data sets in targets/ and sources/, and their aliases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, Self, cast

from fsbench.core.errors import UnknownName
from fsbench.core.registry import DATASETS, PRETRAINING_DATASETS, Registry
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Pool
from fsbench.data.base import TargetDataset
from fsbench.data.download import Archive

if TYPE_CHECKING:
    from fsbench.data.source import SourceListing


class TargetModule(Protocol):
    """Interface of a file of fsbench/data/targets."""

    FACTS: DatasetFacts

    def load(self, folder: Path, pool: Pool, splits: Path | None) -> TargetDataset:
        """Load the data set below `folder`."""
        ...


class SourceModule(Protocol):
    """Interface of a file of fsbench/data/sources."""

    FACTS: DatasetFacts

    def load(self, folder: Path, cache: Path) -> SourceListing:
        """List the images below `folder`."""
        ...


def _target(module: ModuleType) -> TargetModule:
    _ = module.FACTS, module.load
    return cast("TargetModule", module)


def _source(module: ModuleType) -> SourceModule:
    _ = module.FACTS, module.load
    return cast("SourceModule", module)


TARGETS: Registry[TargetModule] = Registry(
    "data set", "fsbench.data.targets", _target, group=DATASETS
)
SOURCES: Registry[SourceModule] = Registry(
    "source", "fsbench.data.sources", _source, group=PRETRAINING_DATASETS
)


@cache
def suite_facts() -> dict[str, DatasetFacts]:
    """Return the facts of every target and source of the suite itself, by name."""
    targets = {name: TARGETS.load(name).FACTS for name in TARGETS.suite_names()}
    return targets | {name: SOURCES.load(name).FACTS for name in SOURCES.suite_names()}


@cache
def all_facts() -> dict[str, DatasetFacts]:
    """Return the FACTS of every target and source by name, those of plug-ins included."""
    targets = {name: module.FACTS for name, module in TARGETS.items()}
    return targets | {name: module.FACTS for name, module in SOURCES.items()}


@dataclass(frozen=True)
class Distribution:
    """Ways to obtain the files of a data set.

    archives: what `fsbench data download` fetches; steps: what users do by hand, "" for nothing;
    arrange: moves unpacked files to where the loader expects them.
    """

    archives: tuple[Archive, ...]
    steps: str
    arrange: Callable[[Path], None] | None

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the distribution of a target or source by its name."""
        registry: Registry[TargetModule] | Registry[SourceModule]
        registry = TARGETS if name in TARGETS.names() else SOURCES
        module = registry.load(name)
        archives = tuple(getattr(module, "ARCHIVES", ()))
        return cls(archives, getattr(module, "STEPS", ""), getattr(module, "arrange", None))


def resolve_alias(name: str, *, plugins: bool = True) -> str:
    """Return the data set name of an alias, in any letter case. Raise UnknownName.

    plugins: among the data sets of plug-ins, too.
    """
    facts_by_name = all_facts() if plugins else suite_facts()
    for canonical, facts in facts_by_name.items():
        spellings = {canonical, *facts.aliases}
        if name.lower().replace("_", "-") in {s.lower().replace("_", "-") for s in spellings}:
            return canonical
    raise UnknownName("data set", name, facts_by_name)


def dataset_groups() -> dict[str, tuple[str, ...]]:
    """Return the targets of each group name that tasks accept."""
    toys = tuple(n for n in TARGETS.suite_names() if TARGETS.load(n).FACTS.domain == "toy")
    return {
        "cdfsl": ("chestx", "isic", "eurosat", "cropdisease"),
        "cdfsl-small": ("eurosat", "cropdisease", "isic"),
        "transfer": ("flowers102", "cub200", "aircraft", "mit67", "dogs"),
        "toy": toys,
    }
