"""A process killed while it replaces an entry leaves the old one or the new one, whole."""

import os
import signal
from pathlib import Path
from typing import Literal

import pytest
from support import fakes
from support.fakes import DECLARATION, add_entry
from support.reading import read

from fsbench.api.submit import submit
from fsbench.core.io import TEMPORARY
from leaderboard import store
from leaderboard.history import Event, History
from leaderboard.rules.board import inspect_board
from leaderboard.store import Board


def killed(results: Path, board: Path, files: int) -> None:
    """Replace the entry in a process that dies after so many of its files: outcomes, entry.json."""
    pid = os.fork()
    if pid == 0:
        real, done = Path.replace, []

        def replace(self: Path, target: Path) -> Path:
            if len(done) == files:
                os.kill(os.getpid(), signal.SIGKILL)
            done.append(target)
            return real(self, target)

        def record(*_: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        Path.replace = replace  # type: ignore[method-assign, assignment]
        store.append_lines = record
        submit(results, board, DECLARATION, replace=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize(("files", "expected"), [(0, "old"), (1, "old"), (2, "new")])
def test_an_entry_is_whole_and_the_next_submission_records_it(
    files: int, expected: str, tmp_path: Path
) -> None:
    board, means = tmp_path / "board", {}
    for which, accuracy in (("old", 0.3), ("new", 0.9)):
        means[which] = fakes.write(tmp_path / which, accuracy).score.mean
    submit(tmp_path / "old", board, DECLARATION)
    killed(tmp_path / "new", board, files)
    assert read(board)[0].score.mean == means[expected]
    add_entry(board, "other")
    events = [(event.event, event.entry) for event in Board.open(board).history.events]
    replaced = [("replaced", "entry")] * (expected == "new")
    assert events == [("added", "entry"), *replaced, ("added", "other")]
    submit(tmp_path / "new", board, DECLARATION, replace=True)
    assert read(board / "entry")[0].score.mean == means["new"]
    problems = inspect_board(board).problems
    assert all(TEMPORARY in problem.text for problem in problems), "deleted a day later"


def test_an_entry_is_dated_by_its_first_event() -> None:
    """By the last one a replaced entry would be later than what its weights failed before."""

    def event(kind: Literal["added", "replaced", "removed"], month: int) -> Event:
        date = f"2026-{month:02}-01T00:00:00+00:00"
        return Event(date=date, event=kind, entry="a", entry_digest="0" * 64, outcomes="1" * 64)

    events = (event("added", 1), event("replaced", 2))
    assert History(events).added == {"a": "2026-01-01T00:00:00+00:00"}
    again = (*events, event("removed", 3), event("added", 4))
    assert History(again).added == {"a": "2026-04-01T00:00:00+00:00"}
