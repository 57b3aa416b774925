"""Registries made of files, and of plug-ins: the file name is the public name.

`names()` lists a package without importing its files, so `fsbench ls` and error messages stay fast;
`load(name)` imports one file. A file that fails to import, or lacks what the registry needs, is an
error that names the file: it is never skipped.

A package of somebody else may add files through Python entry points:

    [project.entry-points."fsbench.heads"]
    nearest_median = "my_package.nearest_median"

The groups are fsbench.methods (pretraining), fsbench.heads, fsbench.datasets (targets),
fsbench.pretraining_datasets, fsbench.sources (of backbones) and fsbench.analyses. The module has
the name of the entry and defines what a file of the suite's own package defines. Names of the suite
cannot be taken.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fsbench.core.errors import FsbenchError, UnknownName, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

SUITE = "fsbench"
"""Origin of everything that the suite itself brings."""
METHODS, HEADS, DATASETS = "fsbench.methods", "fsbench.heads", "fsbench.datasets"
PRETRAINING_DATASETS = "fsbench.pretraining_datasets"
BACKBONE_SOURCES, ANALYSES = "fsbench.sources", "fsbench.analyses"


class Registry(Generic[T]):
    """Objects by name: one per module of a package, and those of plug-ins.

    kind: the noun for messages ("method"); package: dotted name; pick: takes the object out of the
    imported module; machinery: modules of the package that are no entries; group: entry points that
    plug-ins may declare, none if empty. Modules and packages whose name starts with an underscore
    are no entries either.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        pick: Callable[[ModuleType], T],
        machinery: tuple[str, ...] = (),
        group: str = "",
    ) -> None:
        self.kind, self.package, self.pick, self.machinery = kind, package, pick, machinery
        self.group = group

    def suite_names(self) -> tuple[str, ...]:
        """Return the names that the suite itself has, whatever is installed beside it."""
        package = importlib.import_module(self.package)
        files = (module.name for module in pkgutil.iter_modules(package.__path__))
        return tuple(sorted(n for n in files if n[0] != "_" and n not in self.machinery))

    def names(self) -> tuple[str, ...]:
        """Return all names. Raise UsageError for a plug-in with a name that is taken."""
        names = self.suite_names()
        for name, plugin in self.plugins().items():
            if name in names:
                raise UsageError(
                    f"{self.kind} '{name}' is defined by fsbench and by {describe(plugin)}",
                    fix="rename the entry point, or uninstall that package",
                )
        return tuple(sorted([*names, *self.plugins()]))

    def plugins(self) -> Mapping[str, EntryPoint]:
        """Return the entry points of other packages, by name."""
        return plugins(self.group) if self.group else {}

    def origin(self, name: str) -> str:
        """Return what brings a name: fsbench, or a package and its version."""
        plugin = None if name in self.suite_names() else self.plugins().get(name)
        return SUITE if plugin is None else describe(plugin)

    def load(self, name: str) -> T:
        """Return the entry called `name`. Raise UnknownName with the nearest name."""
        if name in self.suite_names():
            module = importlib.import_module(f"{self.package}.{name}")
        elif name in self.plugins():
            module = load_plugin(self.plugins()[name])
        else:
            raise UnknownName(self.kind, name, self.names())
        try:
            return self.pick(module)
        except (AttributeError, LookupError) as error:
            raise FsbenchError(
                f"{module.__file__} is no {self.kind}: {error}",
                fix=f"define what a file of {self.package} must define (see CONTRIBUTING.md)",
            ) from error

    def items(self) -> Iterator[tuple[str, T]]:
        return ((name, self.load(name)) for name in self.names())

    def values(self) -> Iterator[T]:
        return (self.load(name) for name in self.names())


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group, by name. Raise UsageError if two packages share one."""
    from importlib.metadata import entry_points

    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        if entry.name in entries and entries[entry.name].value != entry.value:
            raise UsageError(
                f"{describe(entries[entry.name])} and {describe(entry)} both define "
                f"'{entry.name}' in {group}",
                fix="uninstall one of them",
            )
        entries[entry.name] = entry
    return entries


def plugin_packages(*names: tuple[str, str]) -> dict[str, str]:
    """Return the version of each package that brings one of these (group, name)."""
    entries = [plugins(group).get(name) for group, name in names]
    return {e.dist.name: e.dist.version for e in entries if e is not None and e.dist}


def describe(entry: EntryPoint) -> str:
    """Return package and version of an entry point, e.g. my-package 1.0."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module


def load_plugin(entry: EntryPoint) -> ModuleType:
    """Import the module of an entry point. Raise FsbenchError naming its package."""
    if entry.attr or entry.module.rpartition(".")[2] != entry.name:
        raise FsbenchError(
            f"{describe(entry)}: the entry point {entry.name} = {entry.value} names no module of"
            " this name",
            fix=f"write {entry.name} = PACKAGE.{entry.name}",
        )
    try:
        return importlib.import_module(entry.module)
    except ImportError as error:
        raise FsbenchError(
            f"{describe(entry)} cannot be imported: {error}",
            fix="repair the package, or uninstall it",
        ) from error


def attribute(name: str) -> Callable[[ModuleType], Any]:
    """Return a `pick` that takes the module's attribute `name`."""

    def pick(module: ModuleType) -> Any:
        return getattr(module, name)

    return pick


def only_subclass(base: type[T]) -> Callable[[ModuleType], type[T]]:
    """Return a `pick` that takes the one subclass of `base` that the module itself defines."""

    def pick(module: ModuleType) -> type[T]:
        classes = [
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, base)
            and value.__module__ == module.__name__
            and not value.__name__.startswith("_")
        ]
        if len(classes) != 1:
            raise LookupError(f"it must define exactly one {base.__name__}, found {len(classes)}")
        return classes[0]

    return pick
