"""The digits: all images of scikit-learn, split into training and validation by the seed."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from fsbench.reproductions import _digits


def test_every_image_is_used_once_with_its_label() -> None:
    source = _digits.load_digits_source(3)
    images = np.concatenate([source.train.images, source.val.images])
    labels = np.concatenate([source.train.labels, source.val.labels])
    assert images.shape == (1797, 3, 8, 8)
    assert images.max() == 255
    there = {(image.tobytes(), label) for image, label in zip(images[:, 1], labels, strict=True)}
    digits = load_digits()
    expected = np.rint(digits.images * 255 / 16).astype(np.uint8)
    assert there == {(i.tobytes(), t) for i, t in zip(expected, digits.target, strict=True)}


def test_the_seed_chooses_the_split_and_the_size_only_shortens_it() -> None:
    one, other, few = (
        _digits.load_digits_source(0),
        _digits.load_digits_source(1),
        _digits.load_digits_source(0, 100),
    )
    assert len(one.val) == len(few.val) == 360
    assert np.array_equal(one.val.images, few.val.images)
    assert np.array_equal(one.train.images[:100], few.train.images)
    assert not np.array_equal(one.val.labels, other.val.labels)
    assert len({s.fingerprint for s in (one, other, few)}) == 3


def test_zoom_repeats_every_pixel_and_is_in_the_name() -> None:
    one, large = _digits.load_digits_source(0), _digits.load_digits_source(0, zoom=2)
    assert large.train.images.shape == (1437, 3, 16, 16)
    for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert np.array_equal(large.val.images[:, :, row::2, column::2], one.val.images)
    assert np.array_equal(one.train.labels, large.train.labels)
    assert one.mean == large.mean
    assert one.fingerprint != large.fingerprint
