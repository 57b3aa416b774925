"""The results tree: names, journal, completeness, growth, flags."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from support import fakes
from support.reporters import Recorder

from fsbench.core.errors import ValidationFailed
from fsbench.core.progress import SILENT, Reporter
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


@pytest.mark.parametrize(
    ("ref", "source", "seed", "name"),
    [
        ("timm/resnet18", "timm", None, "timm-resnet18"),
        ("timm/resnet18", "timm", 0, "timm-resnet18-random0"),
        ("run:runs/pilot-seal-s0", "run", None, "pilot-seal-s0"),
        ("run:runs/pilot-seal-s0/", "run", None, "pilot-seal-s0"),
        ("hf-hub:org/name@v1", "hf-hub", None, "org-name@v1"),
        ("some/where/best.pt", "file", None, "best"),
        ("me@host/last.pth.tar@timm/vit.x", "file", None, "last.pth"),
        ("last.pth.tar::state_dict_ema", "file", None, "last.pth"),
        ("best.pt::model.ema@py:a.b:make?depth=20", "file", None, "best"),
        ("py:pkg.mod:make", "py", None, "pkg.mod-make"),
        ("run:../..", "run", None, "unnamed"),
    ],
)
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


def test_unfinished_blocks_are_found_again(tmp_path: Path) -> None:
    first = open_store(tmp_path)
    run(first, range(40), [0, 2])
    again = open_store(tmp_path)
    assert blocks_done(again) == {0, 2}
    assert again.missing_blocks({0: range(8)}) == []
    assert again.missing_blocks({0: range(9)}) == [0]
    assert again.complete_result() is None
    run(again, range(40), [1, 3, 4])
    result = again.finish(range(40), provenance=fakes.provenance())
    assert result == fakes.write(tmp_path / "whole", command=result.provenance.command)
    assert blocks_done(again) == set()


def test_finishing_too_early_names_the_missing_episodes(tmp_path: Path) -> None:
    target = open_store(tmp_path)
    run(target, range(40), [0, 2])
    with pytest.raises(ValidationFailed, match=r"episodes 8-15, 24-39 "):
        target.finish(range(40), provenance=fakes.provenance())
    assert blocks_done(target) == {0, 2}
    with pytest.raises(ValidationFailed, match="nothing to merge"):
        open_store(tmp_path / "empty").finish(range(3), provenance=fakes.provenance())


def test_a_result_is_complete_for_fewer_and_grows_for_more(tmp_path: Path) -> None:
    target = open_store(tmp_path)
    run(target, range(20))
    small = target.finish(range(20), provenance=fakes.provenance())
    assert small.flags == ("short", "custom")
    assert [target.complete_result(range(n)) for n in (1, 20, 21)] == [small, small, None]
    assert target.missing_blocks({0: range(16)}) == []
    run(target, range(40), [2, 3, 4])  # block 2 overlaps episodes 16-19
    whole = target.finish(range(40), provenance=fakes.provenance())
    assert whole.flags == ("custom",)
    assert whole == fakes.write(tmp_path / "whole")


def test_growing_keeps_old_episodes_and_refuses_other_outcomes(tmp_path: Path) -> None:
    target = open_store(tmp_path)
    run(target, range(20))
    target.finish(range(20), provenance=fakes.provenance())
    run(target, range(40), [2, 3, 4], accuracy=0.9)
    with pytest.raises(ValidationFailed, match=r"episodes 1[67].* differ"):
        target.finish(range(40), provenance=fakes.provenance())


def test_clear_forgets_result_and_journal(tmp_path: Path) -> None:
    target = open_store(tmp_path)
    run(target, range(16))
    target.finish(range(16), provenance=fakes.provenance())
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
    target.finish(range(16), provenance=fakes.provenance())
    assert other.complete_result(range(16)), "a complete result is read in any environment"
    with pytest.raises(ValidationFailed, match=r"threads: 1 -> 2.*\n.*--overwrite"):
        other.complete_result(range(40))
    run(other, range(40), [2, 3, 4])
    with pytest.raises(ValidationFailed, match="threads: 1 -> 2"):
        other.finish(range(40), provenance=fakes.provenance(threads=2))


def test_other_images_or_features_are_refused(tmp_path: Path) -> None:
    fakes.write(tmp_path)
    spec = fakes.episodic()
    moved = fakes.dataset().model_copy(update={"fingerprint": "f" * 64})
    with pytest.raises(ValidationFailed, match="other images"):
        ResultStore(tmp_path, fakes.facts(), moved, spec).earlier()
    other = fakes.facts(features="cls token")
    with pytest.raises(ValidationFailed, match="other features"):
        ResultStore(tmp_path, other, fakes.dataset(), spec).earlier()


def test_shards_of_one_folder_come_together(tmp_path: Path) -> None:
    target = open_store(tmp_path)
    even = [i for i in range(40) if i // BLOCK % 2 == 0]
    odd = [i for i in range(40) if i // BLOCK % 2 == 1]
    run(target, range(40))
    part = target.finish(even, provenance=fakes.provenance())
    assert part.flags == ("custom", "shard")
    assert blocks_done(target) == {1, 3}
    assert target.finish(odd, provenance=fakes.provenance()) == fakes.write(tmp_path / "whole")


def test_limited_only_while_episodes_are_missing(tmp_path: Path) -> None:
    target = open_store(tmp_path)
    run(target, range(8))
    few = target.finish(range(8), limited=True, provenance=fakes.provenance())
    assert few.flags == ("limited", "custom")
    run(target, range(40), [1, 2, 3, 4])
    whole = target.finish(range(40), limited=True, provenance=fakes.provenance())
    assert whole.flags == ("custom",)


def test_flags_keep_one_order() -> None:
    data = fakes.dataset(flags=("custom", "subset"))
    index = np.array([0, 2])
    flags = result_flags(data, fakes.episodic(), index, limited=True)
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
