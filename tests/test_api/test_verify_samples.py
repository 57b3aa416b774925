"""Which episodes are drawn, and how outcomes run again are compared, by hand numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from support import fakes
from support.forged import flipped

from fsbench.api.verify import Sample, compare_episodes, draw, find_samples
from fsbench.core.errors import UnknownName, UsageError
from fsbench.core.records import EpisodeRecords
from fsbench.core.tasks import strip_digest
from fsbench.results import provenance
from fsbench.results.verification import Loaded, read_cells


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> tuple[Loaded, ...]:
    root = tmp_path_factory.mktemp("held")
    for data in (fakes.official("toy_tiles"), fakes.official("toy_rims"), fakes.dataset()):
        fakes.write(root, data=data)
    fakes.write(root, shots=5, data=fakes.official("toy_tiles"))
    fakes.write_probe(root)
    return tuple(read_cells(root))


def tasks(found: list[Sample]) -> list[str]:
    return [str(sample.cell.result.task).removesuffix("/linear@ibm") for sample in found]


def test_ids_choose_cells_and_what_they_leave_out_fits_any(held: tuple[Loaded, ...]) -> None:
    tiles = ["toy_tiles:5w1s", "toy_tiles:5w5s"]
    assert sorted(tasks(find_samples(held, []))) == ["toy_rims:5w1s", *tiles]
    assert sorted(tasks(find_samples(held, ["toy_tiles"]))) == tiles
    assert tasks(find_samples(held, ["toy_tiles:5w5s/linear@ibm"])) == ["toy_tiles:5w5s"]
    assert sorted(tasks(find_samples(held, ["toy"]))) == ["toy_rims:5w1s", *tiles]
    own = find_samples(held, ["folder:/somewhere/blobs"])
    assert tasks(own) == ["folder-blobs:5w1s"]
    assert own[0].task.dataset == "folder:/somewhere/blobs"
    assert strip_digest(own[0].task.in_results.dataset) == "folder-blobs"


@pytest.mark.parametrize(
    "text",
    ["toy_scan", "toy_tiles:5w20s", "toy_tiles/ridge", "toy_tiles:probe", "toy_tiles@startup"],
)
def test_an_id_that_fits_nothing_is_refused(text: str, held: tuple[Loaded, ...]) -> None:
    with pytest.raises(UsageError, match="names no episodes"):
        find_samples(held, [text])
    with pytest.raises(UnknownName):
        find_samples(held, ["nothing"])


def test_draws_are_named_by_entry_and_seed_and_uniform(held: tuple[Loaded, ...]) -> None:
    found = find_samples(held, [])

    def numbers(n: int, entry: str, seed: int) -> list[tuple[str, int]]:
        chosen = draw(found, n, entry, seed)
        return [(s.cell.result.task, i) for s in chosen for i in s.drawn]

    one = numbers(20, "entry", 0)
    assert one == numbers(20, "entry", 0)
    assert len(set(one)) == 20
    assert set(one) != set(numbers(20, "entry", 1)) != set(numbers(20, "other", 1))
    everything = numbers(10**6, "entry", 0)
    assert len(set(everything)) == 3 * fakes.N_EPISODES
    counts = Counter(pair for seed in range(600) for pair in numbers(6, "entry", seed))
    assert len(counts) == 120
    assert 10 < min(counts.values()) <= max(counts.values()) < 60  # 30 expected


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9])
def test_no_cell_is_missed_that_a_draw_could_reach(held: tuple[Loaded, ...], n: int) -> None:
    """A cell of 3 episodes beside two of 40, which even 9 of 83 would miss seven times in ten."""
    few, *others = find_samples(held, [])
    found = [replace(few, records=few.records.take(np.array([1, 5, 7]))), *others]
    for seed in range(20):
        chosen = draw(found, n, "entry", seed)
        assert len(chosen) == min(n, 3)
        assert sum(len(sample.drawn) for sample in chosen) == n
    alone = [draw(found[:1], 1, "entry", seed)[0].drawn for seed in range(60)]
    assert set(alone) == {(1,), (5,), (7,)}


def sample(held: tuple[Loaded, ...], adaptation: str = "linear") -> Sample:
    found = find_samples(held, ["toy_tiles:5w1s"])[0]
    spec = found.spec.model_copy(update={"adaptation": adaptation})
    return replace(found, spec=spec, drawn=(3,))


def here(of: Sample, **changes: str) -> dict[str, str]:
    return provenance.environment_of(of.cell.result.provenance) | changes


def test_equal_outcomes_are_verified(held: tuple[Loaded, ...]) -> None:
    one = sample(held)
    block = one.records.take(np.arange(2, 10))
    found = compare_episodes(one, block, here(one))
    assert (found.verdict, found.episodes, found.outcomes) == ("verified", 8, 8 * 25)
    assert (found.flipped, found.allowed, found.drawn) == (0, 0, (3,))


def test_one_flip_fails_in_the_same_environment_only(held: tuple[Loaded, ...]) -> None:
    one = sample(held)
    again = flipped(1, episode=7)(one.records)
    found = compare_episodes(one, again, here(one))
    assert (found.verdict, found.flipped, found.allowed, found.wrong) == ("failed", 1, 0, (7,))
    assert abs(found.gained) == 1
    elsewhere = compare_episodes(one, again, here(one, threads="2"))
    assert elsewhere.verdict == "within tolerance"
    assert elsewhere.differs == ("threads: 1 -> 2",)


@pytest.mark.parametrize(("adaptation", "allowed"), [("linear", 2), ("affine", 20)])
def test_elsewhere_a_stated_number_may_flip(
    adaptation: str, allowed: int, held: tuple[Loaded, ...]
) -> None:
    """Of 40 x 25 outcomes: 0.2 %, and 2 % of affine tuning."""
    one = sample(held, adaptation)
    for n, verdict in ((allowed, "within tolerance"), (allowed + 1, "failed")):
        found = compare_episodes(one, flipped(n)(one.records), here(one, torch="1.0"))
        assert (found.allowed, found.flipped, found.verdict) == (allowed, n, verdict)


def test_dense_queries_count(held: tuple[Loaded, ...]) -> None:
    one = sample(held)
    total = np.full((40, 5), 10)
    mine = replace(one, records=replace(one.records, dense_correct=total - 1, dense_total=total))
    less = mine.records.dense_correct
    assert less is not None
    fewer = less.copy()
    fewer[3, 2] -= 4
    found = compare_episodes(mine, replace(mine.records, dense_correct=fewer), here(one))
    assert (found.flipped, found.gained, found.outcomes) == (4, 4, 1000 + 2000)
    moved = compare_episodes(
        mine, replace(mine.records, dense_total=total + 1), here(one, threads="2")
    )
    assert (moved.verdict, moved.other) == ("failed", "other dense queries")


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [("class_ids", "failed"), ("collapsed", "verified"), ("finite", "verified")],
)
def test_what_is_no_outcome_must_be_equal_too(
    name: str, elsewhere: str, held: tuple[Loaded, ...]
) -> None:
    one = sample(held)
    values = getattr(one.records, name)
    again: EpisodeRecords = replace(
        one.records, **{name: values[::-1] if name == "class_ids" else ~values}
    )
    assert compare_episodes(one, again, here(one)).verdict == "failed"
    assert compare_episodes(one, again, here(one, threads="2")).verdict == elsewhere
