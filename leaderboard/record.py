"""The definition of a board, board.json: columns, ranking rule and, if it is frozen, a version.

A board without a version compares the columns that it names; the first entry of a track decides
them, and those that come later are shown outside of the overall. A board with a version is a
benchmark to be cited: it names columns, rule and date, and contains a digest of them, so that every
reader detects a later change. A new version is a new file.
"""

from functools import cached_property, lru_cache
from typing import Literal, Self

from pydantic import Field, model_validator

from fsbench.core.schema import Name, Result, Sha256, Text
from fsbench.core.specs import Frozen, digest, omitted
from fsbench.core.tasks import ColumnId
from leaderboard.signatures import PublicKey


class Column(Frozen):
    """Results of equal spec on equal images, hence equal episodes.

    fingerprint: null on a board with a version if the hash of the official images is not published.
    Then their number is checked, and the hash of the list of ids if that is known; the entries of
    the column must still agree on one fingerprint.
    """

    name: ColumnId = Field(description="task and input size, e.g. eurosat:5w1s/linear@ibm 224px")
    spec_digest: Sha256
    fingerprint: Sha256 | None = Field(
        description="of the images, and of the groups of a disjoint track"
    )
    images: int | None = omitted(None, ge=1, description="official images")
    images_hash: Sha256 | None = omitted(None, description="of the official ids")

    def __hash__(self) -> int:
        return hash((self.name.task.dataset, self.spec_digest, self.fingerprint))  # of texts only

    def has_spec_of(self, result: Result) -> bool:
        """Return whether a result is of this task and spec; its images may differ."""
        return (self.name, self.spec_digest) == (result.column, result.spec_digest)

    def has_images_of(self, result: Result) -> bool:
        """Return whether a result of this task and spec is of all official images."""
        data = result.dataset
        pairs = (
            (self.fingerprint, data.identity),
            (self.images_hash, data.images_hash),
            (self.images, sum(data.class_counts)),
        )
        return not result.flags and all(expected in {None, value} for expected, value in pairs)


def identify_column(result: Result) -> Column:
    """Return the column that a result belongs to, one object for all of its results."""
    return _make_column(result.column, result.spec_digest, result.dataset.identity)


@lru_cache(maxsize=4096)
def _make_column(name: ColumnId, spec_digest: str, fingerprint: str) -> Column:
    return Column(name=name, spec_digest=spec_digest, fingerprint=fingerprint)


FROZEN = ("name", "version", "date", "about", "official", "ranking", "columns")


class BoardFile(Frozen):
    """Settings of a board; without columns it compares all columns of its entries."""

    schema_version: Literal[2] = 2
    name: Name
    version: int | None = Field(None, ge=1)
    date: str | None = Field(None, pattern=r"^\d{4}-\d\d-\d\d$", description="of the version")
    about: Text | None = None
    official: bool = Field(False, description="refuses every target seen; a version of fsbench")
    ranking: Literal["simultaneous-tiers-2"] = "simultaneous-tiers-2"
    columns: tuple[Column, ...] | None = None
    signers: tuple[PublicKey, ...] = omitted(
        (), description="whose signed badges count; never frozen, so that a version can change them"
    )
    episodes: dict[str, int] = omitted(
        {}, description="head -> episodes of a whole result, if fewer than its spec's; no version"
    )
    frozen: Sha256 | None = Field(None, description="digest of the content of a version")
    cleared: tuple[tuple[Name, Name], ...] = omitted(
        (), description="pairs of entries that are not suspicious (near_copies.py); not frozen"
    )
    controls: tuple[Name, ...] = omitted(
        (), description="entries that gains are over, each for the plan that it has; not frozen"
    )
    tuned: tuple[Name, ...] = omitted(
        (), description="those of `controls` with searched settings (controls.py); not frozen"
    )
    pooled: tuple[Name, ...] = omitted(
        (),
        description="entries whose spread between seeds is pooled: the first three of several "
        "seeds, and those that a maintainer adds; not frozen",
    )
    heads: Literal["apart", "together"] = omitted(
        "apart", description="whether heads have tables of their own, as they have in versions"
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        is_version = self.version or self.frozen or self.official
        if is_version and None in (self.version, self.date, self.columns):
            raise ValueError("an official or frozen board has a version, a date and columns")
        if self.version and self.episodes:
            raise ValueError("a board with a version has the episodes of its specs")
        names = [column.name for column in self.columns or ()]
        if len(set(names)) < len(names):
            raise ValueError("two columns have one name")
        return self

    @property
    def title(self) -> str:
        """e.g. cdfsl-2"""
        return self.name if self.version is None else f"{self.name}-{self.version}"

    @cached_property
    def named(self) -> dict[ColumnId, Column]:
        """Name -> column."""
        return {column.name: column for column in self.columns or ()}

    @cached_property
    def compared(self) -> frozenset[Column]:
        """The columns that the file names."""
        return frozenset(self.columns or ())

    @property
    def content_digest(self) -> str:
        """The sha-256 of the canonical JSON of all frozen fields."""
        return digest(self.model_dump(mode="json", include=set(FROZEN)))

    def freeze(self) -> Self:
        """Return the version with the digest of its content."""
        return self.model_copy(update={"frozen": self.content_digest})
