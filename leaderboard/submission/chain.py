"""The hash chain of an entry: weights -> data -> episode manifest -> spec -> records, per result.

Each link is hashed together with the link before it, and one digest covers the chains of all
results: the digest shows that something was changed, the chain shows what.
"""

import hashlib
from collections.abc import Iterator, Sequence

from pydantic import Field

from fsbench.core.schema import Sha256, Text
from fsbench.core.specs import Frozen
from fsbench.results.verification import Loaded, Problem

LINKS = ("weights", "data", "manifest", "spec", "records")
FIX = "restore the entry from the repository, or submit the results again"


class ChainLink(Frozen):
    """The chain of one result."""

    cell: Text = Field(description="data set and file, below the folder of the weights")
    weights: Sha256
    data: Sha256 = Field(description="of the images, and of the groups of a disjoint track")
    manifest: Sha256 | None = Field(description="of the episodes; null for a probe")
    spec: Sha256
    records: Sha256

    @property
    def end(self) -> str:
        """Hash over all links; each step covers the one before it."""
        end = hashlib.sha256(self.cell.encode()).hexdigest()
        for name in LINKS:
            end = hashlib.sha256(f"{end} {name} {getattr(self, name)}".encode()).hexdigest()
        return end


class HashChain(Frozen):
    """The chains of all results of an entry, sorted by file, and the digest over their ends."""

    cells: tuple[ChainLink, ...]
    end: Sha256


def build_chain(results: Sequence[Loaded]) -> HashChain:
    """Return the chain of these results, whose own hashes were checked before."""
    links = [
        ChainLink(
            cell=loaded.place,
            weights=loaded.result.backbone.identity,
            data=loaded.result.dataset.identity,
            manifest=loaded.result.manifest_hash,
            spec=loaded.result.spec_digest,
            records=loaded.result.records_digest,
        )
        for loaded in results
    ]
    links.sort(key=lambda link: link.cell)
    return HashChain(cells=tuple(links), end=digest_links(links))


def digest_links(links: Sequence[ChainLink]) -> str:
    """Return one digest over the ends of all links."""
    return hashlib.sha256("\n".join(link.end for link in links).encode()).hexdigest()


def find_changes(chain: HashChain, results: Sequence[Loaded], where: str) -> Iterator[Problem]:
    """Yield a Problem for every link that differs from the results of the entry."""
    stated = {link.cell: link for link in chain.cells}
    actual = {link.cell: link for link in build_chain(results).cells}
    for cell in sorted(stated.keys() ^ actual.keys()):
        pair = ("no such result", "one") if cell in stated else ("an additional result", "none")
        yield Problem("chain", f"{where}: {cell}", *pair, FIX)
    for cell in sorted(stated.keys() & actual.keys()):
        for name in LINKS:
            now, before = getattr(actual[cell], name), getattr(stated[cell], name)
            if now != before:
                yield Problem("chain", f"{where}: {cell}: {name}", str(now), str(before), FIX)
    if chain.end != digest_links(chain.cells):
        yield Problem("chain", f"{where}: end", chain.end, digest_links(chain.cells), FIX)
