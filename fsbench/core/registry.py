"""Registries made of files, and of plug-ins: the file name is the public name.

A package adds modules, which define what a file of the suite defines, by entry points:

    [project.entry-points."fsbench.heads"]
    nearest_median = "my_package.nearest_median"

`add("py:FILE:NAME")` brings a class or function of a file that the command line or Python names.
"""

import hashlib
import importlib
import logging
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fsbench.core.errors import LISTED, FsbenchError, UnknownName, UsageError, nearest_names
from fsbench.core.options import expand_path

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

SUITE = "fsbench"
"""Origin of everything that the suite itself brings."""
METHODS, HEADS, DATASETS = "fsbench.methods", "fsbench.heads", "fsbench.datasets"
PRETRAINING_DATASETS = "fsbench.pretraining_datasets"
BACKBONE_SOURCES, ANALYSES = "fsbench.sources", "fsbench.analyses"
CODE = "py:"
"""Start of references to code of the user."""


@dataclass(frozen=True, eq=False)
class CustomCode:
    """A class or function of a file with this sha-256; name: in lower case with underscores."""

    name: str
    path: Path
    digest: str
    value: Any
    module: ModuleType


_CUSTOM: dict[tuple[str, str], CustomCode] = {}
"""Code that this process was told to use, by group and public name."""


@dataclass(eq=False)
class Registry(Generic[T]):
    """Objects by name: one per module of a package, and those of plug-ins.

    Names are listed without imports. kind: the noun for messages; pick: takes the object out of its
    module; machinery: modules that are no entries, as those that start with an underscore; group:
    of entry points, if any; adapt: makes an entry of custom code, None if the registry takes none.
    """

    kind: str
    package: str
    pick: Callable[[ModuleType], T]
    machinery: tuple[str, ...] = ()
    group: str = ""
    adapt: Callable[[CustomCode], T] | None = None

    def suite_names(self) -> tuple[str, ...]:
        """Return the names that the suite itself has."""
        package = importlib.import_module(self.package)
        files = (module.name for module in pkgutil.iter_modules(package.__path__))
        return tuple(sorted(n for n in files if n[0] != "_" and n not in self.machinery))

    def names(self) -> tuple[str, ...]:
        """Return all names. Raise UsageError for a plug-in with a name that is taken."""
        return tuple(sorted([*self.suite_names(), *self.plugins()]))

    def plugins(self) -> "Mapping[str, EntryPoint]":
        """Return the entry points of other packages, by name. Raise like `names`."""
        return find_plugins(self.group, self.suite_names()) if self.group else {}

    def custom(self) -> Mapping[str, CustomCode]:
        """Return the custom code that `add` brought, by name."""
        return {name: code for (group, name), code in _CUSTOM.items() if group == self.group}

    def origin(self, name: str) -> str:
        """Return what brings a name: fsbench, or a package and its version."""
        return describe(self.plugins()[name]) if name in self.plugins() else SUITE

    def add(self, reference: str) -> str:
        """Load py:FILE:NAME and return the public name that it has in this process from now on.

        A file that changed in between replaces what it defined. Raise UsageError for a name that
        is taken, FsbenchError for a file that cannot be imported or an object that does not fit.
        """
        code = load_custom_code(reference)
        if code.name in self.names():
            raise UsageError(
                f"{code.path}: {self.origin(code.name)} has the {self.kind} '{code.name}' already",
                fix=f"rename {code.value.__name__} in the file",
            )
        if self.adapt is not None:
            self.adapt(code)  # raises if the object does not fit
        _CUSTOM[self.group, code.name] = code
        return code.name

    def load(self, name: str) -> T:
        """Return the entry called `name`. Raise UnknownName with the nearest name."""
        if name in self.suite_names():
            module = importlib.import_module(f"{self.package}.{name}")
        elif name in self.plugins():
            with named_failure(describe(self.plugins()[name]), "repair or uninstall the package"):
                module = importlib.import_module(self.plugins()[name].module)
        elif self.adapt is not None and name in self.custom():
            return self.adapt(self.custom()[name])
        else:
            raise UnknownName(self.kind, name, self.names())
        try:
            return self.pick(module)
        except (AttributeError, LookupError) as error:
            fix = f"define what a file of {self.package} must define (see CONTRIBUTING.md)"
            raise FsbenchError(f"{module.__file__} is no {self.kind}: {error}", fix=fix) from error

    def items(self) -> Iterator[tuple[str, T]]:
        return ((name, self.load(name)) for name in self.names())

    def usable(self, but: Collection[str] = ()) -> tuple[dict[str, T], dict[str, FsbenchError]]:
        """Return the entries but some that load, and why the other plug-ins do not, by name."""
        entries, errors = dict[str, T](), dict[str, FsbenchError]()
        for name in sorted({*self.names()} - {*but}):
            try:
                entries[name] = self.load(name)
            except FsbenchError as error:
                if name not in self.plugins():
                    raise
                errors[name] = error
        return entries, errors


