"""Cards of data sets: what is known of one before it is read, in cards/NAME.yaml.

A card has the fields of DatasetFacts but the name, besides those of Card. `classes` are names, or
names with the official numbers of images, in class id order; `images_per_class` is one number.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import ConfigDict, Field

from fsbench.core import io
from fsbench.core.schema import DatasetFacts
from fsbench.core.specs import Frozen
from fsbench.data.assembly import StartupLists


@dataclass(frozen=True)
class Archive:
    """A file of a publisher: a zip or tar archive, or a single file used as it is.

    known_hash: `md5:...`, `sha1:...` or `sha256:...`, None if nobody states one; hash_source: who
    states it, unless the publisher does; mirrors: other addresses of the same bytes; saved_as: its
    file name, by default the end of the address; official: whether it holds the official images;
    inner: archives in it that are unpacked, too.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    url: str
    known_hash: str | None = None
    hash_source: str = ""
    mirrors: tuple[str, ...] = ()
    saved_as: str = ""
    official: bool = True
    inner: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        """The file name."""
        return self.saved_as or self.url.rpartition("/")[2]


class Card(Frozen):
    """A card: facts, and how the files are obtained."""

    facts: DatasetFacts
    counts: Mapping[str, int] = Field({}, description="images by class, where `classes` has them")
    archives: tuple[Archive, ...] = Field((), description="what `fsbench data download` fetches")
    steps: str = Field("", description="what users do by hand, as lines")
    startup: StartupLists | None = Field(None, description="STARTUP's lists of the data set")

    @property
    def lists(self) -> StartupLists:
        """STARTUP's lists. Raises LookupError for a card without them."""
        if self.startup is None:
            raise LookupError(f"{self.facts.name} has no lists of STARTUP")
        return self.startup


@cache
def read_card(name: str) -> Card:
    """Read the card of a data set of the suite. Raise ValueError for a field that is wrong."""
    fields = io.read_table(Path(__file__).parent / "cards" / f"{name}.yaml")
    parts = {part: fields.pop(part) for part in Card.model_fields if part in fields}
    classes, count = fields["classes"], fields.pop("images_per_class", None)
    counts = classes if isinstance(classes, dict) else {}
    official = counts.values() if count is None else (count,) * len(classes)
    facts = {**fields, "name": name, "classes": tuple(classes), "images_per_class": tuple(official)}
    return Card(facts=DatasetFacts(**facts), counts=counts, **parts)
