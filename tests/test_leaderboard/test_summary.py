"""`fsbench leaderboard stats` from submitted results to a table and to JSON."""

import json
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support import cli, fakes

from fsbench.api.submit import submit
from leaderboard.summary import BoardStatistics

ACCURACIES = {"best": 0.9, "middle": 0.6, "last": 0.3}


call = partial(cli.call, "leaderboard", "stats")


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Three entries far apart at 1 and 5 shots, and one that lacks a column."""
    for name, accuracy in ACCURACIES.items():
        for shots in (1, 5):
            fakes.write(tmp_path / name, accuracy, name=name, shots=shots)
    fakes.write(tmp_path / "half", name="half")
    for name in (*ACCURACIES, "half"):
        declared = fakes.DECLARATION.model_copy(update={"name": name})
        submit(tmp_path / name, tmp_path / "board", declared)
    return tmp_path / "board"


def read(capsys: pytest.CaptureFixture[str], board: Path) -> BoardStatistics:
    assert call("--board", board, "--json") == 0
    (summary,) = json.loads(capsys.readouterr().out)
    return BoardStatistics.model_validate(summary)


def test_everything_that_the_board_allows(
    board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The critical difference of 3 entries over 2 columns is 2.343 sqrt(3 4 / 12) by Demsar."""
    summary = read(capsys, board)
    assert summary.track == "linear n_query=5 ibm 32px"
    assert [(e.name, e.tier, e.low, e.rank, e.high) for e in summary.rank_intervals] == [
        ("best", 1, 1, 1, 1),
        ("middle", 2, 2, 2, 2),
        ("last", 3, 3, 3, 3),
    ]
    assert call("--board", board, "--figures", tmp_path / "figures") == 0
    shown = capsys.readouterr()
    (line,) = (text for text in shown.out.splitlines() if "middle" in text and "to" in text)
    assert line.split()[:2] == ["middle", "2"]
    assert line.split()[3:] == ["2", "2", "to", "2"]
    assert "One pretraining seed per row" in shown.err
    assert "wrote" in shown.err
    (path,) = (tmp_path / "figures").iterdir()
    assert path.name == "linear-n_query-5-ibm-32px-ranks.svg"
    texts = [(text or "").strip() for text in ElementTree.parse(path).getroot().itertext()]
    assert {"best", "middle", "last", "1.00", "2.00", "3.00"} <= set(texts)
    assert "critical difference 2.34" in texts
    assert "half" not in texts


def test_a_board_of_one_entry_and_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fakes.write(tmp_path / "a")
    submit(tmp_path / "a", tmp_path / "board", fakes.DECLARATION)
    capsys.readouterr()
    summary = read(capsys, tmp_path / "board")
    assert summary.rank_intervals == ()
    assert summary.notes == (
        "Not computed: rank intervals of one ranked entry (they need two or more).",
    )
    assert call("--board", tmp_path / "board", "--figures", tmp_path / "figures") == 0
    assert not (tmp_path / "figures").exists()
    assert call("--board", tmp_path / "nowhere") == 2
