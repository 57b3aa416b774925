"""Pictures of a method board: which there are, and that they show the record's numbers."""

import re
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.typing import NDArray
from support import fakes
from support.cli import call
from support.methods import build_board, facts, name_controls, outcomes, random_init, runs_of

from fsbench.api.submit import submit
from fsbench.core.plotting import INK, PAPER, render_figure
from fsbench.core.schema import BackboneFacts
from leaderboard.figures import draw_figures, write_figures
from leaderboard.methods.record import MethodBoard, MethodRow, MethodScore
from leaderboard.ranking.outcomes import Outcomes

LINEAR, AFFINE = "x:5w1s/linear@ibm 32px n_query=5", "x:5w1s/affine@ibm 32px n_query=5"
N = 200


def values(mean: float, name: str) -> NDArray[np.float64]:
    """N outcomes around the mean, half of the noise shared by all names."""
    shared, noise = (np.random.default_rng(crc32(n.encode())) for n in ("", name))
    return np.clip(mean + shared.normal(0, 0.05, N) + noise.normal(0, 0.05, N), 0, 1)


def runs() -> tuple[dict[str, dict[str, Outcomes]], dict[str, BackboneFacts]]:
    """llf far above normal, lw far below, swr like it; two seeds of normal and llf."""
    means = {"normal": 0.5, "llf": 0.6, "lw": 0.4, "swr": 0.501}
    facts_by_entry = {f"{m}{s}": facts(m, s) for m in ("normal", "llf") for s in (0, 1)}
    facts_by_entry |= {
        "lw0": facts("lw"),
        "swr0": facts("swr", flops=2 * 10**12),
        "random": random_init(),
    }
    entries = {
        name: {
            LINEAR: outcomes(values(means.get(name[:-1], 0.2), name), "linear"),
            AFFINE: outcomes(values(means.get(name[:-1], 0.2) + 0.1, f"{name} affine"), "affine"),
        }
        for name in facts_by_entry
    }
    return entries, facts_by_entry


@pytest.fixture(scope="module")
def board() -> MethodBoard:
    entries, facts_by_entry = runs()
    return build_board([LINEAR, AFFINE], runs_of(entries, facts_by_entry))


def points(figure: Figure) -> dict[str, Any]:
    """The drawn points by the name of their mark."""
    return {str(bar.get_label()): bar[0] for bar in figure.axes[0].containers}


def at(line: Any) -> tuple[float, float]:
    ((x, y),) = line.get_xydata()
    return float(x), float(y)


def row_names(figure: Figure) -> list[str]:
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def row(board: MethodBoard, name: str) -> MethodRow:
    (only,) = (row for row in board.rows if row.name == name)
    return only


def overall(board: MethodBoard, name: str) -> MethodScore:
    score = row(board, name).overall
    assert score is not None
    return score


def test_every_question_that_the_board_answers_has_a_picture(board: MethodBoard) -> None:
    drawn = draw_figures(board)
    assert list(drawn) == [
        "gains", "targets", "in_domain", "in_domain_gains", "carry", "cost", "spread",
        "adaptation",
    ]  # fmt: skip
    for name, figure in draw_figures(board).items():
        assert render_figure(figure, "svg") == render_figure(drawn[name], "svg")


def test_a_question_without_an_answer_has_none(board: MethodBoard) -> None:
    alone = board.model_copy(update={"rows": tuple(r for r in board.rows if r.method == "normal")})
    assert list(draw_figures(alone)) == ["spread"]
    costs = {"costs": board.rows[0].costs}
    equal = [row.model_copy(update=costs) for row in board.rows]
    assert "cost" not in draw_figures(board.model_copy(update={"rows": tuple(equal)}))
    one = {"a": facts(), "b": facts("llf")}
    entries = {name: {LINEAR: outcomes(values(0.5, name))} for name in one}
    drawn = draw_figures(build_board([LINEAR], runs_of(entries, one)))
    assert not {"adaptation", "spread"} & drawn.keys()


def test_gains_are_ordered_and_coloured_by_holm(board: MethodBoard) -> None:
    figure = draw_figures(board)["gains"]
    assert row_names(figure) == ["llf, 2 seeds", "swr, 1 seed", "lw, 1 seed"]
    gains = [overall(board, name).gains["normal"] for name in ("llf", "swr", "lw")]
    assert texts(figure) == [f"{100 * gain.gap:+.2f}" for gain in gains]
    colours = [line.get_color() for line in points(figure).values()]
    assert colours[1:] == [INK, INK], "one seed shows no significant gain or loss"
    assert [colour != INK for colour in colours] == [g.significant for g in gains]
    faces = [line.get_markerfacecolor() == PAPER for line in points(figure).values()]
    assert faces == [False, True, True], "one seed is hollow"


