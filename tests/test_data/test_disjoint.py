"""The disjoint track: no group on both sides, everything else as on the classic track."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.protocols import target, with_groups

from fsbench.core.errors import DataError
from fsbench.core.seeding import words
from fsbench.core.specs import EpisodeSpec
from fsbench.data.base import Groups
from fsbench.data.episodes import Episode, EpisodeSampler, draw_manifest

CLASSES = (1, 4, 5, 9)
SPEC = EpisodeSpec(track="disjoint", n_way=3, k_shot=3, n_query=4)
ALONE = Groups.of(np.repeat(CLASSES, 30), [str(i) for i in range(120)])
PAIRS = Groups.of(np.repeat(CLASSES, 40), [str(i // 2) for i in range(160)])


def grouped(codes: dict[int, list[int]]) -> Groups:
    return Groups({c: np.array(numbers, dtype=np.int64) for c, numbers in codes.items()})


def counts(groups: Groups) -> dict[int, int]:
    return {c: len(codes) for c, codes in groups.by_class.items()}


def sampler(spec: EpisodeSpec, groups: Groups) -> EpisodeSampler:
    return EpisodeSampler(spec, "x", counts(groups), groups)


def member(groups: Groups, episode: Episode, part: str) -> set[int]:
    """Groups of the images in a part."""
    ranks = getattr(episode, part)
    pairs = zip(episode.class_ids.tolist(), ranks, strict=True)
    return {code for c, rows in pairs for code in groups.by_class[c][rows].tolist()}


def random_groups(seed: int, size: int, spread: int) -> Groups:
    """Groups of `size` images on average, each reaching over `spread` classes on average."""
    random = np.random.default_rng(seed)
    numbers = {}
    for position, c in enumerate(CLASSES):
        n = int(random.integers(40, 70))
        numbers[c] = (random.integers(0, n // size, n) + position * 60 // spread).tolist()
    return grouped(numbers)


@given(
    groups=st.builds(
        random_groups, st.integers(0, 10**6), size=st.integers(1, 6), spread=st.integers(1, 4)
    ),
    i=st.integers(0, 10**9),
    spec=st.builds(
        lambda k, q, seed: SPEC.model_copy(update={"k_shot": k, "n_query": q, "seed": seed}),
        st.sampled_from([1, 2]),
        st.sampled_from([2, 4]),
        st.integers(0, 5),
    ),
)
@settings(max_examples=80, deadline=None)
def test_support_is_classic_and_queries_are_the_next_images_of_other_groups(
    groups: Groups, i: int, spec: EpisodeSpec
) -> None:
    try:
        episode = sampler(spec, groups).episode(i)
    except DataError:
        left = [groups.left(c, spec.k_shot, spec.n_way) for c in CLASSES]
        assert min(left) < spec.n_query
        return
    classic = EpisodeSampler(spec.classic, "x", counts(groups)).episode(i)
    np.testing.assert_array_equal(classic.class_ids, episode.class_ids)
    np.testing.assert_array_equal(classic.support, episode.support)
    met = member(groups, episode, "support")
    assert met.isdisjoint(member(groups, episode, "query"))
    sizes = [counts(groups)[int(c)] for c in classic.class_ids]
    keys = words(sum(sizes), "episode", spec.classic.digest(), "x", i, "images")
    for c, free, part, rows in zip(
        episode.class_ids.tolist(),
        episode.query_candidates,
        np.split(keys, np.cumsum(sizes)[:-1]),
        episode.query,
        strict=True,
    ):
        codes = groups.by_class[c].tolist()
        np.testing.assert_array_equal(free, [code not in met for code in codes])
        assert free.sum() >= groups.left(c, spec.k_shot, spec.n_way)
        order = np.argsort(part, kind="stable").tolist()
        assert rows.tolist() == [r for r in order if codes[r] not in met][: spec.n_query]


def test_groups_of_one_image_change_no_draw_but_the_manifest() -> None:
    disjoint, classic = sampler(SPEC, ALONE), EpisodeSampler(SPEC.classic, "x", counts(ALONE))
    for i in range(20):
        a, b = disjoint.episode(i), classic.episode(i)
        np.testing.assert_array_equal(a.query, b.query)
        for x, y, rows in zip(a.query_candidates, b.query_candidates, a.support, strict=True):
            np.testing.assert_array_equal(x, y)
            assert sorted(rows.tolist()) == np.flatnonzero(~x).tolist(), "all but the support"
    assert disjoint.manifest_hash(range(3)) != classic.manifest_hash(range(3))
    assert EpisodeSampler(SPEC.classic, "x", counts(PAIRS), PAIRS).groups is None


def test_the_manifest_needs_the_hash_of_the_groups_alone_and_depends_on_it() -> None:
    digest = sampler(SPEC, PAIRS).manifest_hash(range(4))
    assert digest == draw_manifest(SPEC, "x", counts(PAIRS), PAIRS.hash, [3, 2, 1, 0]).hash
    assert digest != draw_manifest(SPEC, "x", counts(PAIRS), "0" * 64, range(4)).hash
    assert digest == "2d110490935c37150d42b17d955e0ca2cd4c80c223dc0e294ff504aaf96d84bc"


def test_the_hash_of_groups_knows_structure_and_no_names() -> None:
    labels = np.array([0, 0, 0, 2, 2])
    base = Groups.of(labels, ["a", "b", "a", "c", "b"])
    assert (base.by_class[0].tolist(), base.by_class[2].tolist()) == ([0, 1, 0], [2, 1])
    assert base.hash == Groups.of(labels, ["z", "y", "z", "a", "y"]).hash
    others = [
        Groups.of(labels, ["a", "b", "a", "c", "c"]),
        Groups.of(np.array([0, 0, 0, 0, 2]), ["a", "b", "a", "c", "b"]),
        Groups.of(np.array([0, 0, 0, 3, 3]), ["a", "b", "a", "c", "b"]),
    ]
    assert len({base.hash, *(other.hash for other in others)}) == 4


def worst(groups: Groups, c: int, k: int, n_way: int) -> int:
    """Fewest images of c left over all supports of n_way classes, by trying them all."""
    fewest = len(groups.by_class[c])
    for classes in combinations([other for other in groups.by_class if other != c], n_way - 1):
        drawn = [combinations(groups.by_class[x].tolist(), k) for x in (c, *classes)]
        for support in product(*drawn):
            met = {code for part in support for code in part}
            fewest = min(fewest, sum(code not in met for code in groups.by_class[c].tolist()))
    return fewest


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=6), min_size=3, max_size=3))
@settings(max_examples=60, deadline=None)
def test_what_surely_remains_is_the_worst_case(codes: list[list[int]]) -> None:
    apart = grouped({c: [10 * c + code for code in part] for c, part in enumerate(codes)})
    shared = grouped(dict(enumerate(codes)))
    for (k, n_way), c in product(((1, 2), (2, 2), (1, 3)), apart.by_class):
        assert apart.left(c, k, n_way) == worst(apart, c, k, n_way)
        assert shared.left(c, k, n_way) <= worst(shared, c, k, n_way)


def test_a_class_of_few_groups_is_refused_with_what_remains() -> None:
    groups = grouped({0: [0] * 9 + [1] * 9, 1: list(range(2, 20)), 2: list(range(20, 38))})
    spec = EpisodeSpec(track="disjoint", n_way=2, k_shot=1, n_query=10)
    message = r"10 images in class 0, the support and .* needs 11\n.*--n-query 9 or fewer"
    with pytest.raises(DataError, match=message) as error:
        sampler(spec, groups)
    assert error.value.exit_code == 3
    sampler(spec.model_copy(update={"n_query": 9}), groups).episode(0)


def test_the_track_wants_groups_of_the_same_images() -> None:
    for groups in (None, ALONE):
        with pytest.raises(DataError, match="needs the groups of exactly its images"):
            EpisodeSampler(SPEC, "x", dict.fromkeys(CLASSES, 31), groups)
    unknown = target()
    facts = unknown.facts.model_copy(update={"groups": "lesion: a table"})
    for dataset, message in (
        (unknown, "blobs has no groups"),
        (replace(unknown, facts=facts), r"blobs has no groups(.|\n)*expected: lesion: a table"),
    ):
        with pytest.raises(DataError, match=message):
            EpisodeSampler.of(SPEC, dataset)
    dataset = with_groups(unknown, lambda image: f"{image[:-1]}{int(image[-1]) // 2}")
    assert EpisodeSampler.of(SPEC, dataset).groups is dataset.groups
