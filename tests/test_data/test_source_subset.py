"""A small part of a source: which classes and images, and what validates."""

from pathlib import Path

import numpy as np
import pytest

from fsbench.core.errors import DataError
from fsbench.core.specs import SourceSubset
from fsbench.data import DataRoots, SourceDataset, load_source
from fsbench.data.source import take_subset
from pretrain.recipes.registry import load_recipe


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> SourceDataset:
    return load_source("toy_source", DataRoots(), Path(tmp_path_factory.mktemp("c")), 16)


def part(whole: SourceDataset, classes: int, images: int) -> SourceDataset:
    return take_subset(whole, SourceSubset(classes=classes, images_per_class=images))


def keys(images: np.ndarray) -> set[bytes]:
    return {image.tobytes() for image in images}


def test_counts_labels_and_classes(whole: SourceDataset) -> None:
    small = part(whole, 4, 6)
    assert np.bincount(small.train.labels).tolist() == [6] * 4
    assert (small.n_classes, len(small.facts.classes)) == (4, 4)
    assert small.facts.images_per_class == (6,) * 4
    assert set(small.flags) == {*whole.flags, "subset"}
    assert small.fingerprint != whole.fingerprint
    for images, label in zip(small.train.images, small.train.labels, strict=True):
        index = next(i for i, x in enumerate(whole.train.images) if np.array_equal(x, images))
        name = whole.facts.classes[whole.train.labels[index]]
        assert small.facts.classes[label] == name


def test_all_other_images_of_the_classes_validate(whole: SourceDataset) -> None:
    small = part(whole, 4, 6)
    rows = np.isin(whole.train.labels, [whole.facts.classes.index(c) for c in small.facts.classes])
    val = np.isin(whole.val.labels, [whole.facts.classes.index(c) for c in small.facts.classes])
    assert keys(small.train.images) | keys(small.val.images) == keys(
        whole.train.images[rows]
    ) | keys(whole.val.images[val])
    assert not keys(small.train.images) & keys(small.val.images)
    assert len(small.train) + len(small.val) == rows.sum() + val.sum()


def test_a_larger_part_contains_a_smaller_one(whole: SourceDataset) -> None:
    small, more, wider = (part(whole, *size) for size in ((4, 6), (4, 9), (6, 6)))
    assert keys(small.train.images) < keys(more.train.images)
    assert keys(small.train.images) < keys(wider.train.images)
    first = whole.train.images[[np.flatnonzero(whole.train.labels == c)[0] for c in range(4)]]
    assert not keys(first) <= keys(small.train.images), "not simply the first images"


def test_a_part_larger_than_the_source_is_refused(whole: SourceDataset) -> None:
    with pytest.raises(DataError, match="too few for a part of 999 classes x 2 images"):
        part(whole, 999, 2)
    with pytest.raises(DataError, match="lower source_subset"):
        part(whole, 2, 10**6)


def test_a_recipe_states_its_part() -> None:
    recipe = load_recipe("regime/lw")
    assert str(recipe.source_subset) == "20 classes x 25 images"
    fewer = recipe.override(["source_subset.images_per_class=10"])
    assert fewer.source_subset == SourceSubset(classes=20, images_per_class=10)
    assert fewer.digest() != recipe.digest()
    text = '{"classes": 3, "images_per_class": 4}'
    stated = load_recipe("toy/seal").override([f"source_subset={text}"])
    assert stated.source_subset == SourceSubset(classes=3, images_per_class=4)
    assert "source_subset" not in load_recipe("pilot/seal").model_dump()
