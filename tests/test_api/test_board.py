"""fsbench.compare, submit and leaderboard on results in memory, without the command line."""

from pathlib import Path

import pytest
from support.fakes import DECLARATION

import fsbench
from fsbench.api.leaderboard import RankedBoard
from fsbench.core.errors import UsageError, ValidationFailed
from fsbench.core.io import write_record
from fsbench.core.schema import Declaration
from fsbench.core.tables import TextTable
from leaderboard.record import BoardFile

TASKS = ["toy_tiles:5w1s", "toy_tiles:5w5s"]


def evaluate(seed: int, cache: Path) -> fsbench.Results:
    return fsbench.evaluate(
        "fsbench/toy_resnet",
        TASKS,
        random_init=seed,
        input_size=32,
        episodes=20,
        cache=cache,
        progress=False,
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[fsbench.Results, fsbench.Results]:
    cache = tmp_path_factory.mktemp("cache")
    return evaluate(0, cache), evaluate(1, cache)


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
    assert str(comparison.sign_test) in text
    frame = comparisons.to_frame()
    assert frame["task"].tolist() == [gap.task for gap in comparison.gaps()]
    assert frame["gap"].tolist() == [gap.gap for gap in comparison.gaps()]
    (chosen,) = fsbench.compare(*pair, tasks=["toy_tiles:5w5s"])
    assert len(chosen.tasks) == 1


def test_what_cannot_be_compared_is_refused(
    pair: tuple[fsbench.Results, fsbench.Results], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="share no task"):
        fsbench.compare(pair[0][:1], pair[1][1:])
    for results in pair:
        results.save(tmp_path / "both")
    with pytest.raises(UsageError, match="several models"):
        fsbench.compare(tmp_path / "both", pair[0])


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
    means = {name: [r.score.mean for r in results] for name, results in zip(
        ("first", "second"), pair, strict=True)}  # fmt: skip
    for name, rows in frame.groupby("entry"):
        values = rows.set_index("column")["mean"]
        assert values["overall"] == pytest.approx(sum(means[name]) / 2)
        assert values["toy_tiles:5w1s/linear@ibm 32px"] == pytest.approx(means[name][0])
    assert "first" in repr(ranked)
    assert "first" in ranked._repr_html_()
    (comparison,) = fsbench.compare("first", "second", board=board)
    assert comparison.overall.gap == fsbench.compare(*pair)[0].overall.gap


def test_a_declaration_is_completed_and_checked(
    pair: tuple[fsbench.Results, fsbench.Results], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="lacks authors"):
        fsbench.submit(pair[0], tmp_path / "board", name="first")
    fsbench.submit(pair[0], tmp_path / "board", declaration=DECLARATION, dry_run=True)
    assert not (tmp_path / "board").exists()
    fsbench.submit(pair[0], tmp_path / "board", declaration=DECLARATION)
    with pytest.raises(ValidationFailed, match="'entry' on the board, expected a free name"):
        fsbench.submit(pair[0], tmp_path / "board", declaration=Declaration(**dict(DECLARATION)))
    with pytest.raises(UsageError, match="there is no board"):
        fsbench.leaderboard(tmp_path / "nowhere")


def test_texts_of_strangers_are_escaped_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "<script>x</script>"
    board = RankedBoard(())
    table = TextTable(hostile, (hostile,), ((hostile,),))
    monkeypatch.setattr(board, "tables", lambda: [table])
    html = board._repr_html_()
    assert "<script>" not in html
    assert html.count("&lt;script&gt;") == 3
