"""A board of one's own becomes a version: what it names, what it refuses, what readers are told."""

import json
from pathlib import Path

import pytest
from support import fakes
from support.cli import call

from fsbench.api.submit import submit
from fsbench.core.errors import UsageError, ValidationFailed
from leaderboard.freeze import freeze_board
from leaderboard.record import BoardFile
from leaderboard.repository import init_board
from leaderboard.rules.board import inspect_board
from leaderboard.store import Board
from leaderboard.tables import rank_board


def add(board: Path, name: str, **fields: object) -> None:
    results = board.parent / f"results-{name}"
    fakes.write(results, name=name, **fields)  # type: ignore[arg-type]
    submit(results, board, fakes.DECLARATION.model_copy(update={"name": name}))


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Two entries of the official images, both also on images of their own."""
    folder = tmp_path / "mine"
    for name in "ab":
        fakes.write(tmp_path / f"results-{name}", name=name)
        add(folder, name, data=fakes.official())
    return folder


def test_the_columns_that_entries_hold_are_frozen(
    board: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = call("leaderboard", "freeze", "--board", str(board), "--about", "Two tiles.")
    file = Board.open(board).file
    said = f"{board}: mine-1 (2 columns, {file.date})\n"
    assert (code, capsys.readouterr().out) == (0, said)
    assert (file.name, file.version, file.about) == ("mine", 1, "Two tiles.")
    fingerprints = {str(column.name): column.fingerprint for column in file.columns or ()}
    assert fingerprints == {
        "folder-blobs:5w1s/linear@ibm 32px n_query=5": None,
        "toy_tiles:5w1s/linear@ibm 32px n_query=5": fakes.official().fingerprint,
    }
    assert file.frozen == file.content_digest
    assert inspect_board(board).problems == []
    shown = {view.track and view.track.data: len(view.contenders) for view in rank_board(board)}
    assert shown == {"official": 2, "subset": 2}


def test_a_version_keeps_what_its_maintainer_decided(board: Path) -> None:
    path = board / "board.json"
    decided = {"controls": ["a"], "pooled": ["b"], "cleared": [["a", "b"]]}
    path.write_text(json.dumps(json.loads(path.read_text()) | decided))
    frozen = freeze_board(board).model_dump(mode="json")
    assert {name: frozen[name] for name in decided} == decided
    assert Board.open(board).file.version == 1


def test_a_change_in_place_is_seen_and_other_images_are_refused(board: Path) -> None:
    freeze_board(board)
    other = fakes.official().model_copy(update={"fingerprint": "f" * 64})
    with pytest.raises(ValidationFailed, match="other images"):
        add(board, "c", data=other)
    with pytest.raises(UsageError, match="frozen already, as mine-1"):
        freeze_board(board, 2)
    path = board / "board.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"date": "2000-01-01"}))
    with pytest.raises(ValidationFailed, match="frozen board mine-1 was changed"):
        Board.open(board)


def test_columns_that_are_not_clear_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no board"):
        freeze_board(tmp_path / "mine")
    init_board(tmp_path / "mine")
    with pytest.raises(UsageError, match="has no columns"):
        freeze_board(tmp_path / "mine")
    add(tmp_path / "mine", "a", data=fakes.official())
    other = fakes.official().model_copy(update={"fingerprint": "f" * 64})
    with pytest.raises(ValidationFailed, match=f"other images than the board's: {'f' * 64}"):
        add(tmp_path / "mine", "b", data=other)
    path = tmp_path / "mine" / "board.json"
    file = BoardFile.model_validate_json(path.read_text())
    (column,) = file.columns or ()
    both = (column, column.model_copy(update={"fingerprint": "f" * 64}))
    path.write_text(file.model_copy(update={"columns": both}).model_dump_json())
    with pytest.raises(ValidationFailed, match="two columns have one name"):
        freeze_board(tmp_path / "mine")


def test_named_columns_stay_and_the_names_of_official_boards_are_theirs(board: Path) -> None:
    columns = (freeze_board(board).columns or ())[:1]
    file = BoardFile(name="chosen", columns=columns)
    (board / "board.json").write_text(file.model_dump_json())
    assert freeze_board(board, 3).title == "chosen-3"
    assert Board.open(board).file.columns == columns
    (board / "board.json").write_text(BoardFile(name="cdfsl").model_dump_json())
    with pytest.raises(UsageError, match="'cdfsl' is an official board"):
        freeze_board(board)
