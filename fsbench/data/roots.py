"""Where the user's data sets lie: --data ROOT, --data NAME=DIR, and FSBENCH_DATA behind them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fsbench.core.errors import DataError, UsageError
from fsbench.core.schema import DatasetFacts
from fsbench.data.assembly import SPLITS
from fsbench.data.catalog import resolve_alias
from fsbench.data.files import find_first


@dataclass(frozen=True)
class DataRoots:
    """roots: folders that hold data set folders; named: data set -> its own folder, which wins."""

    roots: tuple[Path, ...] = ()
    named: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def parse(cls, values: Sequence[str] = (), must_exist: bool = True) -> DataRoots:
        """From the values of --data; FSBENCH_DATA (the same, separated as PATH is) comes last.

        Raises UnknownName for a NAME that nothing knows, and DataError for a folder that is not
        there (unless it need not be, as for a download).
        """
        given = [*values, *os.environ.get("FSBENCH_DATA", "").split(os.pathsep)]
        roots: list[Path] = []
        named: dict[str, Path] = {}
        for value in filter(None, given):
            name, equals, folder = value.partition("=")
            if not equals or _is_folder(Path(value)):
                roots.append(_folder(value, value, must_exist))
            else:
                key = SPLITS if name == SPLITS else resolve_alias(name)
                named.setdefault(key, _folder(folder, value, must_exist))
        return cls(tuple(roots), named)

    def folder(self, facts: DatasetFacts) -> Path:
        """The folder of a data set. Raises DataError with what is expected and how to get it."""
        found = self.find(facts)
        if found is None:
            places = ", ".join(str(root / facts.folders[0]) for root in self.roots)
            raise DataError(
                f"{facts.name} is not there; looked for {places or 'nothing: no --data was given'}",
                fix=f"give --data ROOT (with ROOT/{facts.folders[0]}/) or --data {facts.name}=DIR; "
                f"expected in it: {facts.layout}; get it: {facts.download}",
            )
        return found

    def find(self, facts: DatasetFacts) -> Path | None:
        """The folder of a data set, or None. A root that is itself such a folder counts."""
        if facts.name in self.named:
            return self.named[facts.name]
        for root in self.roots:
            if found := find_first(root, facts.folders):
                return found
            if root.resolve().name.lower() in {name.lower() for name in facts.folders}:
                return root
        return None

    def destination(self, facts: DatasetFacts) -> Path:
        """Where a download goes: the folder given for it, or one below the first root."""
        if facts.name in self.named:
            return self.named[facts.name]
        if not self.roots:
            raise UsageError(
                f"no place to put {facts.name}", fix=f"give --data ROOT or --data {facts.name}=DIR"
            )
        return self.find(facts) or self.roots[0] / facts.folders[0]

    def splits(self, beside: Path) -> Path | None:
        """The folder of STARTUP's lists: as given, below a root, or beside the data set."""
        if SPLITS in self.named:
            return self.named[SPLITS]
        places = [*self.roots, beside.resolve().parent]
        return next((found for root in places if (found := find_first(root, (SPLITS,)))), None)


def _is_folder(path: Path) -> bool:
    """Also for what is too long to be a path."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _folder(folder: str, value: str, must_exist: bool) -> Path:
    try:
        path = Path(folder).expanduser()
    except RuntimeError as error:
        raise DataError(f"--data {value}: {error}", fix="write the whole path") from error
    if must_exist and not _is_folder(path):
        raise DataError(f"--data {value}: {path} is no folder", fix="give a folder that exists")
    return path
