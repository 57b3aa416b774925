"""Sources from the Hugging Face hub: TinyImageNet, recognised by its classes, or any other set."""

from __future__ import annotations

from pathlib import Path

from fsbench.data.base import hash_lines
from fsbench.data.hub import read_hub_tables
from fsbench.data.image_folder import make_custom_facts
from fsbench.data.source import SourceListing
from fsbench.data.sources import tinyimagenet


def load_hub_source(ref: str, cache: Path) -> SourceListing:
    """Load ORG/NAME[@REV], splits train and valid. Raises DataError if it is not available.

    The hub numbers labels by sorted wnids; for TinyImageNet they are mapped to the official ids
    (line order of wnids.txt).
    """
    train, val = read_hub_tables(ref, cache / "datasets")
    stamp = hash_lines([ref, train.stamp, val.stamp])
    if set(train.labels) == set(tinyimagenet.FACTS.classes):
        classes = tinyimagenet.FACTS.classes
        parts = train.samples(classes), val.samples(classes)
        return tinyimagenet.build_listing(classes, *parts, stamp)
    classes = train.classes
    facts = make_custom_facts(f"hub-{ref}", classes, train.counts, "columns image and label")
    rule = "class id = the hub's own label number (rank in sorted order for text labels)"
    return SourceListing(
        facts.model_copy(update={"label_rule": rule}),
        train.samples(classes),
        val.samples(classes),
        stamp,
        frozenset({"custom"}),
    )
