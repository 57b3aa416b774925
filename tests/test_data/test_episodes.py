"""Episodes: disjoint, balanced, uniform, a function of nothing but their names; their export.

On the disjoint track no group is on both sides; all else is as on the classic track.
"""

import json
import os
from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from support.cli import CommandLine
from support.protocols import target, with_groups

from fsbench.core.errors import DataError
from fsbench.core.io import TEMPORARY
from fsbench.core.seeding import words
from fsbench.core.specs import EpisodeSpec
from fsbench.data import TARGETS
from fsbench.data.base import Groups
from fsbench.data.episodes import EpisodeSampler, argsort_smallest, draw_manifest

COUNTS = {2: 40, 3: 25, 5: 31, 7: 60, 8: 25, 11: 90, 12: 26}
SPEC = EpisodeSpec(k_shot=3, n_query=6)
CLASSES = (1, 4, 5, 9)
DISJOINT = EpisodeSpec(track="disjoint", n_way=3, k_shot=3, n_query=4)
ALONE = Groups.of(np.repeat(CLASSES, 30), [str(i) for i in range(120)])
PAIRS = Groups.of(np.repeat(CLASSES, 40), [str(i // 2) for i in range(160)])


def grouped(codes: dict[int, list[int]]) -> Groups:
    return Groups({c: np.array(numbers, dtype=np.int64) for c, numbers in codes.items()})


def count(groups: Groups) -> dict[int, int]:
    return {c: len(codes) for c, codes in groups.by_class.items()}


def draw_groups(seed: int, size: int, spread: int) -> Groups:
    """Groups of `size` images on average, each reaching over `spread` classes on average."""
    random = np.random.default_rng(seed)
    sizes = random.integers(40, 70, len(CLASSES))
    return grouped(
        {
            c: (random.integers(0, n // size, n) + position * 60 // spread).tolist()
            for position, (c, n) in enumerate(zip(CLASSES, sizes.tolist(), strict=True))
        }
    )


@given(
    spec=st.builds(
        EpisodeSpec,
        n_way=st.integers(2, 5),
        k_shot=st.integers(1, 8),
        n_query=st.integers(1, 9),
        seed=st.integers(0, 10),
    ),
    counts=st.dictionaries(st.integers(0, 40), st.integers(17, 60), min_size=5, max_size=9),
    i=st.integers(0, 10**9),
)
@settings(max_examples=60)
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
        assert 0 <= row.min() <= row.max() < counts[c]
    for free, rows in zip(episode.query_candidates, episode.support, strict=True):
        assert sorted(rows.tolist()) == np.flatnonzero(~free).tolist(), "all but the support"
    by_class = {c: 1000 * c + np.arange(n) for c, n in counts.items()}
    for part, images in zip(("support", "query"), episode.images(by_class), strict=True):
        expected = 1000 * episode.class_ids[:, None] + getattr(episode, part)
        np.testing.assert_array_equal(images, expected)


@given(
    groups=st.builds(
        draw_groups, st.integers(0, 10**6), size=st.integers(1, 6), spread=st.integers(1, 4)
    ),
    i=st.integers(0, 10**9),
    fields=st.fixed_dictionaries(
        {
            "k_shot": st.sampled_from([1, 2]),
            "n_query": st.sampled_from([2, 4]),
            "seed": st.integers(0, 5),
        }
    ),
)
@settings(max_examples=80)
def test_support_is_classic_and_queries_are_the_next_images_of_other_groups(
    groups: Groups, i: int, fields: dict[str, int]
) -> None:
    spec, sizes = DISJOINT.model_copy(update=fields), count(groups)
    left = {c: groups.left(c, spec.k_shot, spec.n_way) for c in CLASSES}
    if min(left.values()) < spec.n_query:
        with pytest.raises(DataError):
            EpisodeSampler(spec, "x", sizes, groups)
        return
    episode = EpisodeSampler(spec, "x", sizes, groups).episode(i)
    classic = EpisodeSampler(spec.classic, "x", sizes).episode(i)
    np.testing.assert_array_equal(classic.class_ids, episode.class_ids)
    np.testing.assert_array_equal(classic.support, episode.support)
    classes = classic.class_ids.tolist()
    pairs = zip(classes, episode.support, strict=True)
    met = {code for c, ranks in pairs for code in groups.by_class[c][ranks].tolist()}
    ends = np.cumsum([sizes[c] for c in classes])
    keys = words(ends[-1], "episode", spec.classic.digest(), "x", i, "images")
    parts = np.split(keys, ends[:-1])
    rows = zip(classes, episode.query_candidates, parts, episode.query, strict=True)
    for c, free, part, query in rows:
        allowed = [code not in met for code in groups.by_class[c].tolist()]
        np.testing.assert_array_equal(free, allowed)
        assert free.sum() >= left[c]
        order = np.argsort(part, kind="stable").tolist()
        assert query.tolist() == [rank for rank in order if allowed[rank]][: spec.n_query]


@given(keys=st.lists(st.integers(0, 3), min_size=1, max_size=150), m=st.integers(1, 30))
@settings(max_examples=200)
def test_first_is_the_head_of_a_stable_argsort_even_with_ties(keys: list[int], m: int) -> None:
    array = np.array(keys, dtype=np.uint64)
    m = min(m, len(keys))
    np.testing.assert_array_equal(argsort_smallest(m, array), np.argsort(array, kind="stable")[:m])


def test_the_hash_depends_on_everything_that_decides_an_episode_and_on_no_order() -> None:
    def manifest(
        spec: EpisodeSpec = SPEC,
        name: str = "x",
        counts: dict[int, int] = COUNTS,
        indices: range | list[int] = range(4),
    ) -> str:
        return EpisodeSampler(spec, name, counts).manifest_hash(indices)

    base = manifest()
    changes = ({"seed": 1}, {"pool": "labeled_80"}, {"n_query": 7})
    others = [
        *(manifest(SPEC.model_copy(update=change)) for change in changes),
        manifest(name="y"),
        manifest(counts=COUNTS | {12: 27}),
        manifest(indices=range(5)),
        *(manifest(indices=[i]) for i in range(20)),
    ]
    assert len({base, *others}) == 1 + len(others)
    shuffled = dict(reversed(COUNTS.items()))
    assert manifest(counts=shuffled, indices=[3, 1, 2, 0, 0]) == base


def test_golden_episode_and_hashes() -> None:
    """Pinned: if this changes, published episodes change, which needs a new EpisodeSpec.version."""
    sampler = EpisodeSampler(SPEC, "x", COUNTS)
    episode = sampler.episode(0)
    assert episode.class_ids.tolist() == [12, 5, 7, 2, 3]
    support = [[21, 8, 15], [18, 20, 25], [36, 48, 1], [26, 3, 19], [12, 6, 11]]
    assert episode.support.tolist() == support
    digest = "1237af21bb4dcce9a09e4b854f3cb1207bd759ef25f54b095b879d7c3e6e9b80"
    assert sampler.manifest_hash(range(600)) == digest
    digest = EpisodeSampler(DISJOINT, "x", count(PAIRS), PAIRS).manifest_hash(range(4))
    assert digest == "2d110490935c37150d42b17d955e0ca2cd4c80c223dc0e294ff504aaf96d84bc"
    hashed = (DISJOINT, "x", count(PAIRS))
    assert digest == draw_manifest(*hashed, PAIRS.hash, [3, 2, 1, 0]).hash, "of the groups alone"
    assert digest != draw_manifest(*hashed, "0" * 64, range(4)).hash


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
    ("spec", "counts", "groups", "message"),
    [
        (SPEC, {1: 9, 2: 9, 3: 9, 4: 8, 5: 30, 6: 3}, None,
         r"3 images in class 6; 3-shot with 6 queries needs 9\n.*fewer --shots"),
        (SPEC, dict.fromkeys(range(4), 50), None, "isic has 4 classes; 5-way episodes need 5"),
        (SPEC, dict.fromkeys(range(5), 8), None, "use --n-query 5 or fewer"),
        (EpisodeSpec(track="disjoint", n_way=2, n_query=10), {0: 18, 1: 18, 2: 18},
         grouped({0: [0] * 9 + [1] * 9, 1: [*range(2, 20)], 2: [*range(20, 38)]}),
         r"10 images in class 0, the support and .* needs 11\n.*--n-query 9 or fewer"),
        (DISJOINT, count(ALONE), None, "needs the groups of exactly its images"),
        (DISJOINT, dict.fromkeys(CLASSES, 31), ALONE, "needs the groups of exactly its images"),
    ],
)  # fmt: skip
def test_episodes_that_cannot_be_drawn_are_refused(
    spec: EpisodeSpec, counts: dict[int, int], groups: Groups | None, message: str
) -> None:
    with pytest.raises(DataError, match=message) as error:
        EpisodeSampler(spec, "isic", counts, groups)
    assert error.value.exit_code == 3


def test_the_largest_number_of_queries_can_be_drawn() -> None:
    EpisodeSampler(SPEC, "isic", dict.fromkeys(range(5), 9)).episode(0)
    groups = grouped({0: [0] * 9 + [1] * 9, 1: [*range(2, 20)], 2: [*range(20, 38)]})
    spec = EpisodeSpec(track="disjoint", n_way=2, n_query=9)
    EpisodeSampler(spec, "x", count(groups), groups).episode(0)


def test_the_track_wants_the_groups_of_a_data_set() -> None:
    unknown = target()
    facts = unknown.facts.model_copy(update={"groups": "lesion: a table"})
    for dataset, message in (
        (unknown, "blobs has no groups"),
        (replace(unknown, facts=facts), r"blobs has no groups(.|\n)*expected: lesion: a table"),
    ):
        with pytest.raises(DataError, match=message):
            EpisodeSampler.of(DISJOINT, dataset)
    dataset = with_groups(unknown, lambda image: f"{image[:-1]}{int(image[-1]) // 2}")
    assert EpisodeSampler.of(DISJOINT, dataset).groups is dataset.groups


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


def find_worst(groups: Groups, c: int, k: int, n_way: int) -> int:
    """Fewest images of c left over all supports of n_way classes, by trying them all."""
    codes, fewest = groups.by_class[c].tolist(), len(groups.by_class[c])
    for classes in combinations([other for other in groups.by_class if other != c], n_way - 1):
        drawn = [combinations(groups.by_class[x].tolist(), k) for x in (c, *classes)]
        for support in product(*drawn):
            met = {code for part in support for code in part}
            fewest = min(fewest, sum(code not in met for code in codes))
    return fewest


@given(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=6), min_size=3, max_size=3))
@settings(max_examples=60)
def test_what_surely_remains_is_the_worst_case(codes: list[list[int]]) -> None:
    apart = grouped({c: [10 * c + code for code in part] for c, part in enumerate(codes)})
    shared = grouped(dict(enumerate(codes)))
    for (k, n_way), c in product(((1, 2), (2, 2), (1, 3)), apart.by_class):
        assert apart.left(c, k, n_way) == find_worst(apart, c, k, n_way)
        assert shared.left(c, k, n_way) <= find_worst(shared, c, k, n_way)


NAMES = ("crow", "owl", "wren")


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    """Three classes of 18 files each; export opens none of them."""
    for name in NAMES:
        (tmp_path / "birds" / name).mkdir(parents=True)
        for i in range(18):
            (tmp_path / "birds" / name / f"{i:02}.jpg").touch()
    return tmp_path / "birds"


def test_export_writes_paths_of_the_episodes_that_are_evaluated(
    birds: Path, tmp_path: Path, cli: CommandLine
) -> None:
    file = tmp_path / "new" / "e.jsonl"
    arguments = (f"folder:{birds}:2w3s", "--episodes", "4", "--seed", "7")
    shown = cli("episodes", "export", *arguments, "-o", file)
    spec = EpisodeSpec(n_way=2, k_shot=3, seed=7)
    sampler = EpisodeSampler(spec, "folder-birds", dict.fromkeys(range(3), 18))
    digest = sampler.manifest_hash(range(4))
    assert (shown.out, digest in shown.err) == ("", True)
    for index, line in enumerate(file.read_text().splitlines()):
        row, episode = json.loads(line), sampler.episode(index)
        assert (row["index"], row["class_ids"]) == (index, episode.class_ids.tolist())
        for part in ("support", "query"):
            ranks = zip(row["class_ids"], getattr(episode, part).tolist(), strict=True)
            assert row[part] == [[f"{NAMES[c]}/{r:02}.jpg" for r in line] for c, line in ranks]
    assert index == 3
    assert cli("episodes", "hash", *arguments).out.strip() == digest
    (birds / "owl" / "99.jpg").touch()
    assert cli("episodes", "hash", *arguments).out.strip() != digest


def test_hash_needs_official_counts_only_and_equals_that_of_the_images(cli: CommandLine) -> None:
    counts = dict(enumerate(TARGETS.load("eurosat").FACTS.images_per_class))
    sampler = EpisodeSampler(EpisodeSpec(k_shot=5), "eurosat", counts)
    shown = cli("episodes", "hash", "EuroSAT:5w5s", "--episodes", "3").out
    assert shown.strip() == sampler.manifest_hash(range(3))


@pytest.mark.realdata
def test_real_packs_export_files_that_exist(packs: Path, tmp_path: Path, cli: CommandLine) -> None:
    file = tmp_path / "e.jsonl"
    cli("episodes", "export", "eurosat:5w1s", "--data", packs, "--episodes", "3", "-o", file)
    for row in map(json.loads, file.read_text().splitlines()):
        assert all((packs / "eurosat" / path).is_file() for path in np.ravel(row["query"]))


def test_what_a_killed_export_left_is_removed_a_day_later(
    birds: Path, tmp_path: Path, cli: CommandLine
) -> None:
    file, left = tmp_path / "e.jsonl", tmp_path / f".e.jsonl.0{TEMPORARY}"
    left.touch()
    command = ["episodes", "export", f"folder:{birds}:2w3s", "-o", file, "--episodes", 2]
    cli(*command)
    assert left.exists(), "it may still be written"
    os.utime(left, (0, 0))
    cli(*command)
    assert file.exists() > left.exists()
