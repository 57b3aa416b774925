"""The two processes that share the runs of a claim."""

from __future__ import annotations

import operator
import tempfile
from pathlib import Path

import pytest

from fsbench.reproductions import _pool


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert _pool.run_jobs(abs, [-3, 1, -2], "jobs") == [3, 1, 2]


def test_a_worker_uses_the_folder_of_tmpdir(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert _pool.run_jobs(operator.call, [tempfile.gettempdir], "place") == [str(tmp_path)]


@pytest.mark.skipif(_pool.find_memory_folder() is None, reason="no folder in memory with room")
def test_without_tmpdir_a_worker_uses_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert _pool.run_jobs(operator.call, [tempfile.gettempdir], "place") == [_pool.MEMORY_FOLDER]


def test_memory_without_free_space_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_pool, "MEMORY_FOLDER", str(tmp_path))
    assert _pool.find_memory_folder() == str(tmp_path)
    monkeypatch.setattr(_pool, "FREE_BYTES", 2**62)
    assert _pool.find_memory_folder() is None
    monkeypatch.setattr(_pool, "MEMORY_FOLDER", str(tmp_path / "missing"))
    monkeypatch.setattr(_pool, "FREE_BYTES", 0)
    assert _pool.find_memory_folder() is None
