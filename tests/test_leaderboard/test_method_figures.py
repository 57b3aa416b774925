"""Pictures of a method board: which there are, and that they show the record's numbers."""

import re
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray
from support import fakes
from support.methods import facts, outcomes, random_init

from fsbench.cli.main import run
from fsbench.core.plotting import INK, Drawing, render_figure
from fsbench.core.schema import BackboneFacts
from leaderboard.methods.board import build_method_board
from leaderboard.methods.figures import count_episodes_needed, draw_figures, write_figures
from leaderboard.methods.record import Gain, MethodBoard, MethodRow
from leaderboard.ranking.outcomes import Outcomes
from leaderboard.rules.submission import submit_results

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
    return build_method_board("b", [LINEAR, AFFINE], entries, facts_by_entry)


def hints(drawing: Drawing) -> list[str]:
    """What a pointer shows over the marks with numbers."""
    return [hint for hint in drawing.hints.values() if ": " in hint]


def labels(drawing: Drawing) -> list[str]:
    """What a pointer shows over the labels of rows."""
    return [hint for hint in drawing.hints.values() if ": " not in hint]


def colours(drawing: Drawing) -> dict[str, str]:
    """Colours of the marks by the name that their hint begins with."""
    marks = {mark.get_gid(): mark for mark in drawing.figure.axes[0].lines}
    numbers = {gid: hint for gid, hint in drawing.hints.items() if ": " in hint}
    return {hint.partition(":")[0]: marks[gid].get_color() for gid, hint in numbers.items()}


def test_every_question_that_the_board_answers_has_a_picture(board: MethodBoard) -> None:
    drawn = draw_figures(board)
    assert list(drawn) == [
        "gains", "targets", "in_domain", "in_domain_gains", "carry", "cost", "spread", "episodes",
        "adaptation",
    ]  # fmt: skip
    for name, drawing in draw_figures(board).items():
        assert render_figure(drawing, Path("a.svg")) == render_figure(drawn[name], Path("a.svg"))


def test_a_question_without_an_answer_has_none(board: MethodBoard) -> None:
    alone = board.model_copy(update={"rows": tuple(r for r in board.rows if r.method == "normal")})
    assert list(draw_figures(alone)) == ["spread"]
    costs = {"costs": board.rows[0].costs}
    equal = [row.model_copy(update=costs) for row in board.rows]
    assert "cost" not in draw_figures(board.model_copy(update={"rows": tuple(equal)}))
    one = {"a": facts(), "b": facts("llf")}
    entries = {name: {LINEAR: outcomes(values(0.5, name))} for name in one}
    drawn = draw_figures(build_method_board("b", [LINEAR], entries, one))
    assert not {"adaptation", "spread"} & drawn.keys()


def test_gains_are_ordered_and_coloured_by_holm(board: MethodBoard) -> None:
    drawing = draw_figures(board)["gains"]
    shown = hints(drawing)
    assert [*colours(drawing)] == ["llf, 2 seeds", "swr, 1 seed", "lw, 1 seed"]
    styles = [*colours(drawing).values()]
    row = next(row for row in board.rows if row.name == "llf")
    assert row.overall is not None
    gain = row.overall.gains["normal"]
    assert f"{100 * gain.gap:+.2f} points" in shown[0]
    assert styles[1:] == [INK, INK], "one seed shows no significant gain or loss"
    sure = [
        r.overall.gains["normal"].is_significant(board.alpha)
        for name in ("llf", "swr", "lw")
        for r in board.rows
        if r.name == name and r.overall
    ]
    assert [style != INK for style in styles] == sure


