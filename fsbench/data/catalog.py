"""Data sets by name: cards/targets, cards/sources and plug-ins, aliases, folders of the user."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from os.path import isdir  # False for a text that is too long to be a path
from pathlib import Path
from pkgutil import resolve_name

from fsbench.core.errors import DataError, UnknownName, UsageError
from fsbench.core.io import read_table
from fsbench.core.options import expand_path
from fsbench.core.registry import DATASETS, PRETRAINING_DATASETS, Registry
from fsbench.core.tasks import USER_DATA
from fsbench.data.cards import SPLITS, Dataset, DatasetFacts
from fsbench.data.files import find_first, find_path
from fsbench.data.toy import TOY_SOURCES, TOY_TARGETS

CARDS = Path(__file__).parent / "cards"


@cache
def read_card(path: Path) -> Dataset:
    """Read the card of a data set of the suite. Raise ValueError for a field that is wrong.

    It has the fields of DatasetFacts but name and domain, which the path states. Its `classes` are
    names, or names with the official numbers of images, in class id order; its `images_per_class`
    is one number; its `reader` names a class of fsbench.data.readers and sets the fields of it.
    """
    fields = read_table(path)
    classes, per_class = fields.pop("classes"), fields.pop("images_per_class", None)
    counts = classes.values() if isinstance(classes, dict) else ()
    official = counts if per_class is None else (per_class,) * len(classes)
    ((reader, settings),) = fields.pop("reader").items()
    facts = DatasetFacts(
        name=path.stem,
        domain="target" if path.parent.name == "targets" else "source",
        classes=tuple(classes),
        images_per_class=tuple(official),
        **fields,
    )
    kind = resolve_name(f"fsbench.data.readers.{reader}")
    return Dataset(facts, partial(kind(**settings).load, facts))


class DatasetRegistry(Registry[Dataset]):
    """Data sets by name: cards of a folder, toy data sets, and modules of plug-ins."""

    def __init__(self, kind: str, folder: Path, toys: Mapping[str, Dataset], group: str) -> None:
        super().__init__(
            kind, "fsbench.data.cards", lambda m: Dataset(m.FACTS, m.load), group=group
        )
        self.folder, self.toys = folder, toys

    def suite_names(self) -> tuple[str, ...]:
        return tuple(sorted([*(path.stem for path in self.folder.glob("*.yaml")), *self.toys]))

    def load(self, name: str) -> Dataset:
        if name in self.toys:
            return self.toys[name]
        if name in self.suite_names():
            return read_card(self.folder / f"{name}.yaml")
        return super().load(name)


TARGETS = DatasetRegistry("target", CARDS / "targets", TOY_TARGETS, DATASETS)
SOURCES = DatasetRegistry("source", CARDS / "sources", TOY_SOURCES, PRETRAINING_DATASETS)


@cache
def all_facts(*, plugins: bool = True) -> dict[str, DatasetFacts]:
    """Return the FACTS of every target and source by name; plugins: those of plug-ins, too."""
    return {
        name: registry.load(name).FACTS
        for registry in (TARGETS, SOURCES)
        for name in (registry.names() if plugins else registry.suite_names())
    }


def resolve_alias(name: str, *, plugins: bool = True) -> str:
    """Return the data set name of an alias, of which letters and digits count. Raise UnknownName.

    plugins: among the data sets of plug-ins, too.
    """
    facts_by_name = all_facts(plugins=plugins)
    if name in facts_by_name:
        return name
    for canonical, facts in facts_by_name.items():
        if normalize_name(name) in map(normalize_name, (canonical, *facts.aliases)):
            return canonical
    raise UnknownName("data set", name, facts_by_name)


def normalize_name(text: str) -> str:
    """Return letters and digits in lower case, without a last word `dataset`."""
    return "".join(filter(str.isalnum, text.casefold())).removesuffix("dataset") or text


def dataset_groups() -> dict[str, tuple[str, ...]]:
    """Return the targets of each group name that tasks accept."""
    return {
        "cdfsl": ("chestx", "isic", "eurosat", "cropdisease"),
        "cdfsl-small": ("eurosat", "cropdisease", "isic"),
        "transfer": ("flowers102", "cub200", "aircraft", "mit67", "dogs"),
        "toy": tuple(TOY_TARGETS),
    }


def find_datasets(name: str) -> tuple[str, ...]:
    """Return the data sets of a group, name, alias or reference of the user. Raise UnknownName."""
    if name.startswith(USER_DATA):
        return (name,)
    return dataset_groups().get(name) or (resolve_alias(name),)


ASK = "pass --data ROOT (or FSBENCH_DATA) with ROOT/{facts.folders[0]}/, or --data {facts.name}=DIR"


@dataclass(frozen=True)
class DataRoots:
    """Folders that contain data set folders, and those of named data sets, which come first."""

    roots: tuple[Path, ...] = ()
    named: dict[str, Path] = field(default_factory=dict, hash=False)

    @classmethod
    def parse(cls, values: Sequence[str] = (), must_exist: bool = True) -> "DataRoots":
        """Parse the values of --data, then FSBENCH_DATA (the same values, separated like PATH).

        Raises UnknownName, and DataError for a missing folder unless `must_exist` is False.
        """
        roots: list[Path] = []
        named: dict[str, Path] = {}
        texts = (*values, *os.environ.get("FSBENCH_DATA", "").split(os.pathsep))
        for text in filter(None, texts):
            name, equals, folder = text.partition("=")
            is_named = equals and not isdir(text)  # noqa: PTH112
            path = expand_path(folder if is_named else text)
            if is_named:
                named.setdefault(SPLITS if name == SPLITS else resolve_alias(name), path)
            else:
                roots.append(path)
            if must_exist and not isdir(path):  # noqa: PTH112
                raise DataError(f"--data {text}: {path} is not a folder", fix="pass another one")
        return cls(tuple(roots), named)

    def folder(self, facts: DatasetFacts) -> Path:
        """Return the folder of a data set. Raise DataError with its layout and download."""
        if folder := self.find(facts):
            return folder
        folders = ", ".join(str(root / facts.folders[0]) for root in self.roots)
        searched = f"; searched {folders}" if folders else "; no --data was given"
        raise DataError(
            f"{re.split('[,(]', facts.title)[0].strip()} not found{searched}",
            fix=f"{ASK.format(facts=facts)}; layout: {facts.layout}; get it: {facts.download}",
        )

    def find(self, facts: DatasetFacts) -> Path | None:
        """Return the folder of a data set, or None. A root may itself be that folder."""
        if facts.name in self.named:
            return self.named[facts.name]
        for root in self.roots:
            if folder := find_first(root, facts.folders):
                return folder
            if root.resolve().name.lower() in map(str.lower, facts.folders):
                return root
        return None

    def destination(self, facts: DatasetFacts) -> Path:
        """Return the folder for a download: where the data set is, or one below the first root."""
        if folder := self.find(facts):
            return folder
        if not self.roots:
            raise UsageError(f"no folder for {facts.name}", fix=ASK.format(facts=facts))
        return self.roots[0] / facts.folders[0]

    def splits(self, beside: Path) -> Path | None:
        """Return the folder of STARTUP's lists: named, below a root, or beside the data set."""
        folders = (find_path(root, SPLITS) for root in (*self.roots, beside.resolve().parent))
        return self.named.get(SPLITS) or next(filter(None, folders), None)