def test_targets_have_the_gain_of_each_column(board: MethodBoard) -> None:
    figure = draw_figures(board)["targets"]
    rows = [row(board, name) for name in row_names(figure)]
    gains = [r.scores[column].gains["normal"] for r in rows for column in board.columns]
    assert [r.name for r in rows] == ["llf", "swr", "lw"]
    assert texts(figure) == [f"{100 * gain.gap:+.1f}" for gain in gains]


def test_scatters_lie_at_the_numbers_of_the_record(board: MethodBoard) -> None:
    drawn = draw_figures(board)
    for name, line in points(drawn["cost"]).items():
        gain = overall(board, name).gains["normal"]
        assert at(line) == pytest.approx((row(board, name).costs.flops / 1e12, 100 * gain.gap))
    for name, line in points(drawn["in_domain"]).items():
        source = row(board, name).source_accuracy
        assert source is not None
        assert at(line) == pytest.approx((100 * source, 100 * overall(board, name).mean))
    for name, line in points(drawn["carry"]).items():
        on_source = row(board, name).source_gain
        assert on_source is not None
        gain = overall(board, name).gains["normal"]
        assert at(line) == pytest.approx((100 * on_source.gap, 100 * gain.gap))
    assert points(drawn["cost"]).keys() == {"llf", "swr", "lw"} == points(drawn["carry"]).keys()


def test_linear_stands_against_affine(board: MethodBoard) -> None:
    drawn = points(draw_figures(board)["adaptation"])
    assert drawn.keys() == {"llf", "swr", "lw"}
    for name, line in drawn.items():
        gains = [row(board, name).scores[c].gains["normal"] for c in (LINEAR, AFFINE)]
        assert at(line) == pytest.approx([100 * gain.gap for gain in gains])


def test_linear_and_affine_meet_in_the_seeds_that_both_have(
    board: MethodBoard, tmp_path: Path
) -> None:
    """The linear table has two seeds of llf, the affine one the first of them."""
    entries, facts_by_entry = runs()
    first = {name: values for name, values in entries.items() if not name.endswith("1")}
    apart = [
        build_board([LINEAR], runs_of(entries, facts_by_entry)).model_copy(
            update={"track": "linear ibm 32px"}
        ),
        build_board([AFFINE], runs_of(first, facts_by_entry)).model_copy(
            update={"track": "affine ibm 32px"}
        ),
    ]
    names = {path.name for path in write_figures(apart, tmp_path)}
    assert "linear-ibm-32px-adaptation.svg" not in names
    assert "affine-ibm-32px-adaptation.svg" in names
    shown = positions(draw_figures(apart[1], apart[:1]))
    one_seed = draw_figures(build_board([LINEAR, AFFINE], runs_of(first, facts_by_entry)))
    assert shown == positions(one_seed)
    assert shown != positions(draw_figures(board))


def positions(figures: dict[str, Figure]) -> dict[str, tuple[float, float]]:
    return {name: at(line) for name, line in points(figures["adaptation"]).items()}


def test_only_rows_with_several_seeds_tell_their_spread(board: MethodBoard) -> None:
    figure = draw_figures(board)["spread"]
    names = row_names(figure)
    assert sorted(names) == ["llf", "normal"]
    lines = figure.axes[0].get_lines()
    for line, kind in zip(lines, ("ci95", "ci95_seeds"), strict=True):
        halves = [100 * getattr(overall(board, name), kind) for name in names]
        assert line.get_xdata() == pytest.approx(halves)


def test_several_tracks_have_files_of_their_own(board: MethodBoard, tmp_path: Path) -> None:
    other = board.model_copy(update={"track": "ibm 224px"})
    boards = [board.model_copy(update={"track": "ibm 32px"}), other]
    paths = write_figures(boards, tmp_path / "made")
    assert {path.name.rpartition("-")[0] for path in paths} == {"ibm-32px", "ibm-224px"}
    names = {path.name for path in write_figures([board], tmp_path)}
    assert names == {f"{name}.svg" for name in draw_figures(board)}


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, right in (("normal", 0.5), ("llf", 0.8)):
        fakes.write(tmp_path / "results", right, name=name, backbone=facts(name))
    submitted = submit(tmp_path / "results", tmp_path / "board", fakes.DECLARATION)
    name_controls(tmp_path / "board", submitted)
    command = ["leaderboard", "methods", "--board", str(tmp_path / "board"), "--figures"]
    assert call(*command, str(tmp_path / "pictures")) == 0
    assert re.search(r"wrote .*gains\.svg", capsys.readouterr().err)
    assert (tmp_path / "pictures" / "gains.svg").is_file()
