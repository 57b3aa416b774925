"""The hash chain of an entry: weights -> data -> episode manifest -> spec -> records, cell by cell.

Every step holds the hash of the one before it, and one digest holds the chains of all cells: who
knows the digest knows whether anything below it was changed, and the chain says what.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from pydantic import Field

from fsbench.core.errors import ValidationFailed
from fsbench.core.schema import Sha256, Text
from fsbench.core.specs import Frozen
from fsbench.results.rules import Loaded, Problem

LINKS = ("weights", "data", "manifest", "spec", "records")
FIX = "restore the entry from the repository, or submit the results again"


class ChainLink(Frozen):
    """The chain of one cell."""

    cell: Text = Field(description="data set and file, below the folder of the weights")
    weights: Sha256
    data: Sha256 = Field(description="of the images, and of the groups of a disjoint track")
    manifest: Sha256 | None = Field(description="of the episodes; null for a probe")
    spec: Sha256
    records: Sha256

    @property
    def end(self) -> str:
        """Hash over all links: each step covers the one before it."""
        end = hashlib.sha256(self.cell.encode()).hexdigest()
        for name in LINKS:
            end = hashlib.sha256(f"{end} {name} {getattr(self, name)}".encode()).hexdigest()
        return end


class HashChain(Frozen):
    """The chains of all cells of an entry, sorted by cell, and the digest over their ends."""

    cells: tuple[ChainLink, ...]
    end: Sha256


def build_chain(cells: Sequence[Loaded]) -> HashChain:
    """The chain of these results."""
    links = sorted((build_link(cell) for cell in cells), key=lambda each: each.cell)
    return HashChain(cells=tuple(links), end=digest_links(links))


def build_link(cell: Loaded) -> ChainLink:
    """The chain of one result, whose own hashes hold (results/rules.py)."""
    result = cell.result
    return ChainLink(
        cell="/".join(cell.path.parts[-2:]),
        weights=result.backbone.weights_hash,
        data=result.dataset.identity,
        manifest=result.manifest_hash,
        spec=result.spec_digest,
        records=result.records_digest,
    )


def digest_links(links: Sequence[ChainLink]) -> str:
    """One digest over the ends of all cells."""
    return hashlib.sha256("\n".join(each.end for each in links).encode()).hexdigest()


def find_changes(chain: HashChain, cells: Sequence[Loaded], where: str) -> Iterator[Problem]:
    """Every link that differs from what the entry holds, by cell and name."""
    stated, found = ({each.cell: each for each in c.cells} for c in (chain, build_chain(cells)))
    for cell in sorted(stated.keys() ^ found.keys()):
        pair = ("no such cell", "one") if cell in stated else ("a cell more", "none")
        yield Problem("chain", f"{where}: {cell}", *pair, FIX)
    for cell in sorted(stated.keys() & found.keys()):
        for name in LINKS:
            now, before = getattr(found[cell], name), getattr(stated[cell], name)
            if now != before:
                yield Problem("chain", f"{where}: {cell}: {name}", str(now), str(before), FIX)
    if chain.end != digest_links(chain.cells):
        yield Problem("chain", f"{where}: end", chain.end, digest_links(chain.cells), FIX)


def require_unchanged(chain: HashChain, cells: Sequence[Loaded], where: str) -> None:
    """Raises ValidationFailed naming every link that was changed."""
    if found := list(find_changes(chain, cells, where)):
        raise ValidationFailed("\n  ".join(map(str, found)))
