"""Damage and other processes: no block that is not what was computed ever reaches a result."""

from pathlib import Path
from typing import Any

import pytest
from support import fakes
from test_results.test_store import run

from fsbench.results import ResultPlace, ResultStore, assembly


class Heard:
    """A Reporter that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def log(self, text: str) -> None:
        self.lines.append(text)

    task: Any = None


def cell(root: Path, report: Any) -> ResultPlace:
    store = ResultStore(root, report=report)
    return store.cell(fakes.facts(), fakes.dataset(), fakes.episodic())


@pytest.mark.parametrize("damage", ["outcome", "cut"])
def test_a_damaged_block_is_dropped_and_said(damage: str, tmp_path: Path) -> None:
    """A changed outcome makes a valid Parquet file of other records."""
    heard = Heard()
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
    assert again.holds(range(8))
    assert not again.holds(range(9))
    assert again.journal.files() == [good]
    assert [str(bad) in line and "damaged" in line for line in heard.lines] == [True]


@pytest.mark.parametrize("when", ["before the records", "before the result"])
def test_a_result_killed_while_it_grew_keeps_its_episodes(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another part of the cell is merged; the part that stood there is in the next result too."""
    target, even = cell(tmp_path, Heard()), [*range(8), *range(16, 24)]
    run(target, range(24))
    target.finish(even, provenance=fakes.provenance())

    class Killed(BaseException):
        pass

    def kill(*_: object) -> None:
        raise Killed

    if when == "before the records":
        monkeypatch.setattr(
            assembly.parquet,
            "write_records",
            kill_unless_kept(assembly.parquet.write_records, kill),
        )
    else:
        monkeypatch.setattr(assembly, "write_record", kill)
    with pytest.raises(Killed):
        target.finish(range(8, 16), provenance=fakes.provenance())
    monkeypatch.undo()
    again = cell(tmp_path, Heard())
    assert again.earlier() is None
    assert again.holds(range(24))
    assert again.finish(range(8, 16), provenance=fakes.provenance()).score.n == 24
    assert again.journal.files() == []


def kill_unless_kept(write: Any, kill: Any) -> Any:
    """Writes what goes to the hidden journal, dies at what is seen."""
    return lambda path, records: (write if path.parent.name.startswith(".") else kill)(
        path, records
    )


def test_a_result_that_is_being_replaced_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that meets records without their result looks again under the lock."""
    target = cell(tmp_path, Heard())
    run(target, range(8))
    target.finish(range(8), provenance=fakes.provenance())
    whole = target.path.read_bytes()
    target.path.write_bytes(whole[:-40])
    real = target.lock()

    class Done:
        """The lock, free once the other process has ended its work."""

        def __enter__(self) -> None:
            real.acquire()
            target.path.write_bytes(whole)

        def __exit__(self, *_: object) -> None:
            real.release()

    monkeypatch.setattr(target, "lock", Done)
    assert target.complete(range(8))
