"""Shards merge to what one process writes, or are refused by name."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import fakes

from fsbench.core.errors import ValidationFailed
from fsbench.results.assembly import merge

ALL = range(fakes.N_EPISODES)


def shard(root: Path, index: Iterable[int], accuracy: float = 0.6, **changes: object) -> Path:
    fakes.write(root, accuracy, index=index, **changes)  # type: ignore[arg-type]
    return root


@settings(max_examples=15)
@given(owner=st.lists(st.integers(0, 3), min_size=40, max_size=40), order=st.permutations(range(4)))
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
    assert [r.provenance.seconds for r in merged] == [pytest.approx(1.5 * len(parts))]
    assert fakes.digests(root / "out") == fakes.digests(root / "whole")


@pytest.mark.parametrize(
    ("index", "changes", "message"),
    [
        ([*range(24, 30), 35, 39], {}, r"12 episodes in 20-38 .*missing"),
        (range(15, 40), {"accuracy": 0.9}, r"episodes? in 1.* differ between"),
        (range(20, 40), {"threads": 2}, "threads: 1 -> 2"),
        (range(20, 40), {"batch_size": 7}, "batch size: default -> 7"),
        (range(20, 40), {"cpu_capability": "AVX512"}, "cpu capability: AVX2 -> AVX512"),
        (range(20, 40), {"device": "cuda"}, "device: cpu -> cuda"),
        (range(20, 40), {"packages": {"torch": "2.16.0"}}, "torch: 2.15.0 -> 2.16.0"),
    ],
)
def test_parts_that_do_not_fit_are_refused(
    index: Iterable[int], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    a, b = shard(tmp_path / "a", range(20)), shard(tmp_path / "b", index, **changes)
    with pytest.raises(ValidationFailed, match=message):
        merge([a, b], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_equal_parts_overlap_and_merged_results_are_append_only(tmp_path: Path) -> None:
    a, b = shard(tmp_path / "a", range(25)), shard(tmp_path / "b", range(20, 40))
    for _ in range(2):
        assert merge([a, b], tmp_path / "out")[0].score.n == 40
    c = shard(tmp_path / "c", ALL, 0.1)
    with pytest.raises(ValidationFailed, match="exists with other outcomes"):
        merge([c, c], tmp_path / "out")
