"""Train and test images: the official split, else a derived one of 80/20, and held-out parts."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsbench.core.errors import DataError
from fsbench.data.base import TargetDataset
from fsbench.data.catalog import all_facts
from fsbench.data.splits import hold_out, split_dataset

FACTS = all_facts()["toy_photo"]


def dataset(counts: list[int], ids: str = "x") -> TargetDataset:
    names = tuple(f"{c}/{ids}{n:03d}" for c, count in enumerate(counts) for n in range(count))
    labels = np.repeat(np.arange(len(counts)), counts).astype(np.int64)
    classes = tuple(str(c) for c in range(len(counts)))
    return TargetDataset("d", FACTS, Path(), names, names, labels, classes)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.sampled_from([0.1, 0.25, 0.9]))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_parts_of_every_class_are_for_testing_and_held_out(counts: list[int], part: float) -> None:
    whole = dataset([n + 1 for n in counts])
    train, test = split_dataset(whole)
    assert sorted([*train, *test]) == list(range(len(whole)))
    for c, n in enumerate(counts):
        n_test = int((whole.labels[test] == c).sum())
        assert 0 < n_test == max(1, round((n + 1) / 5)) <= n
    whole = dataset([*counts, 7])
    train = np.flatnonzero(np.arange(len(whole)) % 7 != 3)
    rest, chosen = hold_out(whole, train, part)
    assert sorted([*rest, *chosen]) == list(range(len(train)))
    for c in np.unique(whole.labels[train]):
        n = int((whole.labels[train] == c).sum())
        expected = 0 if n == 1 else min(n - 1, max(1, round(part * n)))
        assert int((whole.labels[train[chosen]] == c).sum()) == expected


def test_both_follow_the_ids_alone() -> None:
    small, large = dataset([10]), dataset([10, 30])
    assert split_dataset(small)[1].tolist() == [i for i in split_dataset(large)[1] if i < 10]
    assert split_dataset(dataset([30]))[1].tolist() != split_dataset(dataset([30], "y"))[1].tolist()
    whole, every = dataset([20]), np.arange(20)
    ids = {whole.canonical_ids[i] for i in hold_out(whole, every, 0.2)[1]}
    backwards = every[::-1].copy()
    assert {whole.canonical_ids[backwards[i]] for i in hold_out(whole, backwards, 0.2)[1]} == ids
    assert ids != {whole.canonical_ids[i] for i in split_dataset(whole)[1]}


def test_an_official_split_is_read_from_the_ids_and_others_are_derived() -> None:
    facts = FACTS.model_copy(update={"split": (2, 3)})
    names = ("train/b", "test/a", "test/b", "test/c", "train/a")
    labels = np.array([0, 0, 1, 1, 1])
    whole = TargetDataset("d", facts, Path(), names, names, labels, ("x", "y"))
    assert [part.tolist() for part in split_dataset(whole)] == [[0, 4], [1, 2, 3]]
    only = TargetDataset("d", facts, Path(), names[1:3], names[1:3], labels[1:3], ("x", "y"))
    with pytest.raises(DataError, match="0 train and 2 test images"):
        split_dataset(only)


def test_classes_that_are_too_small_are_named() -> None:
    with pytest.raises(DataError, match="class 1 has one image"):
        split_dataset(dataset([5, 1]))
    with pytest.raises(DataError, match="no class has two training images"):
        hold_out(dataset([3, 2]), np.array([0, 4]), 0.1)
