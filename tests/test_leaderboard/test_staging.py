"""A process killed while it replaces an entry loses nothing: the next one puts things right."""

import os
import signal
from pathlib import Path

import pytest
from support import fakes
from support.fakes import DECLARATION

from fsbench.api.submit import submit
from leaderboard import store
from leaderboard.intake.submission import read_submissions
from leaderboard.store import Board


def mean(board: Path, name: str = "entry") -> float:
    return Board.open(board).entry(name).cells[0].result.score.mean


def killed(results: Path, board: Path, renames: int) -> None:
    """Replace the entry in a process that dies before its rename number `renames` + 1."""
    pid = os.fork()
    if pid == 0:
        real, done = Path.rename, []

        def rename(self: Path, target: Path) -> Path:
            if len(done) == renames:
                os.kill(os.getpid(), signal.SIGKILL)
            done.append(target)
            return real(self, target)

        def clear(*_: object) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        Path.rename = rename  # type: ignore[method-assign]
        store.settle_staging = clear
        submit(results, board, DECLARATION, replace=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize(("renames", "expected"), [(0, "old"), (1, "old"), (2, "new")])
def test_the_next_submission_recovers(renames: int, expected: str, tmp_path: Path) -> None:
    board = tmp_path / "board"
    means = {}
    for which, accuracy in (("old", 0.3), ("new", 0.9)):
        means[which] = fakes.write(tmp_path / which, accuracy).score.mean
    submit(tmp_path / "old", board, DECLARATION)
    killed(tmp_path / "new", board, renames)
    assert len(store.list_leftovers(board)) == 1
    assert Board.open(board).names() == ([] if renames == 1 else ["entry"])
    fakes.write(tmp_path / "other", name="b")
    submit(tmp_path / "other", board, DECLARATION.model_copy(update={"name": "other"}))
    assert Board.open(board).names() == ["entry", "other"]
    assert mean(board) == means[expected]
    assert store.list_leftovers(board) == []


def test_what_took_the_place_stays(tmp_path: Path) -> None:
    """An entry of the same name in another letter case is the same on some file systems."""
    board = tmp_path / "board"
    (board / "ENTRY").mkdir(parents=True)
    (board / ".staging-x" / "old" / "entry").mkdir(parents=True)
    store.settle_staging(board, board / ".staging-x")
    assert [path.name for path in board.iterdir()] == ["ENTRY"]


@pytest.mark.parametrize("name", ["new", "old", "replaced"])
def test_no_name_collides_with_the_staging_folders(name: str, tmp_path: Path) -> None:
    fakes.write(tmp_path / "r")
    board = Board.open(tmp_path / "board", new=True)
    for _ in range(2):
        board.add(
            read_submissions(tmp_path / "r", DECLARATION.model_copy(update={"name": name})), True
        )
    assert board.names() == [name]
