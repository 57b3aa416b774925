"""Which episodes are drawn, and how outcomes run again are compared, by hand numbers."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support import fakes
from support.forged import flipped

from fsbench.api.verify import Sample, compare_episodes, find_samples
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.records import EpisodeRecords
from fsbench.core.tasks import strip_digest
from fsbench.results import provenance
from fsbench.results.entry import Loaded
from fsbench.results.verification import read_loaded
from leaderboard import badges


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> tuple[Loaded, ...]:
    root = tmp_path_factory.mktemp("cells")
    for data in (fakes.official("toy_tiles"), fakes.official("toy_rims"), fakes.dataset()):
        fakes.write(root, data=data)
    fakes.write(root, shots=5, data=fakes.official("toy_tiles"))
    fakes.write_probe(root)
    return tuple(read_loaded(root))


def tasks(samples: list[Sample]) -> list[str]:
    return [str(sample.loaded.result.task).removesuffix("/linear@ibm") for sample in samples]


def test_ids_choose_cells_and_what_they_leave_out_fits_any(cells: tuple[Loaded, ...]) -> None:
    tiles = ["toy_tiles:5w1s", "toy_tiles:5w5s"]
    assert sorted(tasks(find_samples(cells, []))) == ["toy_rims:5w1s", *tiles]
    assert sorted(tasks(find_samples(cells, ["toy_tiles"]))) == tiles
    assert tasks(find_samples(cells, ["toy_tiles:5w5s/linear@ibm"])) == ["toy_tiles:5w5s"]
    assert sorted(tasks(find_samples(cells, ["toy"]))) == ["toy_rims:5w1s", *tiles]
    samples = find_samples(cells, ["folder:/somewhere/blobs"])
    assert tasks(samples) == ["folder-blobs:5w1s"]
    assert samples[0].task.dataset == "folder:/somewhere/blobs"
    assert strip_digest(samples[0].task.in_results.dataset) == "folder-blobs"


@pytest.mark.parametrize(
    "text",
    ["toy_scan", "toy_tiles:5w20s", "toy_tiles/ridge", "toy_tiles:probe", "toy_tiles@startup"],
)
def test_an_id_that_fits_nothing_is_refused(text: str, cells: tuple[Loaded, ...]) -> None:
    with pytest.raises(UsageError, match="names no episodes"):
        find_samples(cells, [text])
    with pytest.raises(UnknownName):
        find_samples(cells, ["nothing"])


def test_every_column_has_its_own_draws(cells: tuple[Loaded, ...]) -> None:
    """Thirty of forty in each; they follow from digest and seed, one of each equal part."""
    samples = find_samples(cells, [])

    def numbers(n: int | None, digest: str, seed: int) -> list[tuple[int, ...]]:
        return [badges.draw_episodes(s.loaded, n, digest, seed) for s in samples]

    one = numbers(30, "entry", 0)
    assert [len(set(drawn)) for drawn in one] == [30, 30, 30]
    assert one == numbers(30, "entry", 0)
    assert len({one[0], one[1], one[2]}) == 3
    assert one[0] not in (numbers(30, "entry", 1)[0], numbers(30, "other", 0)[0])
    assert numbers(None, "entry", 0) == [tuple(range(40))] * 3
    assert numbers(10**6, "entry", 0) == [tuple(range(40))] * 3
    for drawn in numbers(10, "entry", 3):
        assert [i // 4 for i in drawn] == list(range(10))
    counts = Counter(i for seed in range(300) for i in numbers(10, "entry", seed)[0])
    assert len(counts) == 40
    assert 40 < min(counts.values()) <= max(counts.values()) < 115  # 75 expected


FORGED = 0.05
"""Gain of the mean that a forger adds in one column, at a true 60 %."""
COLUMN, EPISODES, QUERIES = "isic:5w5s/linear@ibm 224px", 600, 75


def forge_whole(rng: np.random.Generator) -> np.ndarray:
    """Return the queries (600, 75) that a forger changed: all wrong ones of some episodes."""
    wrong = rng.random((EPISODES, QUERIES)) >= 0.6
    return wrong & (rng.permutation(EPISODES) < round(EPISODES * FORGED / 0.4))[:, None]


def forge_few(rng: np.random.Generator) -> np.ndarray:
    """Return the same with three or four wrong queries in every episode."""
    numbers = 3 + rng.binomial(1, 0.75, EPISODES)
    return rng.permuted(np.tile(np.arange(QUERIES), (EPISODES, 1)), axis=1) < numbers[:, None]


@pytest.mark.parametrize("forge", [forge_whole, forge_few])
def test_a_forged_gain_of_five_points_passes_once_in_twenty_at_most(
    forge: Callable[[np.random.Generator], np.ndarray],
) -> None:
    """Also if the forger tries 1,000 sets of outcomes elsewhere, each of another digest.

    The best of them, by the seeds that the forger can try, is no better for the verifier's seeds.
    """
    changed = forge(np.random.default_rng(0))
    assert changed.mean() == pytest.approx(FORGED, abs=0.002)
    is_forged = changed.any(axis=1)

    def passes(digest: str, seeds: range) -> float:
        drawn = [badges.draw_rows(EPISODES, 30, digest, seed, COLUMN) for seed in seeds]
        return float(np.mean([not is_forged[rows].any() for rows in drawn]))

    tries = [f"outcomes {i} elsewhere" for i in range(1000)]
    best = max(tries, key=lambda digest: passes(digest, range(20)))
    assert passes(best, range(10**6, 10**6 + 2000)) <= 0.05
    assert np.mean([passes(digest, range(10**6, 10**6 + 20)) for digest in tries[:100]]) <= 0.05


def make_sample(cells: tuple[Loaded, ...], adaptation: str = "linear") -> Sample:
    chosen = find_samples(cells, ["toy_tiles:5w1s"])[0]
    spec = chosen.spec.model_copy(update={"adaptation": adaptation})
    result = chosen.loaded.result.model_copy(update={"spec": spec})
    return replace(chosen, loaded=replace(chosen.loaded, result=result), spec=spec, drawn=(3,))


def environment(sample: Sample, **changes: str) -> dict[str, str]:
    return provenance.environment_of(sample.loaded.result.provenance) | changes


def flip(records: EpisodeRecords, up: int, down: int) -> EpisodeRecords:
    """Records in which so many scored queries became right, and so many wrong."""
    correct = records.correct.copy().reshape(-1)
    correct[np.flatnonzero(~correct)[:up]] = True
    correct[np.flatnonzero(records.correct.reshape(-1))[:down]] = False
    return replace(records, correct=correct.reshape(records.correct.shape))


NEON, THREADS, TORCH = ({"cpu capability": "NEON"}, {"threads": "2"}, {"torch": "1.0"})


@pytest.mark.parametrize(
    ("head", "changes", "up", "down", "verdict"),
    [
        *(("linear", {}, 0, 0, "verified"), ("linear", {}, 1, 0, "failed")),
        *(("linear", {}, 0, 1, "failed"), ("linear", THREADS, 1, 0, "tolerant")),
        ("linear", NEON, 0, 0, "tolerant"),  # stated by the submitter: it must gain nothing
        *(("linear", TORCH, 1, 1, "tolerant"), ("linear", TORCH, 2, 1, "failed")),  # 0.2 % may
        *(("affine", TORCH, 10, 10, "tolerant"), ("affine", TORCH, 11, 10, "failed")),  # 2 % may
        *(("affine", TORCH, 1, 0, "tolerant"), ("affine", TORCH, 2, 0, "undecided")),
        *(("affine", TORCH, 10, 0, "undecided"), ("affine", TORCH, 11, 0, "failed")),
        *(("affine", TORCH, 0, 11, "failed"), ("affine", TORCH, 15, 2, "undecided")),
        ("affine", TORCH, 16, 1, "failed"),
    ],
)
def test_flips_of_scored_queries(
    head: str, changes: dict[str, str], up: int, down: int, verdict: str, cells: tuple[Loaded, ...]
) -> None:
    """Of 1000 outcomes; by hand: 2 / 2^11 < .001 <= 2 / 2^10, and 0.1 point is one flip."""
    sample = make_sample(cells, head)
    compared = compare_episodes(
        sample, flip(sample.records, up, down), environment(sample, **changes)
    )
    scored = compared.scored
    assert (scored.outcomes, scored.flipped, scored.gained) == (1000, up + down, down - up)
    assert compared.allow_flips(scored) == ({"linear": 2, "affine": 20}[head] if changes else 0)
    assert (compared.verdict, bool(compared.differs)) == (verdict, bool(changes))


def test_a_part_of_the_episodes_is_compared_by_its_numbers(cells: tuple[Loaded, ...]) -> None:
    sample = make_sample(cells)
    part = flipped(1, episode=7)(sample.records).take(np.arange(2, 10))
    compared = compare_episodes(sample, part, environment(sample))
    assert (compared.episodes, compared.drawn, compared.wrong) == (8, (3,), (7,))


def with_dense(one: Sample, total: int) -> tuple[Sample, EpisodeRecords]:
    counts = np.full((40, 5), total)
    mine = replace(one, records=replace(one.records, dense_correct=counts - 1, dense_total=counts))
    return mine, mine.records


def test_dense_queries_count(cells: tuple[Loaded, ...]) -> None:
    mine, records = with_dense(make_sample(cells), 10)
    fewer = np.array(records.dense_correct)
    fewer[3, 2] -= 4
    compared = compare_episodes(mine, replace(records, dense_correct=fewer), environment(mine))
    assert compared.verdict == "failed"
    assert compared.scored == badges.FlipCount(outcomes=1000, flipped=0, gained=0)
    assert compared.dense == badges.FlipCount(outcomes=2000, flipped=4, gained=4)
    moved = replace(records, dense_total=np.full((40, 5), 11))
    compared = compare_episodes(mine, moved, environment(mine, **THREADS))
    assert (compared.verdict, compared.other) == ("failed", "other dense queries")


def test_dense_queries_lend_no_flips_to_the_scored_ones(cells: tuple[Loaded, ...]) -> None:
    """An entry of 21.13 states 54.46: 25 of 75 scored queries an episode, none of the dense ones.

    Pooled with 12,500 dense queries an episode, 25 flips are 0.2 %, which was within tolerance.
    """
    correct = np.zeros((40, 75), bool)
    correct[:, :16] = True  # 21.33 %, and 54.67 % with 25 more
    inflated = correct.copy()
    inflated[:, 16:41] = True
    honest, shape = make_sample(cells), (40, 5, 15)
    stated = replace(honest.records, correct=inflated.reshape(shape))
    mine, records = with_dense(replace(honest, records=stated), 2500)
    recomputed = replace(records, correct=correct.reshape(shape))
    compared = compare_episodes(mine, recomputed, environment(honest, **NEON))
    flips = compared.scored.flipped
    assert flips == compared.scored.gained == 25 * 40 <= 0.002 * (75 + 12500) * 40
    assert compared.allow_flips(compared.scored) == 6
    assert (compared.verdict, compared.dense and compared.dense.flipped) == ("failed", 0)


@pytest.mark.parametrize("name", ["collapsed", "finite"])
def test_what_is_no_outcome_must_be_equal_too(name: str, cells: tuple[Loaded, ...]) -> None:
    sample = make_sample(cells)
    other: EpisodeRecords = replace(sample.records, **{name: ~getattr(sample.records, name)})
    assert compare_episodes(sample, other, environment(sample)).verdict == "failed"
    elsewhere = compare_episodes(sample, other, environment(sample, **THREADS))
    assert elsewhere.verdict == "tolerant"
