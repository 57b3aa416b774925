"""Episodes: disjoint, balanced, uniform, and a function of nothing but their names."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from fsbench.core.errors import DataError
from fsbench.core.specs import EpisodeSpec
from fsbench.data.episodes import EpisodeSampler, smallest_keys

COUNTS = {2: 40, 3: 25, 5: 31, 7: 60, 8: 25, 11: 90, 12: 26}
SPEC = EpisodeSpec(k_shot=3, n_query=6)

specs = st.builds(
    EpisodeSpec,
    n_way=st.integers(2, 5),
    k_shot=st.integers(1, 8),
    n_query=st.integers(1, 9),
    seed=st.integers(0, 10),
)
counts = st.dictionaries(st.integers(0, 40), st.integers(17, 60), min_size=5, max_size=9)


@given(spec=specs, counts=counts, i=st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_support_and_query_are_disjoint_balanced_and_in_range(
    spec: EpisodeSpec, counts: dict[int, int], i: int
) -> None:
    episode = EpisodeSampler(spec, "x", counts).episode(i)
    assert episode.index == i
    classes = episode.class_ids.tolist()
    assert len(set(classes)) == len(classes) == spec.n_way
    assert episode.support.shape == (spec.n_way, spec.k_shot)
    assert episode.query.shape == (spec.n_way, spec.n_query)
    for c, row in zip(classes, np.hstack([episode.support, episode.query]), strict=True):
        assert len(set(row.tolist())) == spec.k_shot + spec.n_query
        assert row.min() >= 0
        assert row.max() < counts[c]
    by_class = {c: 1000 * c + np.arange(n) for c, n in counts.items()}
    for part, images in zip(("support", "query"), episode.images(by_class), strict=True):
        np.testing.assert_array_equal(
            images, 1000 * episode.class_ids[:, None] + getattr(episode, part)
        )


@given(keys=st.lists(st.integers(0, 3), min_size=1, max_size=150), m=st.integers(1, 30))
@settings(max_examples=200, deadline=None)
def test_first_is_the_head_of_a_stable_argsort_even_with_ties(keys: list[int], m: int) -> None:
    array = np.array(keys, dtype=np.uint64)
    m = min(m, len(keys))
    np.testing.assert_array_equal(smallest_keys(m, array), np.argsort(array, kind="stable")[:m])


def test_the_hash_depends_on_everything_that_decides_an_episode_and_on_no_order() -> None:
    def manifest(
        spec: EpisodeSpec = SPEC,
        name: str = "x",
        counts: dict[int, int] = COUNTS,
        indices: range | list[int] = range(4),
    ) -> str:
        return EpisodeSampler(spec, name, counts).manifest_hash(indices)

    base = manifest()
    others = [
        manifest(SPEC.model_copy(update={"seed": 1})),
        manifest(SPEC.model_copy(update={"pool": "labeled_80"})),
        manifest(SPEC.model_copy(update={"n_query": 7})),
        manifest(name="y"),
        manifest(counts=COUNTS | {12: 27}),
        manifest(indices=range(5)),
        *(manifest(indices=[i]) for i in range(20)),
    ]
    assert len({base, *others}) == 1 + len(others)
    shuffled = dict(reversed(COUNTS.items()))
    assert manifest(counts=shuffled, indices=[3, 1, 2, 0, 0]) == base


def test_golden_episode_and_hash() -> None:
    """Pinned: if this changes, published episodes change, which needs a new EpisodeSpec.version."""
    sampler = EpisodeSampler(SPEC, "x", COUNTS)
    episode = sampler.episode(0)
    assert episode.class_ids.tolist() == [12, 5, 7, 2, 3]
    support = [[21, 8, 15], [18, 20, 25], [36, 48, 1], [26, 3, 19], [12, 6, 11]]
    assert episode.support.tolist() == support
    digest = "1237af21bb4dcce9a09e4b854f3cb1207bd759ef25f54b095b879d7c3e6e9b80"
    assert sampler.manifest_hash(range(600)) == digest


def test_classes_and_images_are_drawn_uniformly() -> None:
    sampler = EpisodeSampler(EpisodeSpec(n_way=3, k_shot=1, n_query=1), "x", COUNTS)
    episodes = [sampler.episode(i) for i in range(2000)]
    chosen = Counter(c for e in episodes for c in e.class_ids.tolist())
    leading = Counter(int(e.class_ids[0]) for e in episodes)
    for tally in (chosen, leading):
        assert chisquare([tally[c] for c in COUNTS]).pvalue > 1e-3
    sampler = EpisodeSampler(EpisodeSpec(k_shot=2, n_query=5), "x", dict.fromkeys(range(5), 20))
    episodes = [sampler.episode(i) for i in range(1500)]
    for part in ("support", "query"):
        ranks = np.concatenate([getattr(e, part).ravel() for e in episodes])
        assert chisquare(np.bincount(ranks, minlength=20)).pvalue > 1e-3, part


@pytest.mark.parametrize(
    ("k_shot", "counts", "message"),
    [
        (3, {1: 9, 2: 9, 3: 9, 4: 8, 5: 30, 6: 3},
         r"3 images in class 6; 3-shot with 6 queries needs 9 \(2 classes(.|\n)*--n-query 2"),
        (3, dict.fromkeys(range(4), 50), "isic has 4 classes; 5-way episodes need 5"),
        (3, dict.fromkeys(range(5), 8), "use --n-query 5 or fewer"),
        (50, dict.fromkeys(range(5), 30), "use --shots 1,5,20$"),
        (20, dict.fromkeys(range(5), 6), "use --shots 1,5 --n-query 1 or fewer"),
        (3, dict.fromkeys(range(5), 1), "add images to the class"),
    ],
)  # fmt: skip
def test_episodes_that_cannot_be_drawn_are_refused(
    k_shot: int, counts: dict[int, int], message: str
) -> None:
    with pytest.raises(DataError, match=message) as error:
        EpisodeSampler(SPEC.model_copy(update={"k_shot": k_shot}), "isic", counts)
    assert error.value.exit_code == 3
    EpisodeSampler(SPEC, "isic", dict.fromkeys(range(5), 9)).episode(0)
