"""Registries made of files: the file name is the public name.

`names()` lists a package without importing anything, so `fsbench ls` and error messages stay fast;
`load(name)` imports one file. A file that fails to import, or lacks what the registry needs, is an
error that names the file: it is never skipped.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Generic, TypeVar

from fsbench.core.errors import FsbenchError, UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """All modules of one package, each giving one object.

    kind: the noun for messages ("method"); package: dotted name; pick: takes the object out of the
    imported module; machinery: modules of the package that are no entries. Modules and packages
    whose name starts with an underscore are no entries either.
    """

    def __init__(
        self,
        kind: str,
        package: str,
        pick: Callable[[ModuleType], T],
        machinery: tuple[str, ...] = (),
    ) -> None:
        self.kind, self.package, self.pick, self.machinery = kind, package, pick, machinery

    def names(self) -> tuple[str, ...]:
        found = importlib.import_module(self.package)
        files = (module.name for module in pkgutil.iter_modules(found.__path__))
        names = (n for n in files if n[0] != "_" and n not in self.machinery)
        return tuple(sorted(names))

    def load(self, name: str) -> T:
        """The entry called `name`. Raises UnknownName with the nearest name."""
        if name not in self.names():
            raise UnknownName(self.kind, name, self.names())
        module = importlib.import_module(f"{self.package}.{name}")
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


def attribute(name: str) -> Callable[[ModuleType], Any]:
    """A `pick` that takes the module's attribute `name`."""

    def pick(module: ModuleType) -> Any:
        return getattr(module, name)

    return pick


def only_subclass(base: type[T]) -> Callable[[ModuleType], type[T]]:
    """A `pick` that takes the one subclass of `base` which the module itself defines."""

    def pick(module: ModuleType) -> type[T]:
        own = [
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, base)
            and value.__module__ == module.__name__
            and not value.__name__.startswith("_")
        ]
        if len(own) != 1:
            raise LookupError(f"it must define exactly one {base.__name__}, found {len(own)}")
        return own[0]

    return pick
