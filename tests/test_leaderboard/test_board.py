"""The board folder: entries whole or not there, two submitters at once, columns, hand edits."""

import subprocess
import sys
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from support import cli, fakes, methods
from support.fakes import DECLARATION
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

ROOT = Path(__file__).resolve().parents[2]


def test_an_entry_is_a_results_folder_with_a_declaration(tmp_path: Path) -> None:
    results = [fakes.write(tmp_path / "r"), fakes.write_probe(tmp_path / "r")]
    (tmp_path / "r" / "evil.py").write_text("boom")
    submit(tmp_path / "r", tmp_path / "board", DECLARATION)
    folder = tmp_path / "board" / "entry"
    assert sorted(read(folder), key=lambda r: str(r.task)) == sorted(
        results, key=lambda r: str(r.task)
    )
    entry = EntryFile.model_validate_json((folder / "entry.json").read_text())
    assert entry.declaration == DECLARATION
    assert sorted(p.name for p in folder.iterdir()) == ["entry.json", entry.outcomes_file]
    names = sorted(p.name for p in (tmp_path / "board").iterdir() if p.name[0] != ".")
    assert names == ["board.json", "entry", "history.jsonl"]


def test_replace_leaves_nothing_of_the_old_entry(tmp_path: Path) -> None:
    fakes.write(tmp_path / "r")
    fakes.write_probe(tmp_path / "r")
    submit(tmp_path / "r", tmp_path / "board", DECLARATION)
    fakes.write(tmp_path / "new", 0.9)
    submit(tmp_path / "new", tmp_path / "board", DECLARATION, replace=True)
    assert [str(r.task) for r in read(tmp_path / "board")] == ["folder-blobs:5w1s/linear@ibm"]
    assert len(list((tmp_path / "board" / "entry").iterdir())) == 2


def test_a_submitter_waits_for_another(tmp_path: Path) -> None:
    fakes.write(tmp_path / "r")
    board = Board.open(tmp_path / "board", new=True)
    entrants = read_submissions(tmp_path / "r", DECLARATION)
    with board.lock():
        waiting = Thread(target=board.add, args=(entrants,))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        assert board.names() == []
    waiting.join(30)
    assert board.names() == ["entry"]


def test_submitters_at_once_lose_nothing(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from fsbench.api.submit import submit\n"
        "from support.fakes import DECLARATION as d\n"
        "for i in range(4): submit(Path(sys.argv[1]), Path(sys.argv[2]),"
        " d.model_copy(update={'name': f'{sys.argv[3]}{i}'}))"
    )
    runs = []
    for who in "abc":
        fakes.write(tmp_path / who, name=who)
        command = [sys.executable, "-c", script, str(tmp_path / who), str(tmp_path / "board"), who]
        runs.append(subprocess.Popen(command, cwd=ROOT / "tests", stderr=subprocess.PIPE))
    assert [(run.communicate()[1], run.returncode) for run in runs] == [(b"", 0)] * 3
    board = Board.open(tmp_path / "board")
    assert board.names() == sorted(f"{who}{i}" for who in "abc" for i in range(4))
    assert all(len(entry.loaded) == 1 for entry in board.entries())


