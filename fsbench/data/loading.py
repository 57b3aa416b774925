"""Loading of data sets by name: registered names, aliases, image folders, the hub."""

from dataclasses import replace
from pathlib import Path

from fsbench.core.errors import UsageError
from fsbench.core.io import cache_folder
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import DatasetRecord, make_printable
from fsbench.core.specs import Pool, SourceSubset
from fsbench.core.tasks import FOLDER, HUB, USER_DATA
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import SOURCES, TARGETS, DataRoots, resolve_alias
from fsbench.data.content import hash_contents
from fsbench.data.hub import LABEL_RULE, load_hub_target, read_hub_tables
from fsbench.data.image_folder import list_folder_source, load_folder_target, make_custom_facts
from fsbench.data.readers.tinyimagenet import build_listing
from fsbench.data.source import SourceDataset, SourceListing, decode_source, take_subset


def load_target(
    name: str, roots: DataRoots, pool: Pool = "full", cache: Path | None = None
) -> TargetDataset:
    """Load a target by name or alias, or images of the user: folder:DIR, hf-hub:ORG/NAME.

    cache: for tables of the hub. Raises UnknownName, and DataError for missing or wrong files.
    """
    if name.startswith(USER_DATA):
        if pool != "full":
            raise UsageError(f"{name} has no pool {pool}", fix="leave out @startup")
        if name.startswith(HUB):
            return load_hub_target(name, cache_folder(cache) / "datasets")
        return load_folder_target(name)
    module = TARGETS.load(resolve_alias(name))
    is_toy = module.FACTS.domain == "toy"
    folder = Path() if is_toy else roots.folder(module.FACTS)
    splits = None if is_toy else roots.splits(beside=folder)
    dataset: TargetDataset = module.load(folder, pool, splits)
    is_plugin = dataset.name in TARGETS.plugins()  # no publisher's counts vouch for it
    return replace(dataset, flags=dataset.flags | {"custom"}) if is_plugin else dataset


def list_source(ref: str, roots: DataRoots, cache: Path) -> SourceListing:
    """List the images of a source without decoding them. Raise like load_source."""
    if ref.startswith(FOLDER):
        return list_folder_source(ref)
    if ref.startswith(HUB):
        return load_hub_source(ref, cache)
    module = SOURCES.load(resolve_alias(ref))
    folder = Path() if module.FACTS.domain == "toy" else roots.folder(module.FACTS)
    listing: SourceListing = module.load(folder, cache)
    return listing


def load_source(
    ref: str,
    roots: DataRoots,
    cache: Path,
    size: int,
    report: Reporter = SILENT,
    subset: SourceSubset | None = None,
) -> SourceDataset:
    """Load a pretraining source: a name of SOURCES, folder:DIR or hf-hub:ORG/NAME[@REV].

    size: side in px to which images are resized (bilinear, antialiased); subset: the part to take.
    Raises UnknownName, and DataError for missing or corrupt files and for too large a part.
    """
    listing = list_source(ref, roots, cache)
    for note in listing.notes:
        report.log(f"{listing.facts.name}: {note}")
    source = decode_source(listing, cache, size, report)
    return source if subset is None else take_subset(source, subset)


def describe_dataset(
    dataset: TargetDataset, cache: Path, report: Reporter = SILENT
) -> DatasetRecord:
    """Return the record of the images that results carry; log warnings on their contents."""
    counts, contents = dataset.class_counts, hash_contents(dataset, cache, report)
    for warning in contents.warnings:
        report.log(f"{dataset.name}: {warning}")
    return DatasetRecord(
        name=dataset.result_name or dataset.name,
        pool=dataset.pool,
        class_ids=tuple(counts),
        class_names=tuple(make_printable(dataset.class_names[c]) for c in counts),
        class_counts=tuple(counts.values()),
        images_hash=dataset.images_hash,
        fingerprint=contents.fingerprint,
        flags=tuple(sorted(dataset.flags)),
    )


def load_hub_source(ref: str, cache: Path) -> SourceListing:
    """List the splits for training and validation; TinyImageNet gets the official label ids."""
    tables = read_hub_tables(ref, cache / "datasets")
    official, classes = SOURCES.load("tinyimagenet").FACTS, tables[0].classes
    if set(tables[0].labels) == set(official.classes):
        return build_listing(official, *(table.list_images(official.classes) for table in tables))
    train, val = (table.list_images(classes) for table in tables)
    layout = f"columns {tables[0].image} and {tables[0].label}"
    labels = (image.label for image in train)
    name = f"hub-{ref.removeprefix(HUB)}"
    facts = make_custom_facts(name, classes, labels, layout, label_rule=LABEL_RULE)
    return SourceListing(facts, {"train": train, "val": val}, frozenset({"custom"}))
