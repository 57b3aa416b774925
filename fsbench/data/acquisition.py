"""Acquisition of data sets: downloaded, unpacked, put in place and verified, or steps to do so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fsbench.core.errors import DataError, UsageError
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import DatasetFacts
from fsbench.data.catalog import Distribution, all_facts, dataset_groups, resolve_alias
from fsbench.data.download import download_dataset
from fsbench.data.roots import DataRoots
from fsbench.data.verification import verify_dataset


@dataclass(frozen=True)
class Acquisition:
    """Outcome for one data set: its folder if the images are there, else the steps to do by hand.

    note: what a user must know about images that are not the official ones.
    """

    facts: DatasetFacts
    folder: Path | None
    steps: str = ""
    note: str = ""


def acquire_datasets(
    name: str,
    roots: DataRoots,
    cache: Path,
    sha256: Sequence[str] = (),
    report: Reporter = SILENT,
) -> Iterator[Acquisition]:
    """Yield the outcome for a data set, or for each of a group (cdfsl, cdfsl-small, transfer).

    sha256: hashes of archives for which none is known, of a single data set only. Complete images
    are not fetched again. Raises UsageError for missing hashes or a missing --data ROOT, DataError
    for a failed download and for images that are not as expected.
    """
    group = dataset_groups().get(name, ())
    if group and sha256:
        raise UsageError(f"--sha256 for the group {name}", fix="download its data sets one by one")
    for member in group or (resolve_alias(name),):
        facts, distribution = all_facts()[member], Distribution.of(member)
        archives = distribution.archives
        unhashed = [archive for archive in archives if archive.known_hash is None]
        if not archives or (unhashed and (group or (distribution.steps and not sha256))):
            present = roots.find(facts) is not None and is_complete(member, roots, cache)
            steps = distribution.steps or facts.download
            yield Acquisition(facts, roots.find(facts) if present else None, steps)
        else:
            yield acquire_dataset(facts, distribution, roots, cache, sha256, report)


def acquire_dataset(
    facts: DatasetFacts,
    distribution: Distribution,
    roots: DataRoots,
    cache: Path,
    sha256: Sequence[str],
    report: Reporter,
) -> Acquisition:
    """Download, unpack and verify one data set, unless it is complete. Raise like the above."""
    folder = roots.destination(facts)
    placed = replace(roots, named={**roots.named, facts.name: folder})
    if folder.is_dir() and is_complete(facts.name, placed, cache):
        report.log(f"{facts.name} is complete in {folder}: nothing is fetched")
        return Acquisition(facts, folder)
    download_dataset(facts, distribution.archives, folder, sha256, report)
    if distribution.arrange:
        distribution.arrange(folder)
    check = verify_dataset(facts.name, placed, cache, report)
    problem = check.problem()
    if problem is None:
        return Acquisition(facts, folder)
    if check.corrupt or all(archive.official for archive in distribution.archives):
        raise problem
    note = f"{'; '.join(check.notes) or 'other images'}: results are marked `subset`"
    return Acquisition(facts, folder, distribution.steps, note)


def is_complete(name: str, roots: DataRoots, cache: Path) -> bool:
    """Return whether the official images are there, by name; none is opened."""
    try:
        return verify_dataset(name, roots, cache, decode=False).problem() is None
    except DataError:
        return False