def test_a_gain_that_holm_takes_back_is_not_coloured(board: MethodBoard) -> None:
    def doubted(row: MethodRow) -> MethodRow:
        assert row.overall is not None
        gains = dict(row.overall.gains)
        if row.name == "swr":
            gains["normal"] = gains["normal"].model_copy(update={"p": 0.02, "p_holm": 0.06})
        cell = row.overall.model_copy(update={"gains": gains})
        return row.model_copy(update={"overall": cell})

    drawn = draw_figures(board.model_copy(update={"rows": tuple(map(doubted, board.rows))}))
    for name in ("gains", "cost"):
        (colour,) = (c for label, c in colours(drawn[name]).items() if "swr" in label)
        assert colour == INK
    assert "swr" in labels(drawn["episodes"])


def test_targets_have_the_gain_of_each_column(board: MethodBoard) -> None:
    shown = "\n".join(hints(draw_figures(board)["targets"]))
    for row in board.rows:
        for cell in row.cells.values():
            if "normal" in cell.gains:
                points = f"{100 * cell.gains['normal'].gap:+.2f}".replace("-", "−")
                assert f"{row.name}, " in shown
                assert f"{points} points" in shown


def test_linear_stands_against_affine(board: MethodBoard) -> None:
    shown = hints(draw_figures(board)["adaptation"])
    for row in board.rows:
        gains = [row.cells[c].gains.get("normal") for c in (LINEAR, AFFINE)]
        if all(gains):
            x, y = (100 * gain.gap for gain in gains if gain)
            assert f"{row.name}: {x:.2f} %, {y:.2f} %" in shown


def test_linear_and_affine_meet_in_the_seeds_that_both_have(
    board: MethodBoard, tmp_path: Path
) -> None:
    """The linear table has two seeds of llf, the affine one the first of them."""
    entries, facts_by_entry = runs()
    first = {name: values for name, values in entries.items() if not name.endswith("1")}
    apart = [
        build_method_board("b", [LINEAR], entries, facts_by_entry).model_copy(
            update={"track": "linear ibm 32px"}
        ),
        build_method_board("b", [AFFINE], first, facts_by_entry).model_copy(
            update={"track": "affine ibm 32px"}
        ),
    ]
    drawn = {path.name: path.read_text() for path in write_figures(apart, tmp_path)}
    assert "linear-ibm-32px-adaptation.svg" not in drawn
    shown = hints(draw_figures(apart[1], apart[:1])["adaptation"])
    assert all(hint in drawn["affine-ibm-32px-adaptation.svg"] for hint in shown)
    one_seed = draw_figures(build_method_board("b", [LINEAR, AFFINE], first, facts_by_entry))
    assert shown == hints(one_seed["adaptation"])
    assert shown != hints(draw_figures(board)["adaptation"])


def test_only_rows_with_several_seeds_tell_their_spread(board: MethodBoard) -> None:
    drawing = draw_figures(board)["spread"]
    assert set(labels(drawing)) >= {"normal", "llf"}
    assert not {"lw", "swr"} & set(labels(drawing))
    row = next(row for row in board.rows if row.name == "llf")
    assert row.overall is not None
    for half in (row.overall.ci95, row.overall.ci95_seeds):
        assert half is not None
        assert f">{100 * half:.2f}<" in drawing.to_svg("a")


def test_episodes_are_those_of_the_z_test_and_only_for_what_is_open(board: MethodBoard) -> None:
    gain = Gain(gap=0.01, ci95=0.0196, p=0.3, n=1200, seeds=(0,), covers="episodes")
    # standard error .01 at 600 episodes a column; 1.960 + .842 standard errors must make one gap
    assert count_episodes_needed(gain, 2) == pytest.approx(600 * (1.95996 + 0.84162) ** 2, abs=2)
    assert labels(draw_figures(board)["episodes"]) == ["swr"]


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
    submit_results(tmp_path / "results", tmp_path / "board", fakes.DECLARATION)
    command = ["leaderboard", "methods", "--board", str(tmp_path / "board"), "--figures"]
    with pytest.raises(SystemExit) as stop:
        run([*command, str(tmp_path / "pictures")])
    assert stop.value.code == 0
    assert re.search(r"wrote .*gains\.svg", capsys.readouterr().err)
    assert (tmp_path / "pictures" / "gains.svg").is_file()