@cache
def find_plugins(group: str, taken: tuple[str, ...] = ()) -> "Mapping[str, EntryPoint]":
    """Return the entry points of a group by name. Raise UsageError for two of one name."""
    from importlib.metadata import entry_points

    entries: dict[str, EntryPoint] = {}
    origins = dict.fromkeys(taken, SUITE)
    for entry in entry_points(group=group):
        if (origin := origins.setdefault(entry.name, describe(entry))) != describe(entry):
            raise UsageError(
                f"{group}: '{entry.name}' is defined by {origin} and by {describe(entry)}",
                fix="rename the entry point, or uninstall that package",
            )
        entries[entry.name] = entry
    return entries


def plugin_packages(*names: tuple[str, str]) -> dict[str, str]:
    """Return the version of each package that brings one of these (group, name)."""
    entries = [find_plugins(group).get(name) for group, name in names]
    return {e.dist.name: e.dist.version for e in entries if e is not None and e.dist}


def describe(entry: "EntryPoint") -> str:
    """Return package and version of an entry point, e.g. my-package 1.0."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.module


@contextmanager
def named_failure(name: object, fix: str) -> Iterator[None]:
    """Raise FsbenchError for whatever the code of others raises while it is imported."""
    try:
        yield
    except Exception as error:  # code of others may raise anything
        raise FsbenchError(
            f"{name} cannot be imported: {explain_failure(error)}", fix=fix
        ) from error


def load_custom_code(reference: str) -> CustomCode:
    """Import the file of py:FILE:NAME, once per process, and return what NAME is there.

    The digest is that of the text that runs. Raise UsageError, FsbenchError for code that fails.
    """
    text, _, name = reference.removeprefix(CODE).rpartition(":")
    path = expand_path(text)
    if not reference.startswith(CODE) or not path.is_file():
        raise UsageError(f"{reference}: there is no file {path}", fix="write py:FILE:NAME")
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    module = sys.modules.get(f"fsbench_custom_code_{digest[:16]}")
    if module is None:
        module = ModuleType(f"fsbench_custom_code_{digest[:16]}")
        module.__file__ = str(path)
        sys.modules[module.__name__] = module  # pydantic resolves annotations of classes there
        try:
            with named_failure(path, "repair the file"):
                exec(compile(content, str(path), "exec"), vars(module))
        except FsbenchError:
            del sys.modules[module.__name__]
            raise
    names = [n for n, v in vars(module).items() if callable(v) and v.__module__ == module.__name__]
    if name not in names:
        raise UnknownName(f"class or function of {path}", name, names)
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return CustomCode(snake, path, digest, vars(module)[name], module)


def explain_failure(error: Exception) -> str:
    """Return one line that says what code raised, and where unless an import failed."""
    text = next(iter(str(error).strip().splitlines()), "")
    if isinstance(error, ImportError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    last = [*frames[:1], *(frame for frame in frames if is_user_file(frame.filename))][-1]
    file, line = last.filename, last.lineno
    if isinstance(error, SyntaxError):
        file, line = error.filename or file, error.lineno
    if isinstance(error, AttributeError) and error.obj is not None:
        text = describe_attributes(error.obj, error.name)
    return f"{type(error).__name__}: {text} ({Path(file).name}, line {line})"


def describe_attributes(owner: Any, missing: str | None) -> str:
    """Return that an object lacks an attribute, and which it has, or those of similar names."""
    kind = owner if isinstance(owner, type | ModuleType) else type(owner)
    names = [*getattr(kind, "__members__", ()), *getattr(kind, "model_fields", ())] or dir(owner)
    shown = names if len(names) <= LISTED else nearest_names(str(missing), names, 3)
    return f"{kind.__name__} has no {missing}; it has {', '.join(shown) or 'no similar one'}"


def is_user_file(file: str) -> bool:
    """Return whether a file belongs neither to Python, an installed package nor the suite."""
    library, suite = Path(logging.__file__).parents[1], Path(__file__).parents[2]
    packages = [suite / name for name in ("fsbench", "pretrain", "protocols", "leaderboard")]
    installed = (library, Path(sys.prefix), Path(sys.base_prefix), *packages)
    return file[:1] != "<" and not any(map(Path(file).is_relative_to, installed))


def user_error(error: Exception) -> FsbenchError | None:
    """Return the error of a user's method, head or backbone in one line; None for any other."""
    frames = traceback.extract_tb(error.__traceback__)
    is_users = any(is_user_file(frame.filename) for frame in frames)
    return FsbenchError(explain_failure(error), fix="repair the file") if is_users else None


def module_with(*names: str) -> Callable[[ModuleType], Any]:
    """Return a `pick` that takes the module itself, if it defines these names."""

    def pick(module: ModuleType) -> Any:
        if missing := [name for name in names if not hasattr(module, name)]:
            raise LookupError(f"it defines no {', '.join(missing)}")
        return module

    return pick


def only_subclass(base: type[T]) -> Callable[[ModuleType], type[T]]:
    """Return a `pick` that takes the one subclass of `base` that the module itself defines."""

    def pick(module: ModuleType) -> type[T]:
        classes = subclasses_in(module, base)
        if len(classes) != 1:
            raise LookupError(f"it must define exactly one {base.__name__}, found {len(classes)}")
        return classes[0]

    return pick


def subclasses_in(module: ModuleType, base: type[T]) -> list[type[T]]:
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    defined = [kind for kind in classes if kind.__module__ == module.__name__]
    return [kind for kind in defined if issubclass(kind, base) and kind.__name__[0] != "_"]