def test_a_failed_write_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.write(tmp_path / "r")

    def full(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("leaderboard.store.write_entry", full)
    with pytest.raises(OSError, match="disk full"):
        submit(tmp_path / "r", tmp_path / "board", DECLARATION)
    assert {p.name for p in (tmp_path / "board").iterdir()} <= {".lock"}


def test_an_entry_edited_or_renamed_on_the_board_is_named(tmp_path: Path) -> None:
    fakes.write(tmp_path / "r")
    submit(tmp_path / "r", tmp_path / "board", DECLARATION)
    home = tmp_path / "board" / "entry"
    home.rename(tmp_path / "board" / "other")
    with pytest.raises(ValidationFailed, match="declares the name 'entry'"):
        rank_board(tmp_path / "board")
    (tmp_path / "board" / "other").rename(home)
    edit(home, lambda content: content["results"][0]["score"].update(mean=0.99))
    with pytest.raises(ValidationFailed, match=f"{home}:folder-blobs.*the file says 99.00"):
        rank_board(tmp_path / "board")


def test_named_columns_choose_and_rank(tmp_path: Path) -> None:
    one = fakes.write(tmp_path / "r")
    fakes.write(tmp_path / "r", shots=5)
    file = BoardFile(name="board", columns=(identify_column(one),))
    write_record(tmp_path / "board" / "board.json", file)
    submit(tmp_path / "r", tmp_path / "board", DECLARATION)
    view, extra = rank_board(tmp_path / "board")
    assert view.ranking.columns == (str(one.column),)
    assert view.ranking.tiers[0][0].overall == pytest.approx(one.score.mean)
    assert extra.track is not None
    assert (extra.track.extra, extra.ranking.tiers) == (True, ())


def test_bad_boards_are_named(tmp_path: Path) -> None:
    (tmp_path / "board.json").write_text('{"name": "x", "colour": 1}')
    with pytest.raises(ValidationFailed, match=r"board\.json.*colour"):
        Board.open(tmp_path)
    with pytest.raises(UsageError, match="is a file"):
        Board.open(tmp_path / "board.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="there is no board at"):
        Board.open(tmp_path / "empty")


@pytest.mark.parametrize("words", [("show",), ("check",), ("methods",), ("submit",)])
def test_a_folder_around_a_board_is_no_board(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fakes.write(tmp_path / "r")
    study, inside = tmp_path / "study", tmp_path / "study" / "entries"
    submit(tmp_path / "r", inside, DECLARATION)
    if words == ("submit",):
        with pytest.raises(UsageError, match="contains one") as error:
            submit(tmp_path / "r", study, DECLARATION)
        assert error.value.fix == f"give --board {inside}"
    else:
        assert cli.call("leaderboard", *words, "--board", str(study)) == 2
        assert f"give --board {inside}" in capsys.readouterr().err
    assert [path.name for path in study.iterdir()] == ["entries"]


def seeds(results: Path, *numbers: int, shots: tuple[int, ...] = (1,)) -> Path:
    """Results of these seeds of one recipe."""
    for seed in numbers:
        for k in shots:
            fakes.write(results, shots=k, backbone=methods.facts("seal", seed), name=str(seed))
    return results


def test_seeds_are_named_and_a_replacement_is_recorded(tmp_path: Path) -> None:
    board = tmp_path / "board"
    submit(seeds(tmp_path / "a", 0, 1), board, DECLARATION)
    (before,) = Board.open(board).entries()
    assert [network.name for network in before.networks] == ["entry seed 0", "entry seed 1"]
    heard = Recorder()
    more = seeds(tmp_path / "b", 1, 2, 3, shots=(1, 5))
    submit(more, board, DECLARATION, replace=True, progress=heard)
    five = "folder-blobs:5w5s/linear@ibm 32px n_query=5"
    assert heard.lines == [f"entry replaced; came: column {five}, seed 2, seed 3; went: seed 0"]
    events = [(event.event, event.entry) for event in Board.open(board).history.events]
    assert events == [("added", "entry"), ("replaced", "entry")]


def test_seeds_of_one_entry_have_the_same_columns(tmp_path: Path) -> None:
    results = seeds(tmp_path / "a", 0, shots=(1, 5))
    seeds(results, 1)
    with pytest.raises(ValidationFailed, match="seed 1 lacks folder-blobs:5w5s/linear@ibm 32px"):
        submit(results, tmp_path / "board", DECLARATION)


def test_a_removed_entry_is_gone_and_does_not_come_back(tmp_path: Path) -> None:
    board = tmp_path / "board"
    for name in "ab":
        fakes.write(tmp_path / name, name=name)
        submit(tmp_path / name, board, DECLARATION.model_copy(update={"name": name}))
    remove = partial(cli.call, "leaderboard", "remove", "--board", board)
    assert remove("a") == 2
    assert remove("nobody", "--reason", "x") == 2
    assert remove("a", "--reason", " ") == 2
    assert remove("a", "--reason", "copied from a paper") == 0
    assert [entry.name for entry in rank_board(board)[0].ranking.entries] == ["b"]
    last = Board.open(board).history.events[-1]
    assert (last.event, last.entry, last.reason) == ("removed", "a", "copied from a paper")
    again = DECLARATION.model_copy(update={"name": "new-name"})
    with pytest.raises(ValidationFailed, match="removed these outcomes as 'a': copied from"):
        submit(tmp_path / "a", board, again)
    fakes.write(tmp_path / "a", shots=5)
    submit(tmp_path / "a", board, again)
    assert Board.open(board).names() == ["b", "new-name"]
