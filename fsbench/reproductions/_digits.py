"""scikit-learn's digits as a source: 1,797 grey 8 x 8 images of ten classes, part of the package.

A small stand-in for the images of papers whose claims must be checkable on two cores without a
download. Its values 0 to 16 are scaled to 0 to 255 and repeated to three channels.
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
"""Images held out to be scored; the rest trains."""


def load_digits_source(
    seed: int = 0, train: int = IMAGES - VALIDATION, zoom: int = 1
) -> SourceDataset:
    """The digits in an order of their own for every seed: `train` (at most 1437) and 360 images.

    zoom: every pixel becomes zoom x zoom, for networks that need larger images.
    """
    images, labels = _digits()
    images = images.repeat(zoom, axis=2).repeat(zoom, axis=3)
    order = seeding.permutations(1, IMAGES, "digits", seed)[0]
    held, used = order[:VALIDATION], order[VALIDATION : VALIDATION + train]
    mean, std = float(images[used].mean() / 255), float(images[used].std() / 255)
    name = f"digits-{seed}-{train}" + (f"-zoom{zoom}" if zoom > 1 else "")
    return SourceDataset(
        name=name,
        facts=digits_facts(),
        train=Split(images[used], labels[used]),
        val=Split(images[held], labels[held]),
        n_classes=CLASSES,
        mean=(mean, mean, mean),
        std=(std, std, std),
        fingerprint=name,
    )


@cache
def _digits() -> tuple[np.ndarray[Any, np.dtype[np.uint8]], np.ndarray[Any, np.dtype[np.int64]]]:
    """All images (1797, 3, 8, 8) and labels."""
    from sklearn.datasets import load_digits

    found = load_digits()
    grey = np.rint(found.images * (255 / 16)).astype(np.uint8)
    return np.repeat(grey[:, None], 3, axis=1), found.target.astype(np.int64)


@cache
def digits_facts() -> DatasetFacts:
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
