"""Columns that share a table, and those that share their episodes."""

import json
from pathlib import Path

import pytest
from support import fakes
from support.fakes import DECLARATION

from fsbench.api.submit import submit
from fsbench.core.errors import ValidationFailed
from fsbench.core.io import write_record
from fsbench.core.schema import Result
from fsbench.core.specs import EpisodicSpec
from fsbench.core.tasks import Track
from fsbench.results import table
from fsbench.results.store import ResultStore
from fsbench.results.verification import read_loaded
from leaderboard.ranking.outcomes import extract_outcomes
from leaderboard.store import Board
from leaderboard.tables import rank_board

LINEAR = "folder-blobs:5w1s/linear@ibm 32px n_query=5"
CENTROID = "folder-blobs:5w1s/centroid@ibm 32px n_query=5"
SOFT = "folder-blobs:5w1s/soft_kmeans@ibm 32px transductive n_query=5"


def write(root: Path, adaptation: str) -> Result:
    fields = fakes.episodic().model_dump(exclude={"head"}) | {"adaptation": adaptation}
    spec, data = EpisodicSpec.model_validate(fields), fakes.dataset()
    cell = ResultStore(root, fakes.facts(), data, spec)
    cell.write_block(0, fakes.episodes(spec, data, range(fakes.N_EPISODES), 0.5, adaptation))
    return cell.finish(range(fakes.N_EPISODES), provenance=fakes.provenance())


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    for adaptation in ("linear", "centroid", "soft_kmeans"):
        write(tmp_path / "r", adaptation)
    return tmp_path / "r"


def columns(folder: Path) -> list[tuple[str, ...]]:
    return [view.ranking.columns for view in rank_board(folder)]


def test_each_track_has_a_table_of_its_own(tmp_path: Path, mixed: Path) -> None:
    submit(mixed, tmp_path / "board", DECLARATION)
    assert columns(tmp_path / "board") == [(LINEAR,), (CENTROID,), (SOFT,)]
    file = Board.open(tmp_path / "board").file.model_copy(update={"heads": "together"})
    write_record(tmp_path / "board" / "board.json", file)
    assert columns(tmp_path / "board") == [(CENTROID, LINEAR), (SOFT,)]
    assert [view.track for view in rank_board(tmp_path / "board")] == [
        Track(protocol="ibm", input_size=32),
        Track(protocol="ibm", input_size=32, transductive=True),
    ]


@pytest.mark.parametrize("wrong", [{"colour": 1}, {"schema_version": 1}, {"transductive": True}])
def test_a_board_file_of_another_form_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    (tmp_path / "board.json").write_text(json.dumps({"name": "b"} | wrong))
    with pytest.raises(ValidationFailed, match=next(iter(wrong))):
        Board.open(tmp_path)


def test_tables_mark_them(mixed: Path, tmp_path: Path) -> None:
    results = [write(mixed, name) for name in ("linear", "soft_kmeans")]
    shown = table.build_table(results)
    rows, notes = shown.rows, shown.note.splitlines()
    assert [row[0] for row in rows][:2] == [name.replace(" 32px", "") for name in (LINEAR, SOFT)]
    assert "transductive: sees all queries at once; not comparable with the other rows" in notes
    assert "transductive" not in table.build_table(results[:1]).note


def draws(root: Path) -> dict[str, str]:
    return {str(one.result.task): extract_outcomes(one).draws for one in read_loaded(root)}


def test_heads_share_their_episodes_shots_and_probes_do_not(mixed: Path, tmp_path: Path) -> None:
    fakes.write(mixed, shots=5)
    fakes.write_probe(mixed)
    once, more, centroid, probe = (
        next(d for task, d in draws(mixed).items() if part in task)
        for part in ("1s/linear", "5s/linear", "1s/centroid", "probe")
    )
    assert once == centroid
    assert len({once, more, probe}) == 3
    other = fakes.dataset("folder-other").model_copy(update={"images_hash": "f" * 64})
    fakes.write(tmp_path / "other", data=other)
    assert once not in draws(tmp_path / "other").values()
