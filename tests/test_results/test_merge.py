"""Shards merge to what one process writes, or are refused by name."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fakes
from support.reading import episode_records

from fsbench.core.errors import ValidationFailed
from fsbench.results.assembly import merge
from fsbench.results.outcomes import digest_records
from fsbench.results.verification import read_loaded

ALL = range(fakes.N_EPISODES)


def shard(root: Path, index: Iterable[int], accuracy: float = 0.6, **changes: object) -> Path:
    fakes.write(root, accuracy, index=index, **changes)  # type: ignore[arg-type]
    return root


def digest_of(root: Path) -> str:
    """Of the outcomes of the only result."""
    return digest_records(episode_records(root))


def test_two_shards_equal_one_process(tmp_path: Path) -> None:
    whole = fakes.write(tmp_path / "whole")
    a = shard(tmp_path / "a", [i for i in ALL if i // 8 % 2 == 0])
    b = shard(tmp_path / "b", [i for i in ALL if i // 8 % 2 == 1])
    fakes.write_probe(a)
    fakes.write_probe(b)
    fakes.write(a, name="other")
    merged = merge([a, b], tmp_path / "out")
    assert {str(r.task): r.flags for r in merged}["folder-blobs:probe"] == ("custom", "derived")
    mine = next(r for r in merged if r.backbone.ref == "run:runs/a" and r.task.n_shot == 1)
    assert mine.model_copy(update={"provenance": whole.provenance}) == whole
    cells = read_loaded(tmp_path / "out" / "a")
    joined = next(c for c in cells if c.result.task.n_shot == 1)
    assert digest_records(joined.records) == digest_of(tmp_path / "whole")
    assert mine.provenance.seconds == 3.0


@settings(max_examples=15, deadline=None)
@given(
    owner=st.lists(st.integers(0, 3), min_size=40, max_size=40),
    order=st.permutations(range(4)),
)
def test_any_cut_in_any_order_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, owner: list[int], order: list[int]
) -> None:
    root = tmp_path_factory.mktemp("merge")
    parts = [p for p in order if p in owner]
    if len(parts) < 2:
        return
    paths = [shard(root / str(p), [i for i in ALL if owner[i] == p]) for p in parts]
    merged = merge(paths, root / "out")
    fakes.write(root / "whole")
    assert len(merged) == 1
    assert digest_of(root / "out") == digest_of(root / "whole")


def test_gaps_are_named(tmp_path: Path) -> None:
    a = shard(tmp_path / "a", range(10))
    b = shard(tmp_path / "b", [*range(14, 20), 30, 39])
    with pytest.raises(ValidationFailed, match=r"episodes 10-13, 20-29, 31-38 .*missing"):
        merge([a, b], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_overlap_must_be_equal(tmp_path: Path) -> None:
    a = shard(tmp_path / "a", range(25))
    b = shard(tmp_path / "b", range(20, 40))
    assert merge([a, b], tmp_path / "out")[0].score.n == 40
    c = shard(tmp_path / "c", range(20, 40), accuracy=0.9)
    with pytest.raises(ValidationFailed, match=r"episodes 2.* differ between"):
        merge([a, c], tmp_path / "other")


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("threads", 2, "threads: 1 -> 2"),
        ("batch_size", 7, "batch size: default -> 7"),
        ("cpu_capability", "AVX512", "cpu capability: AVX2 -> AVX512"),
        ("device", "cuda", "device: cpu -> cuda"),
        ("packages", {"torch": "2.16.0"}, "torch: 2.15.0 -> 2.16.0"),
    ],
)
def test_other_environments_are_refused(
    field: str, value: object, named: str, tmp_path: Path
) -> None:
    a = shard(tmp_path / "a", range(20))
    b = shard(tmp_path / "b", range(20, 40), **{field: value})
    with pytest.raises(ValidationFailed, match=named):
        merge([a, b], tmp_path / "out")


def test_merged_results_are_append_only(tmp_path: Path) -> None:
    a, b = shard(tmp_path / "a", range(20)), shard(tmp_path / "b", range(20, 40))
    merge([a, b], tmp_path / "out")
    merge([a, b], tmp_path / "out")
    fakes.write(tmp_path / "c", 0.1)
    with pytest.raises(ValidationFailed, match="exists with other outcomes"):
        merge([tmp_path / "c", tmp_path / "c"], tmp_path / "out")
