"""The digits of scikit-learn as a pretraining source: 1,797 grey images of ten classes.

They are part of scikit-learn, so claims about images can be checked on two cores without a
download. Values from 0 to 16 are scaled to 0..255 and repeated to three channels.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fsbench.core import seeding
from fsbench.core.schema import DatasetFacts
from fsbench.data.source import SourceDataset, Split

SIDE, CLASSES, IMAGES = 8, 10, 1797
VALIDATION = 360
"""Images for validation; the others are for training."""


def load_digits_source(
    seed: int = 0, train: int = IMAGES - VALIDATION, zoom: int = 1
) -> SourceDataset:
    """Load `train` (at most 1,437) digits and 360 for validation, in an order set by the seed.

    zoom: enlarge every pixel to zoom x zoom, for networks that need larger images.
    """
    images, labels = _digits()
    images = images.repeat(zoom, axis=2).repeat(zoom, axis=3)
    order = seeding.permutations(1, IMAGES, "digits", seed)[0]
    val, used = order[:VALIDATION], order[VALIDATION : VALIDATION + train]
    mean, std = float(images[used].mean() / 255), float(images[used].std() / 255)
    name = f"digits-{seed}-{train}" + (f"-zoom{zoom}" if zoom > 1 else "")
    return SourceDataset(
        name=name,
        facts=build_digits_facts(),
        train=Split(images[used], labels[used]),
        val=Split(images[val], labels[val]),
        n_classes=CLASSES,
        mean=(mean, mean, mean),
        std=(std, std, std),
        fingerprint=name,
    )


@cache
def _digits() -> tuple[np.ndarray[Any, np.dtype[np.uint8]], np.ndarray[Any, np.dtype[np.int64]]]:
    """Return all images (1797, 3, 8, 8) and labels."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    grey = np.rint(digits.images * (255 / 16)).astype(np.uint8)
    return np.repeat(grey[:, None], 3, axis=1), digits.target.astype(np.int64)


@cache
def build_digits_facts() -> DatasetFacts:
    """Return the facts of the data set."""
    return DatasetFacts(
        name="digits",
        title="Handwritten digits of scikit-learn",
        domain="source",
        classes=tuple("0123456789"),
        images_per_class=(),
        label_rule="the digit",
        layout="made in memory",
        folders=(),
        download="nothing to download",
        license="CC BY 4.0",
        citation="Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998",
        homepage="",
    )
