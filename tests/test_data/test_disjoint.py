"""The disjoint track: no group on both sides, everything else as on the classic track."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.protocols import target

from fsbench.core.errors import DataError
from fsbench.core.seeding import words
from fsbench.core.specs import EpisodeSpec
from fsbench.data.base import Groups
from fsbench.data.episodes import Episode, EpisodeSampler, draw_manifest

CLASSES = (1, 4, 5, 9)
SPEC = EpisodeSpec(track="disjoint", n_way=3, k_shot=3, n_query=4)


def grouped(codes: dict[int, list[int]]) -> Groups:
    return Groups({c: np.array(numbers, dtype=np.int64) for c, numbers in codes.items()})


def counts(groups: Groups) -> dict[int, int]:
    return {c: len(codes) for c, codes in groups.by_class.items()}


def sampler(spec: EpisodeSpec, groups: Groups) -> EpisodeSampler:
    return EpisodeSampler(spec, "x", counts(groups), groups)


def member(groups: Groups, episode: Episode, part: str) -> list[set[int]]:
    """Groups of the images in a part, class by class."""
    ranks = getattr(episode, part)
    return [
        set(groups.by_class[int(c)][rows].tolist())
        for c, rows in zip(episode.class_ids, ranks, strict=True)
    ]


def random_groups(seed: int, size: int, spread: int) -> Groups:
    """Groups of `size` images on average, each reaching over `spread` classes on average."""
    random = np.random.default_rng(seed)
    numbers = {}
    for place, c in enumerate(CLASSES):
        n = int(random.integers(40, 70))
        numbers[c] = (random.integers(0, n // size, n) + place * 60 // spread).tolist()
    return grouped(numbers)


some_groups = st.builds(
    random_groups, st.integers(0, 10**6), size=st.integers(1, 6), spread=st.integers(1, 4)
)


@given(groups=some_groups, i=st.integers(0, 10**9), seed=st.integers(0, 5))
@settings(max_examples=80, deadline=None)
def test_no_group_of_the_support_is_asked_and_all_others_can_be(
    groups: Groups, i: int, seed: int
) -> None:
    spec = SPEC.model_copy(update={"seed": seed, "k_shot": 2})
    try:
        episode = sampler(spec, groups).episode(i)
    except DataError:
        left = [groups.left(c, spec.k_shot, spec.n_way) for c in CLASSES]
        assert min(left) < spec.n_query
        return
    met = set().union(*member(groups, episode, "support"))
    assert met.isdisjoint(set().union(*member(groups, episode, "query")))
    for c, free, rows in zip(
        episode.class_ids, episode.query_candidates, episode.query, strict=True
    ):
        codes = groups.by_class[int(c)]
        np.testing.assert_array_equal(free, [code not in met for code in codes.tolist()])
        assert free[rows].all()
        assert len(set(rows.tolist())) == spec.n_query
        assert free.sum() >= groups.left(int(c), spec.k_shot, spec.n_way)


@given(groups=some_groups, i=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_both_tracks_share_classes_support_and_the_order_of_the_draw(
    groups: Groups, i: int
) -> None:
    spec = SPEC.model_copy(update={"k_shot": 1, "n_query": 2})
    classic = EpisodeSampler(spec.classic, "x", counts(groups)).episode(i)
    try:
        disjoint = sampler(spec, groups).episode(i)
    except DataError:
        return
    np.testing.assert_array_equal(classic.class_ids, disjoint.class_ids)
    np.testing.assert_array_equal(classic.support, disjoint.support)
    met = set().union(*member(groups, disjoint, "support"))
    sizes = [counts(groups)[int(c)] for c in classic.class_ids]
    keys = words(sum(sizes), "episode", spec.classic.digest(), "x", i, "images")
    for c, part, rows in zip(
        classic.class_ids, np.split(keys, np.cumsum(sizes)[:-1]), disjoint.query, strict=True
    ):
        order = np.argsort(part, kind="stable").tolist()
        free = [r for r in order if groups.by_class[int(c)][r] not in met]
        assert rows.tolist() == free[: spec.n_query]


def test_groups_of_one_image_change_no_draw_but_the_manifest() -> None:
    alone = Groups.of(np.repeat(CLASSES, 30), [str(i) for i in range(120)])
    disjoint, classic = sampler(SPEC, alone), EpisodeSampler(SPEC.classic, "x", counts(alone))
    for i in range(20):
        a, b = disjoint.episode(i), classic.episode(i)
        np.testing.assert_array_equal(a.query, b.query)
        for x, y in zip(a.query_candidates, b.query_candidates, strict=True):
            np.testing.assert_array_equal(x, y)
    assert disjoint.manifest_hash(range(3)) != classic.manifest_hash(range(3))


def test_on_the_classic_track_all_but_the_support_can_be_asked() -> None:
    episode = EpisodeSampler(SPEC.classic, "x", dict.fromkeys(CLASSES, 9)).episode(3)
    for rows, free in zip(episode.support, episode.query_candidates, strict=True):
        assert sorted(rows.tolist()) == np.flatnonzero(~free).tolist()


def test_access_is_random_and_a_classic_sampler_ignores_groups() -> None:
    pairs = Groups.of(np.repeat(CLASSES, 40), [str(i // 2) for i in range(160)])
    forward, later = sampler(SPEC, pairs), sampler(SPEC, pairs)
    backward = {i: later.episode(i) for i in reversed(range(8))}
    for i in range(8):
        np.testing.assert_array_equal(forward.episode(i).query, backward[i].query)
    plain = EpisodeSampler(SPEC.classic, "x", counts(pairs), pairs)
    assert plain.groups is None


def test_the_manifest_needs_the_hash_of_the_groups_alone_and_depends_on_it() -> None:
    pairs = Groups.of(np.repeat(CLASSES, 40), [str(i // 2) for i in range(160)])
    digest = sampler(SPEC, pairs).manifest_hash(range(4))
    assert digest == draw_manifest(SPEC, "x", counts(pairs), pairs.hash, [3, 2, 1, 0]).hash
    assert digest != draw_manifest(SPEC, "x", counts(pairs), "0" * 64, range(4)).hash
    assert digest == "2d110490935c37150d42b17d955e0ca2cd4c80c223dc0e294ff504aaf96d84bc"


def test_the_hash_of_groups_knows_structure_and_no_names() -> None:
    labels = np.array([0, 0, 0, 2, 2])
    base = Groups.of(labels, ["a", "b", "a", "c", "b"])
    assert base.by_class[0].tolist() == [0, 1, 0]
    assert base.by_class[2].tolist() == [2, 1]
    assert base.shared == {1}
    assert base.hash == Groups.of(labels, ["z", "y", "z", "a", "y"]).hash
    others = [
        Groups.of(labels, ["a", "b", "a", "c", "c"]),
        Groups.of(np.array([0, 0, 0, 0, 2]), ["a", "b", "a", "c", "b"]),
        Groups.of(np.array([0, 0, 0, 3, 3]), ["a", "b", "a", "c", "b"]),
    ]
    assert len({base.hash, *(other.hash for other in others)}) == 4


def worst(groups: Groups, c: int, k: int, n_way: int) -> int:
    """Fewest images of c left over all supports of n_way classes, by trying them all."""
    others = [other for other in groups.by_class if other != c]
    fewest = len(groups.by_class[c])
    for classes in combinations(others, n_way - 1):
        drawn = [combinations(groups.by_class[x].tolist(), k) for x in (c, *classes)]
        for support in product(*drawn):
            met = {code for part in support for code in part}
            fewest = min(fewest, sum(code not in met for code in groups.by_class[c].tolist()))
    return fewest


@pytest.mark.parametrize("k", [1, 2])
def test_what_surely_remains_is_the_worst_case(k: int) -> None:
    dataset = grouped({0: [0, 0, 0, 1, 1, 2, 3], 1: [4, 4, 5, 6], 2: [7, 8, 9, 9]})
    assert [dataset.left(c, k, 2) for c in dataset.by_class] == [
        worst(dataset, c, k, 2) for c in dataset.by_class
    ]
    both = grouped({0: [0, 0, 0, 1, 1, 2, 3], 1: [1, 0, 5, 6], 2: [3, 8, 0, 9]})
    assert both.left(0, k, 2) == worst(both, 0, k, 2) == {1: 2, 2: 1 - 1}[k]
    assert all(both.left(c, k, 3) <= worst(both, c, k, 3) for c in both.by_class)


def test_a_class_of_few_groups_is_refused_with_what_it_keeps() -> None:
    groups = grouped({0: [0] * 9 + [1] * 9, 1: list(range(2, 20)), 2: list(range(20, 38))})
    spec = EpisodeSpec(track="disjoint", n_way=2, k_shot=1, n_query=10)
    with pytest.raises(DataError, match=r"class 0 may have only 9 .* needed: 10(\n|$)") as error:
        sampler(spec, groups)
    assert error.value.exit_code == 3
    sampler(spec.model_copy(update={"n_query": 9}), groups).episode(0)


def test_the_track_wants_groups_of_the_same_images() -> None:
    with pytest.raises(DataError, match="has no groups"):
        EpisodeSampler(SPEC, "x", dict.fromkeys(CLASSES, 50))
    groups = Groups.of(np.repeat(CLASSES, 30), [str(i) for i in range(120)])
    with pytest.raises(DataError, match="different images"):
        EpisodeSampler(SPEC, "x", dict.fromkeys(CLASSES, 31), groups)


def test_a_data_set_that_knows_no_groups_is_refused_with_the_reason() -> None:
    unknown = target()
    with pytest.raises(DataError, match="blobs has no groups"):
        EpisodeSampler.of(SPEC, unknown)
    facts = unknown.facts.model_copy(update={"groups": "lesion: a table"})
    with pytest.raises(DataError, match=r"no lesion-ID file found(.|\n)*lesion: a table"):
        EpisodeSampler.of(SPEC, replace(unknown, facts=facts))
    dataset = unknown.with_groups(lambda image: f"{image[:-1]}{int(image[-1]) // 2}")
    assert EpisodeSampler.of(SPEC, dataset).groups is dataset.groups
    assert EpisodeSampler.of(SPEC.classic, dataset).groups is None
