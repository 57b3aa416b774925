"""The results tree: names, journal, completeness, growth, flags."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import fakes
from support.cases import read_cases
from support.reporters import Recorder

from fsbench.core.errors import ValidationFailed
from fsbench.core.progress import SILENT, Reporter
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodicSpec
from fsbench.results.entry import read_entry
from fsbench.results.names import model_name, result_flags
from fsbench.results.provenance import environment_of
from fsbench.results.store import ResultStore

BLOCK = 8


def blocks_done(target: ResultStore) -> set[int]:
    """Return the numbers of the blocks in the journal."""
    return {int(file.name.partition("-")[0]) for file in target.block_files()}


def open_store(root: Path, report: Reporter = SILENT, **environment: str) -> ResultStore:
    facts = fakes.facts(), fakes.dataset(), fakes.episodic()
    return ResultStore(root, *facts, environment or None, report)


def run(
    target: ResultStore, episodes: range, blocks: list[int] | None = None, accuracy: float = 0.6
) -> None:
    """Write the blocks (all of them by default) that hold the wanted episodes."""
    spec, data = target.spec, target.dataset
    assert isinstance(spec, EpisodicSpec)
    for block in blocks or sorted({i // BLOCK for i in episodes}):
        index = [i for i in episodes if i // BLOCK == block]
        target.write_block(block, fakes.episodes(spec, data, index, accuracy))


@pytest.mark.parametrize(("ref", "source", "seed", "name"), read_cases("data")["names"])
def test_model_names_are_safe_components(
    ref: str, source: str, seed: int | None, name: str
) -> None:
    facts = fakes.facts(ref=ref, source=source, random_init=seed)
    assert model_name(facts) == name


def test_tree_is_that_of_the_design(tmp_path: Path) -> None:
    fakes.write(tmp_path)
    home = tmp_path / "a" / fakes.facts().weights_hash[:12]
    shown = {p.relative_to(home).as_posix() for p in home.rglob("[!.]*") if p.is_file()}
    digest = hashlib.sha256(next(home.glob("outcomes-*")).read_bytes()).hexdigest()
    assert shown == {"entry.json", f"outcomes-{digest[:12]}.arrow.zst"}
    entry = read_entry(home)
    assert (entry.file.outcomes, entry.file.models) == (digest, (fakes.facts(),))
    assert entry.digest == hashlib.sha256((home / "entry.json").read_bytes()).hexdigest()
    assert not list(tmp_path.rglob(".[!.]*-*/*")), "the journal is gone"


def test_no_clock_value_reaches_the_records(tmp_path: Path) -> None:
    fakes.write(tmp_path / "a", seconds=1.0, started="2026-01-01T00:00:00+00:00")
    fakes.write(tmp_path / "b", seconds=9.0, started="2027-02-02T00:00:00+00:00")
    a, b = (next((tmp_path / x).rglob("outcomes-*")).read_bytes() for x in "ab")
    assert a == b


def finish(target: ResultStore, episodes: Iterable[int], **facts: Any) -> Result:
    return target.finish(list(episodes), **{"provenance": fakes.provenance()} | facts)


def test_unfinished_blocks_are_found_again(tmp_path: Path) -> None:
    first = open_store(tmp_path)
    run(first, range(40), [0, 2])
    with pytest.raises(ValidationFailed, match=r"24 episodes in 8-39 "):
        finish(first, range(40))
    again = open_store(tmp_path)
    assert blocks_done(again) == {0, 2}
    assert again.missing_blocks({0: range(8)}) == []
    assert again.missing_blocks({0: range(9)}) == [0]
    assert again.complete_result() is None
    run(again, range(40), [1, 3, 4])
    assert finish(again, range(40)) == fakes.write(tmp_path / "whole")
    assert blocks_done(again) == set()
    with pytest.raises(ValidationFailed, match="nothing to merge"):
        finish(open_store(tmp_path / "empty"), range(3))


def test_a_result_grows_by_episodes_that_fit_and_is_forgotten(tmp_path: Path) -> None:
    target = open_store(tmp_path)
    run(target, range(20))
    small = finish(target, range(20))
    assert small.flags == ("short", "custom")
    assert [target.complete_result(range(n)) for n in (1, 20, 21)] == [small, small, None]
    assert target.missing_blocks({0: range(16)}) == []
    run(target, range(40), [2, 3, 4], accuracy=0.9)  # block 2 overlaps episodes 16-19
    with pytest.raises(ValidationFailed, match=r"episodes in 1[67].* differ"):
        finish(target, range(40))
    target.remove_blocks(target.block_files())
    run(target, range(40), [2, 3, 4])
    whole = finish(target, range(40))
    assert (whole, whole.flags) == (fakes.write(tmp_path / "whole"), ("custom",))
    run(target, range(40), [2])
    target.clear()
    assert target.complete_result() is None
    assert target.missing_blocks({0: [0]}) == [0]
    assert blocks_done(target) == set()


def test_another_environment_neither_resumes_nor_grows(tmp_path: Path) -> None:
    one, two = (environment_of(fakes.provenance(threads=n)) for n in (1, 2))
    target = open_store(tmp_path, **one)
    run(target, range(16))
    assert blocks_done(open_store(tmp_path, **one)) == {0, 1}
    other = open_store(tmp_path, **two)
    assert blocks_done(other) == set()
    finish(target, range(16))
    assert other.complete_result(range(16)), "a complete result is read in any environment"
    with pytest.raises(ValidationFailed, match=r"threads: 1 -> 2.*\n.*--overwrite"):
        other.complete_result(range(40))
    run(other, range(40), [2, 3, 4])
    with pytest.raises(ValidationFailed, match="threads: 1 -> 2"):
        finish(other, range(40), provenance=fakes.provenance(threads=2))


def test_other_images_or_features_are_refused(tmp_path: Path) -> None:
    fakes.write(tmp_path)
    moved = fakes.dataset().model_copy(update={"fingerprint": "f" * 64})
    with pytest.raises(ValidationFailed, match="other images"):
        ResultStore(tmp_path, fakes.facts(), moved, fakes.episodic()).earlier()
    other = fakes.facts(features="cls token")
    with pytest.raises(ValidationFailed, match="other features"):
        ResultStore(tmp_path, other, fakes.dataset(), fakes.episodic()).earlier()


def test_shards_of_one_folder_come_together(tmp_path: Path) -> None:
    target = open_store(tmp_path)
    run(target, range(40))
    part = finish(target, [i for i in range(40) if i // BLOCK % 2 == 0])
    assert part.flags == ("custom", "shard")
    assert blocks_done(target) == {1, 3}
    whole = finish(target, [i for i in range(40) if i // BLOCK % 2 == 1])
    assert whole == fakes.write(tmp_path / "whole")


def test_flags_keep_one_order_and_limited_counts_while_episodes_are_missing(tmp_path: Path) -> None:
    target = open_store(tmp_path)
    run(target, range(8))
    assert finish(target, range(8), limited=True).flags == ("limited", "custom")
    run(target, range(40), [1, 2, 3, 4])
    assert finish(target, range(40), limited=True).flags == ("custom",)
    data = fakes.dataset(flags=("custom", "subset"))
    flags = result_flags(data, fakes.episodic(), np.array([0, 2]), limited=True)
    assert flags == ("subset", "limited", "custom", "shard")
    assert result_flags(data, fakes.probe(), None, limited=False) == ("subset", "custom", "derived")


@pytest.mark.parametrize("damage", ["outcome", "cut"])
def test_a_damaged_block_is_dropped_and_said(damage: str, tmp_path: Path) -> None:
    """A changed outcome makes a valid file of other records."""
    target = open_store(tmp_path)
    run(target, range(16))
    good, bad = target.block_files()
    if damage == "outcome":
        other = open_store(tmp_path / "other")
        run(other, range(16), [1], accuracy=0.9)
        bad.write_bytes(other.block_files()[0].read_bytes())
    else:
        bad.write_bytes(bad.read_bytes()[:-9])
    heard = Recorder()
    again = open_store(tmp_path, heard)
    assert again.missing_blocks({0: range(8)}) == []
    assert again.missing_blocks({0: range(9)}) == [0]
    assert again.block_files() == [good]
    assert [str(bad) in line and "damaged" in line for line in heard.lines] == [True]
