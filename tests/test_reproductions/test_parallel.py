"""The two processes that share the runs of a claim."""

from __future__ import annotations

import operator
import tempfile
from pathlib import Path

import pytest

from fsbench.reproductions import _parallel


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert _parallel.run_all(abs, [-3, 1, -2], "jobs") == [3, 1, 2]


def test_a_worker_makes_scratch_folders_where_it_is_told_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert _parallel.run_all(operator.call, [tempfile.gettempdir], "place") == [str(tmp_path)]


@pytest.mark.skipif(_parallel.in_memory() is None, reason="no folder in memory with room")
def test_a_worker_else_makes_them_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert _parallel.run_all(operator.call, [tempfile.gettempdir], "place") == [_parallel.MEMORY]


def test_memory_without_room_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_parallel, "MEMORY", str(tmp_path))
    assert _parallel.in_memory() == str(tmp_path)
    monkeypatch.setattr(_parallel, "ROOM", 2**62)
    assert _parallel.in_memory() is None
    monkeypatch.setattr(_parallel, "MEMORY", str(tmp_path / "missing"))
    monkeypatch.setattr(_parallel, "ROOM", 0)
    assert _parallel.in_memory() is None
