"""fsbench.compare, submit and leaderboard on results in memory, without the command line."""

from pathlib import Path

import pytest
from support.fakes import DECLARATION

import fsbench
from fsbench.api.leaderboard import RankedBoard
from fsbench.core.io import write_record
from fsbench.core.tables import TextTable
from leaderboard.record import BoardFile

TASKS = ["toy_tiles:5w1s", "toy_tiles:5w5s"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[fsbench.Results, fsbench.Results]:
    """Two random networks on the same episodes."""
    options = {"input_size": 32, "episodes": 20, "cache": tmp_path_factory.mktemp("cache")}
    first, second = (
        fsbench.evaluate("fsbench/toy_resnet", TASKS, random_init=seed, progress=False, **options)
        for seed in (0, 1)
    )
    return first, second


def test_results_in_memory_are_compared(pair: tuple[fsbench.Results, fsbench.Results]) -> None:
    comparisons = fsbench.compare(*pair)
    (comparison,) = comparisons
    assert (comparison.a, comparison.b) == tuple(results.models[0] for results in pair)
    assert [gap.task for gap in comparison.tasks] == [f"{task}/linear@ibm 32px" for task in TASKS]
    assert comparison.overall.gap == pytest.approx(
        sum(a.score.mean - b.score.mean for a, b in zip(*pair, strict=True)) / 2
    )
    text = repr(comparisons)
    assert f"A: {comparison.a}, B: {comparison.b}" in text
    assert "overall, 2 tasks" in text
    frame = comparisons.to_frame()
    assert frame["task"].tolist() == [gap.task for gap in comparison.gaps()]
    assert frame["gap"].tolist() == [gap.gap for gap in comparison.gaps()]
    (chosen,) = fsbench.compare(*pair, tasks=["toy_tiles:5w5s"])
    assert len(chosen.tasks) == 1


def test_results_in_memory_become_entries_of_a_ranked_board(
    pair: tuple[fsbench.Results, fsbench.Results], tmp_path: Path
) -> None:
    board = tmp_path / "board"
    for name, results in zip(("first", "second"), pair, strict=True):
        (entry,) = fsbench.submit(results, board, name=name, declaration=DECLARATION)
        assert (entry.name, len(entry.loaded), entry.left_out) == (name, 2, ())
    frame = fsbench.leaderboard(board).to_frame()
    assert frame["tier"].isna().all()
    assert {*frame["reason"]} == {"short: not all episodes"}
    write_record(board / "board.json", BoardFile(name="board", episodes={"linear": 20}))
    ranked = fsbench.leaderboard(board)
    frame = ranked.to_frame()
    assert {*frame["entry"]} == {"first", "second"}
    assert frame["tier"].notna().all()
    for results, (_, rows) in zip(pair, frame.groupby("entry"), strict=True):
        values, means = rows.set_index("column")["mean"], [r.score.mean for r in results]
        assert values["overall"] == pytest.approx(sum(means) / 2)
        assert values["toy_tiles:5w1s/linear@ibm 32px"] == pytest.approx(means[0])
    assert "first" in repr(ranked)
    assert "first" in ranked._repr_html_()
    (comparison,) = fsbench.compare("first", "second", board=board)
    assert comparison.overall.gap == fsbench.compare(*pair)[0].overall.gap


def test_texts_of_strangers_are_escaped_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "<script>x</script>"
    board = RankedBoard(())
    table = TextTable(hostile, (hostile,), ((hostile,),))
    monkeypatch.setattr(board, "tables", lambda: [table])
    html = board._repr_html_()
    assert "<script>" not in html
    assert html.count("&lt;script&gt;") == 3
