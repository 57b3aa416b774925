"""A board of one's own becomes a version: what it names, what it refuses, what readers are told."""

import json
from pathlib import Path

import pytest
from support import fakes
from support.cli import CommandLine
from support.fakes import add_entry

from fsbench.core.errors import UsageError, ValidationFailed
from leaderboard.freeze import freeze_board
from leaderboard.record import BoardFile
from leaderboard.repository import init_board
from leaderboard.rules.board import inspect_board
from leaderboard.store import Board
from leaderboard.tables import rank_board

MOVED = fakes.official().model_copy(update={"fingerprint": "f" * 64})


def edit(board: Path, **changes: object) -> None:
    path = board / "board.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Two entries of the official images, both also on images of their own."""
    folder = tmp_path / "mine"
    for name in "ab":
        fakes.write(tmp_path / f"results-{name}", name=name)
        add_entry(folder, name, data=fakes.official())
    return folder


def test_the_columns_that_entries_have_are_frozen(board: Path, cli: CommandLine) -> None:
    decided = {"controls": ["a"], "pooled": ["b"], "cleared": [["a", "b"]]}
    edit(board, **decided)
    shown = cli("leaderboard", "freeze", "--board", board).out
    file = Board.open(board).file
    assert shown == f"{board}: mine-1 (2 columns, {file.date})\n"
    assert (file.name, file.version) == ("mine", 1)
    content = json.loads((board / "board.json").read_text())
    assert {name: content[name] for name in decided} == decided
    fingerprints = {str(column.name): column.fingerprint for column in file.columns or ()}
    assert fingerprints == {
        "folder-blobs:5w1s/linear@ibm 32px n_query=5": None,
        "toy_tiles:5w1s/linear@ibm 32px n_query=5": fakes.official().fingerprint,
    }
    assert file.frozen == file.content_digest
    assert inspect_board(board).problems == []
    shown = {view.track and view.track.data: len(view.contenders) for view in rank_board(board)}
    assert shown == {"official": 2, "subset": 2}
    with pytest.raises(ValidationFailed, match="other images"):
        add_entry(board, "c", data=MOVED)
    with pytest.raises(UsageError, match="frozen already, as mine-1"):
        freeze_board(board, 2)
    edit(board, date="2000-01-01")
    with pytest.raises(ValidationFailed, match="frozen board mine-1 was changed: its digest"):
        Board.open(board)


def test_columns_that_are_not_clear_are_refused(tmp_path: Path) -> None:
    board = tmp_path / "mine"
    with pytest.raises(UsageError, match="there is no board"):
        freeze_board(board)
    init_board(board)
    with pytest.raises(UsageError, match="has no columns"):
        freeze_board(board)
    add_entry(board, "a", data=fakes.official())
    with pytest.raises(ValidationFailed, match=f"other images than the board's: {'f' * 64}"):
        add_entry(board, "b", data=MOVED)
    (column,) = json.loads((board / "board.json").read_text())["columns"]
    edit(board, columns=[column, column | {"fingerprint": "f" * 64}])
    with pytest.raises(ValidationFailed, match="two columns have one name"):
        freeze_board(board)


def test_named_columns_stay_and_the_names_of_official_boards_are_theirs(board: Path) -> None:
    columns = (freeze_board(board).columns or ())[:1]
    file = BoardFile(name="chosen", columns=columns)
    (board / "board.json").write_text(file.model_dump_json())
    assert freeze_board(board, 3).title == "chosen-3"
    assert Board.open(board).file.columns == columns
    (board / "board.json").write_text(BoardFile(name="cdfsl").model_dump_json())
    with pytest.raises(UsageError, match="'cdfsl' is an official board"):
        freeze_board(board)
