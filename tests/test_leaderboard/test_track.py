"""Transductive results never stand beside inductive ones on a board."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsbench.errors import ValidationFailed
from fsbench.results import ResultStore, table
from fsbench.schema import Result
from fsbench.specs import EpisodicSpec
from leaderboard.board import Board, BoardFile, Column
from leaderboard.candidate import collect
from leaderboard.standing import views
from leaderboard.submission import submit
from tests import fakes
from tests.fakes import DECLARATION

LINEAR = "folder-blobs:5w1s/linear@ibm 32px"
CENTROID = "folder-blobs:5w1s/centroid@ibm 32px"
SOFT = "folder-blobs:5w1s/soft_kmeans@ibm 32px transductive"


def write(root: Path, adaptation: str) -> Result:
    given = fakes.episodic().model_dump(exclude={"head"}) | {"adaptation": adaptation}
    spec, data = EpisodicSpec.model_validate(given), fakes.dataset()
    cell = ResultStore(root).cell(fakes.facts(), data, "", spec)
    cell.write_block(0, fakes.episodes(spec, data, range(fakes.N_EPISODES), 0.5, adaptation))
    return cell.finish(range(fakes.N_EPISODES), provenance=fakes.provenance())


def board(folder: Path, transductive: bool) -> Path:
    folder.mkdir()
    text = BoardFile(name="b", transductive=transductive).model_dump_json()
    (folder / "board.json").write_text(text)
    return folder


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    for adaptation in ("linear", "centroid", "soft_kmeans"):
        write(tmp_path / "r", adaptation)
    return tmp_path / "r"


def columns(folder: Path) -> tuple[str, ...]:
    return views(folder)[0].ranking.columns


def test_a_board_takes_what_is_of_its_track(tmp_path: Path, mixed: Path) -> None:
    submit(mixed, tmp_path / "plain", DECLARATION)
    assert columns(tmp_path / "plain") == (CENTROID, LINEAR)
    submit(mixed, board(tmp_path / "other", transductive=True), DECLARATION)
    assert columns(tmp_path / "other") == (SOFT,)


@pytest.mark.parametrize(("adaptation", "transductive"), [("soft_kmeans", False), ("ridge", True)])
def test_an_entry_of_the_other_track_is_refused(
    tmp_path: Path, adaptation: str, transductive: bool
) -> None:
    write(tmp_path / "r", adaptation)
    target = board(tmp_path / "board", transductive)
    with pytest.raises(ValidationFailed, match=r"\[track\].*(in|trans)ductive results only"):
        submit(tmp_path / "r", target, DECLARATION)
    assert [path.name for path in target.iterdir() if path.name[0] != "."] == ["board.json"]


def test_what_was_put_there_by_hand_is_not_ranked(tmp_path: Path, mixed: Path) -> None:
    Board.open(tmp_path / "board").add(collect(mixed, DECLARATION))
    assert columns(tmp_path / "board") == (CENTROID, LINEAR)


@pytest.mark.parametrize("transductive", [False, True])
def test_named_columns_are_of_one_track(transductive: bool) -> None:
    both = tuple(
        Column(name=name, spec_digest="a" * 64, fingerprint="b" * 64) for name in (LINEAR, SOFT)
    )
    with pytest.raises(ValueError, match="transductive"):
        BoardFile(name="b", transductive=transductive, columns=both)
    BoardFile(name="b", transductive=transductive, columns=both[transductive:][:1])


def test_tables_mark_them(mixed: Path, tmp_path: Path) -> None:
    results = [write(mixed, name) for name in ("linear", "soft_kmeans")]
    _, rows, notes = table.table(results)
    assert [row[0] for row in rows][:2] == [LINEAR, SOFT]
    assert "transductive: sees all queries at once; not comparable with the other rows" in notes
    assert not any("transductive" in note for note in table.table(results[:1])[2])
