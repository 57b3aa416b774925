"""`fsbench leaderboard stats` from submitted results to a table and to JSON."""

import json
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support import cli, fakes

from fsbench.api.submit import submit

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


def read(capsys: pytest.CaptureFixture[str], board: Path) -> dict[str, list[dict[str, Any]]]:
    """Table -> its rank intervals."""
    assert call("--board", board, "--json") == 0
    return dict(json.loads(capsys.readouterr().out))


def test_everything_that_the_board_allows(
    board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The critical difference of 3 entries over 2 columns is 2.343 sqrt(3 4 / 12) by Demsar."""
    intervals = read(capsys, board)
    fields = ("name", "tier", "low", "rank", "high")
    assert [tuple(map(e.get, fields)) for e in intervals["linear n_query=5 ibm 32px"]] == [
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
    assert [*read(capsys, tmp_path / "board").values()] == [[]]
    assert call("--board", tmp_path / "board", "--figures", tmp_path / "figures") == 0
    assert not (tmp_path / "figures").exists()
    assert "Not computed: it takes two ranked entries" in capsys.readouterr().err
    assert call("--board", tmp_path / "nowhere") == 2
