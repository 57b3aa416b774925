"""Facts of data sets that are known before one is read."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field

from fsbench.core.errors import DataError
from fsbench.core.specs import Frozen, TestScore
from fsbench.data.files import find_path, read_csv_columns, without_suffix

SPLITS = "startup_splits"
"""Name of STARTUP's lists in --data: a folder below a root, or startup_splits=DIR."""


class Archive(NamedTuple):
    """A file of a publisher: a zip or tar archive, a gzipped file, or a file used as it is.

    known_hash: `md5:...`, `sha1:...` or `sha256:...`; mirrors: other addresses of the same bytes;
    saved_as: its file name, by default the end of the address; into: the folder below that of the
    data set that it is unpacked to; official: whether it holds the official images; inner: archives
    in it that are unpacked, too.
    """

    url: str
    known_hash: str
    mirrors: tuple[str, ...] = ()
    saved_as: str = ""
    into: str = "."
    official: bool = True
    inner: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return self.saved_as or self.url.rpartition("/")[2]


class StartupLists(NamedTuple):
    """STARTUP's two lists of a data set: `<prefix>_labeled_80.csv`, `<prefix>_unlabeled_20.csv`.

    labeled_80_hash: sha-256 over the sorted canonical ids of the official list, one a line;
    full_hash: the same over the ids of both lists, which name every image of the data set.
    """

    prefix: str
    labeled_80_hash: str
    full_hash: str


class DatasetFacts(Frozen):
    """Facts of a data set that are known before it is read, and how its files are obtained."""

    name: str
    title: str
    domain: Literal["source", "target", "toy"]
    classes: tuple[str, ...]
    images_per_class: tuple[int, ...] = Field(description="official counts; () if only `split` is")
    split: tuple[int, int] | None = Field(None, description="official train and test images")
    label_rule: str = "class id = rank of the folder name in sorted order"
    dropped: str = Field("nothing", description="what is left out, with counts")
    metric: TestScore = Field("accuracy", description="of the official test: what a probe reports")
    pre_resize: int | None = Field(None, description="square side (px) before the eval transform")
    groups: str = Field("", description="what images of one group share and where it is read")
    group_pattern: str = Field("", description="its groups in a canonical id name the group")
    layout: str = Field(description="files and folders expected below the data set folder")
    folders: tuple[str, ...] = Field((), description="accepted folder names below --data ROOT")
    aliases: tuple[str, ...] = ()
    download: str = Field("one's own images", description="where to get it, or the command")
    license: str = "unknown"
    citation: str = "none"
    homepage: str = "none"
    archives: tuple[Archive, ...] = Field((), description="what `fsbench data download` fetches")
    steps: str = Field("", description="what users do by hand to get the images, as lines")
    startup: StartupLists | None = Field(None, description="STARTUP's lists of the data set")

    @property
    def n_images(self) -> int:
        """Official images of all classes, of a split both parts."""
        return sum(self.images_per_class or self.split or ())

    def complete(self, counts: Mapping[int, int]) -> bool:
        """Return whether so many images of each class id are the official ones."""
        if self.images_per_class:
            return counts == dict(enumerate(self.images_per_class))
        has_all = counts.keys() == {*range(len(self.classes))}
        return has_all and sum(counts.values()) == self.n_images

    def group_of(self, canonical_id: str) -> str:
        """Return the group of an image by its name; group_pattern matches whatever the case."""
        match = re.match(self.group_pattern, canonical_id, re.IGNORECASE)
        return "".join(match.groups()).lower() if match else canonical_id

    def listed_ids(self, part: str, splits: Path | None) -> set[str]:
        """Return the canonical ids of STARTUP's list labeled_80 or unlabeled_20, in a folder.

        Raises DataError for a data set without lists, and naming a missing folder or file.
        """
        if self.startup is None:
            raise DataError(f"{self.name} has no pool {part}", fix="use @ibm (the full pool)")
        file = f"{self.startup.prefix}_{part}.csv"
        path = splits and find_path(splits, file)
        if path is None:
            raise DataError(
                f"the pool {part} needs STARTUP's list {file}, not found in {splits or '--data'}",
                fix=f"get datasets/split_seed_1 of github.com/cpphoo/STARTUP and give it as "
                f"--data {SPLITS}=DIR, or as a folder {SPLITS} below --data",
            )
        names = [name for (name,) in read_csv_columns(path, ["img_path"])]
        return {name if "/" in name else without_suffix(name) for name in names}


class Dataset(NamedTuple):
    """A data set by name: a card of the suite, a toy data set, or a module of a plug-in.

    load: (folder, pool, splits) -> TargetDataset, or (folder, cache) -> SourceListing.
    """

    FACTS: DatasetFacts
    load: Callable[..., Any]
