"""Toy images: functions of their names, with disjoint classes."""

from pathlib import Path

import numpy as np
import pytest

from fsbench.data import DataRoots, SourceDataset, dataset_groups, load_source, load_target
from fsbench.data.toy import PAIRS, SHAPES, SOURCE_PAIRS, TARGET_PAIRS, TEXTURES

TOYS = dataset_groups()["toy"]


def test_there_are_four_and_no_class_of_theirs_is_in_the_source() -> None:
    assert len(TOYS) == 4
    source, targets = SOURCE_PAIRS, TARGET_PAIRS
    assert sorted([*source, *targets]) == sorted(PAIRS)
    assert (len(source), len(targets)) == (20, 16)
    assert {part for pair in source for part in pair.split("-")} == {*SHAPES, *TEXTURES}
    for name in TOYS:
        assert set(load_target(name, DataRoots()).class_names) <= set(targets)


@pytest.mark.parametrize("name", TOYS)
def test_images_are_random_access_and_all_differ(name: str) -> None:
    dataset = load_target(name, DataRoots())
    assert dataset.file(0) is None
    assert min(dataset.class_counts.values()) >= 20, "5-way 5-shot with 15 queries"
    images = [np.asarray(dataset.image(i)) for i in range(0, len(dataset), 10)]
    assert len({image.tobytes() for image in images}) == len(images)
    again = load_target(name, DataRoots()).image(30)
    assert np.array_equal(np.asarray(again), images[3])
    assert images[0].shape == (32, 32, 3)
    assert images[0].std() > 3


def test_styles_differ() -> None:
    scan = np.asarray(load_target("toy_scan", DataRoots()).image(0)).astype(int)
    photo = np.asarray(load_target("toy_photo", DataRoots()).image(0)).astype(int)
    assert np.ptp(scan, axis=2).max() <= 1, "grey but for rounding"
    assert np.ptp(photo, axis=2).max() > 50


@pytest.mark.parametrize(
    ("name", "mean", "spread"),
    [
        ("toy_photo", 120.14, 55.79),
        ("toy_rims", 134.31, 40.48),
        ("toy_scan", 136.47, 23.93),
        ("toy_tiles", 130.46, 55.44),
    ],
)
def test_pixels_are_pinned(name: str, mean: float, spread: float) -> None:
    """Other pixels would be another data set under the same name. Loose, as libm may differ."""
    image = np.asarray(load_target(name, DataRoots()).image(85))
    assert (image.mean(), image.std()) == pytest.approx((mean, spread), abs=0.05)


def test_pixels_of_the_source_are_pinned(source: SourceDataset) -> None:
    assert source.train.images[0].mean(axis=(1, 2)) == pytest.approx(
        [194.29, 66.78, 81.1], abs=0.05
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> SourceDataset:
    return load_source("toy_source", DataRoots(), Path(tmp_path_factory.mktemp("c")), 32)


def test_the_source_is_balanced_and_its_splits_share_no_image(source: SourceDataset) -> None:
    assert source.train.images.shape == (3000, 3, 32, 32)
    assert np.bincount(source.train.labels).tolist() == [150] * 20
    assert np.bincount(source.val.labels).tolist() == [30] * 20
    train = {image.tobytes() for image in source.train.images}
    assert not any(image.tobytes() in train for image in source.val.images)
