"""What one column of a board compares, and which results belong to it."""

from __future__ import annotations

from pydantic import Field

from fsbench.core.schema import Result, Sha256
from fsbench.core.specs import Frozen
from fsbench.core.tasks import ColumnId


class Column(Frozen):
    """Results of equal spec on equal images, hence equal episodes.

    fingerprint: null on a board with a version where nobody has published the hash of the official
    images. Then their number is asserted, and where the list of ids is known its hash, as the flags
    of a result assert it; the entries of the column still have to agree on one fingerprint.
    """

    name: ColumnId = Field(description="task and input size, e.g. eurosat:5w1s/linear@ibm 224px")
    spec_digest: Sha256
    fingerprint: Sha256 | None = Field(
        description="of the images, and of the groups of a disjoint track"
    )
    images: int | None = Field(
        None, ge=1, exclude_if=lambda value: value is None, description="official images"
    )
    images_hash: Sha256 | None = Field(
        None, exclude_if=lambda value: value is None, description="of the official ids"
    )

    def same_cell(self, result: Result) -> bool:
        """Whether a result is of this task and spec, on whatever images."""
        return (self.name, self.spec_digest) == (result.column, result.spec_digest)

    def official(self, result: Result) -> bool:
        """Whether a result of this task and spec is one of all official images."""
        data = result.dataset
        known = (
            (self.fingerprint, data.identity),
            (self.images_hash, data.images_hash),
            (self.images, sum(data.class_counts)),
        )
        return not result.flags and all(wanted in {None, found} for wanted, found in known)


def column_of(result: Result) -> Column:
    """The column a result belongs to."""
    return Column(
        name=result.column, spec_digest=result.spec_digest, fingerprint=result.dataset.identity
    )
