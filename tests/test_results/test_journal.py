"""Damage and other processes: no block that is not what was computed ever reaches a result."""

from pathlib import Path
from typing import Any

import pytest
from support import fakes
from support.reporters import Recorder
from test_results.test_store import run

from fsbench.results.store import ResultStore


def cell(root: Path, report: Any) -> ResultStore:
    return ResultStore(root, fakes.facts(), fakes.dataset(), fakes.episodic(), report=report)


@pytest.mark.parametrize("damage", ["outcome", "cut"])
def test_a_damaged_block_is_dropped_and_said(damage: str, tmp_path: Path) -> None:
    """A changed outcome makes a valid file of other records."""
    heard = Recorder()
    target = cell(tmp_path, heard)
    run(target, range(16))
    good, bad = target.journal.files()
    if damage == "outcome":
        other = cell(tmp_path / "other", heard)
        run(other, range(16), [1], accuracy=0.9)
        bad.write_bytes(other.journal.files()[0].read_bytes())
    else:
        bad.write_bytes(bad.read_bytes()[:-9])
    again = cell(tmp_path, heard)
    assert again.missing_blocks({0: range(8)}) == []
    assert again.missing_blocks({0: range(9)}) == [0]
    assert again.journal.files() == [good]
    assert [str(bad) in line and "damaged" in line for line in heard.lines] == [True]
