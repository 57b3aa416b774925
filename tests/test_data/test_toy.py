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


@pytest.mark.parametrize(
    ("name", "mean", "spread"),
    [
        ("toy_photo", 120.14, 55.79),
        ("toy_rims", 134.31, 40.48),
        ("toy_scan", 136.47, 23.93),
        ("toy_tiles", 130.46, 55.44),
    ],
)
def test_images_are_random_access_all_differ_and_are_pinned(
    name: str, mean: float, spread: float
) -> None:
    """Other pixels would be another data set under the same name. Loose, as libm may differ."""
    dataset = load_target(name, DataRoots())
    assert dataset.file(0) is None
    assert min(dataset.class_counts.values()) >= 20, "5-way 5-shot with 15 queries"
    images = [np.asarray(dataset.image(i)) for i in range(5, len(dataset), 10)]
    assert len({image.tobytes() for image in images}) == len(images)
    assert {image.shape for image in images} == {(32, 32, 3)}
    again = np.asarray(load_target(name, DataRoots()).image(85))
    assert np.array_equal(again, images[8])
    assert (again.mean(), again.std()) == pytest.approx((mean, spread), abs=0.05)
    colours = np.ptp(again.astype(int), axis=2).max()
    assert (colours <= 1) == (name == "toy_scan"), "grey but for rounding"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> SourceDataset:
    return load_source("toy_source", DataRoots(), Path(tmp_path_factory.mktemp("c")), 32)


def test_the_source_is_balanced_pinned_and_its_splits_share_no_image(source: SourceDataset) -> None:
    first = source.train.images[0].mean(axis=(1, 2))
    assert first == pytest.approx([194.29, 66.78, 81.1], abs=0.05)
    assert source.train.images.shape == (3000, 3, 32, 32)
    assert np.bincount(source.train.labels).tolist() == [150] * 20
    assert np.bincount(source.val.labels).tolist() == [30] * 20
    train = {image.tobytes() for image in source.train.images}
    assert not any(image.tobytes() in train for image in source.val.images)
