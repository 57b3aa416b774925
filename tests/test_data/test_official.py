"""Official train and test parts: when a data set is complete, and when it is a subset."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fsbench.core.errors import DataError
from fsbench.data.base import TargetDataset
from fsbench.data.splits import ListedImage, assemble_official
from fsbench.data.targets.mit67 import FACTS

SMALL = FACTS.model_copy(update={"classes": ("a", "b"), "split": (3, 2)})
TRAIN = (ListedImage(0, "a/1.jpg"), ListedImage(0, "a/2.jpg"), ListedImage(1, "b/1.jpg"))
TEST = (ListedImage(0, "a/3.jpg"), ListedImage(1, "b/2.jpg"))


@pytest.fixture
def load(tmp_path: Path, draw: Callable[..., Path]) -> Callable[..., TargetDataset]:
    for listed in (*TRAIN, *TEST):
        draw(tmp_path / "Images" / listed.name)

    def make(
        train: Sequence[ListedImage] = TRAIN, test: Sequence[ListedImage] = TEST
    ) -> TargetDataset:
        return assemble_official(SMALL, tmp_path, tmp_path / "Images", (train, test))

    return make


def test_the_official_numbers_are_complete(load: Callable[..., TargetDataset]) -> None:
    dataset = load()
    assert (dataset.flags, dataset.notes) == (frozenset(), ())


def test_as_many_images_in_other_parts_are_a_subset(load: Callable[..., TargetDataset]) -> None:
    dataset = load(TRAIN[1:], (*TEST, TRAIN[0]))
    assert dataset.flags == {"subset"}
    assert dataset.notes == (
        "2 of 3 train images and 3 of 2 test images are present; the lists name 5",
    )
    assert dataset.images_hash != load().images_hash


def test_a_class_without_images_is_a_subset(load: Callable[..., TargetDataset]) -> None:
    relabelled = (
        [ListedImage(0, listed.name) for listed in TRAIN],
        [ListedImage(0, listed.name) for listed in TEST],
    )
    assert load(*relabelled).flags == {"subset"}


def test_an_image_in_both_parts_is_refused(load: Callable[..., TargetDataset]) -> None:
    with pytest.raises(DataError, match=r"name a/1.jpg more than once"):
        load(TRAIN, (*TEST, TRAIN[0]))
