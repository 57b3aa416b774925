"""The board folder: entries whole or not there, one submitter at a time, columns, hand edits."""

from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from support import cli, fakes, methods
from support.fakes import DECLARATION, add_entry
from support.forged import edit
from support.reading import read
from support.reporters import Recorder

from fsbench.api.submit import submit
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import write_record
from fsbench.results.entry import EntryFile
from leaderboard.record import BoardFile, identify_column
from leaderboard.store import Board
from leaderboard.submission import read_submissions
from leaderboard.tables import rank_board

FIVE = "folder-blobs:5w5s/linear@ibm 32px n_query=5"


@pytest.fixture
def board(tmp_path: Path) -> Path:
    return tmp_path / "board"


def test_an_entry_is_a_results_folder_with_a_declaration(board: Path, tmp_path: Path) -> None:
    results = [fakes.write(tmp_path / "r"), fakes.write_probe(tmp_path / "r")]
    (tmp_path / "r" / "evil.py").write_text("boom")
    submit(tmp_path / "r", board, DECLARATION)
    entry = EntryFile.model_validate_json((board / "entry" / "entry.json").read_text())
    assert entry.declaration == DECLARATION
    assert {str(r.task): r for r in read(board)} == {str(r.task): r for r in results}
    files = {path.relative_to(board).as_posix() for path in board.rglob("*") if path.is_file()}
    assert files - {".lock"} == {
        *("board.json", "history.jsonl", "entry/entry.json", f"entry/{entry.outcomes_file}")
    }


def test_a_submitter_waits_for_another(board: Path, tmp_path: Path) -> None:
    fakes.write(tmp_path / "r")
    opened = Board.open(board, new=True)
    with opened.lock():
        submissions = read_submissions(tmp_path / "r", DECLARATION)
        waiting = Thread(target=opened.add, args=(submissions,))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        assert opened.names() == []
    waiting.join(30)
    assert opened.names() == ["entry"]


def test_a_failed_write_leaves_no_trace(board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("leaderboard.store.write_entry", fail)
    with pytest.raises(OSError, match="disk full"):
        add_entry(board)
    assert {path.name for path in board.iterdir()} <= {".lock"}


def test_an_entry_edited_or_renamed_on_the_board_is_named(board: Path) -> None:
    add_entry(board)
    home = (board / "entry").rename(board / "other")
    with pytest.raises(ValidationFailed, match="declares the name 'entry'"):
        rank_board(board)
    home = home.rename(board / "entry")
    edit(home, lambda content: content["results"][0]["score"].update(mean=0.99))
    with pytest.raises(ValidationFailed, match=f"{home}:folder-blobs.*the file says 99.00"):
        rank_board(board)


def test_named_columns_choose_and_rank(board: Path, tmp_path: Path) -> None:
    one = fakes.write(tmp_path / "one")
    write_record(board / "board.json", BoardFile(name="board", columns=(identify_column(one),)))
    add_entry(board, shots=(1, 5))
    table, extra = rank_board(board)
    assert table.ranking.columns == (str(one.column),)
    assert table.ranking.tiers[0][0].overall == pytest.approx(read(board)[0].score.mean)
    assert (extra.track.extra, extra.ranking.tiers) == (True, ())


@pytest.mark.parametrize("wrong", ["colour", "schema_version", "transductive"])
def test_a_board_file_of_another_form_is_refused(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "board.json").write_text(f'{{"name": "x", "{wrong}": 1}}')
    with pytest.raises(ValidationFailed, match=rf"board\.json.*{wrong}"):
        Board.open(tmp_path)
    with pytest.raises(UsageError, match="is a file"):
        Board.open(tmp_path / "board.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="there is no board at"):
        Board.open(tmp_path / "empty")


def test_a_folder_around_a_board_is_no_board(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study, inside = tmp_path / "study", tmp_path / "study" / "entries"
    fakes.declare(add_entry(inside).rename(tmp_path / "results"))
    for command in (("leaderboard", "show"), ("submit", tmp_path / "results")):
        assert cli.call(*command, "--board", study) == 2
        assert f"give --board {inside}" in capsys.readouterr().err
    assert [path.name for path in study.iterdir()] == ["entries"]


def write_seeds(results: Path, *numbers: int, shots: tuple[int, ...] = (1,)) -> Path:
    """Write results of these seeds of one recipe."""
    for seed in numbers:
        for k in shots:
            fakes.write(results, shots=k, backbone=methods.facts("seal", seed), name=str(seed))
    return results


def test_seeds_are_named_and_a_replacement_leaves_nothing_of_the_old_entry(
    board: Path, tmp_path: Path
) -> None:
    submit(write_seeds(tmp_path / "a", 0, 1), board, DECLARATION)
    (before,) = Board.open(board).entries()
    assert [network.name for network in before.networks] == ["entry seed 0", "entry seed 1"]
    heard, more = Recorder(), write_seeds(tmp_path / "b", 1, 2, 3, shots=(1, 5))
    submit(more, board, DECLARATION, replace=True, progress=heard)
    assert heard.lines == [f"entry replaced; came: column {FIVE}, seed 2, seed 3; went: seed 0"]
    assert len(read(board)) == 6
    assert len(list((board / "entry").iterdir())) == 2
    events = [(event.event, event.entry) for event in Board.open(board).history.events]
    assert events == [("added", "entry"), ("replaced", "entry")]


def test_seeds_of_one_entry_have_the_same_columns(board: Path, tmp_path: Path) -> None:
    results = write_seeds(write_seeds(tmp_path / "a", 0, shots=(1, 5)), 1)
    with pytest.raises(ValidationFailed, match="seed 1 lacks folder-blobs:5w5s/linear@ibm 32px"):
        submit(results, board, DECLARATION)


def test_a_removed_entry_is_gone_and_does_not_come_back(board: Path) -> None:
    results, _ = (add_entry(board, name) for name in "ab")
    remove = partial(cli.call, "leaderboard", "remove", "--board", board)
    for arguments in (("a",), ("nobody", "--reason", "x"), ("a", "--reason", " ")):
        assert remove(*arguments) == 2
    assert remove("a", "--reason", "copied from a paper") == 0
    assert [entry.name for entry in rank_board(board)[0].ranking.entries] == ["b"]
    last = Board.open(board).history.events[-1]
    assert (last.event, last.entry, last.reason) == ("removed", "a", "copied from a paper")
    with pytest.raises(ValidationFailed, match="removed these outcomes as 'a': copied from"):
        submit(results, board, DECLARATION)
    fakes.write(results, shots=5)
    submit(results, board, DECLARATION)
    assert Board.open(board).names() == ["b", "entry"]
