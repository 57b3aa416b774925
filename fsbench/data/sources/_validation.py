"""Validation parts for sources that have no official one, selected by the hash of the image ids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from fsbench.core.schema import DatasetFacts, Flag
from fsbench.data.image_folder import stamp_files
from fsbench.data.images import open_rgb
from fsbench.data.source import SourceImage, SourceListing, select_by_hash

VALIDATION_SHARE = 0.1
"""Part of the training images for validation (arXiv:2109.00267, section 3.1)."""


def split_validation(
    facts: DatasetFacts, paths: Sequence[Path], labels: Sequence[int], complete: bool
) -> SourceListing:
    """Hold a tenth of every class out; flag as `derived`, and as `subset` unless complete.

    The id of an image is its folder and file name.
    """
    ids = [f"{path.parent.name}/{path.name}" for path in paths]
    validation = set(select_by_hash(labels, ids, VALIDATION_SHARE, facts.name, "val"))
    pairs = enumerate(zip(labels, paths, strict=True))
    samples = [
        (i in validation, SourceImage(label, partial(open_rgb, path))) for i, (label, path) in pairs
    ]
    flags: set[Flag] = {"derived"} if complete else {"derived", "subset"}
    return SourceListing(
        facts,
        [sample for validates, sample in samples if not validates],
        [sample for validates, sample in samples if validates],
        stamp_files(list(paths)),
        frozenset(flags),
    )
