"""The method board end to end: entries on disk, the command, its four shapes."""

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run as spawn
from typing import Any

import numpy as np
import pytest
from support import cli, fakes
from support.methods import build_board, facts, name_controls, outcomes, random_init, runs_of

from fsbench.api.submit import submit
from fsbench.core import statistics
from fsbench.results.verification import read_cells
from leaderboard.methods.board import read_method_boards, split_conditions
from leaderboard.methods.record import MethodBoard, MethodRow
from leaderboard.methods.tables import make_tables, render_csv, render_markdown

COLUMN = "folder-blobs:5w1s/linear@ibm 32px n_query=5"
Call = Callable[..., str]


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """normal and llf with two seeds each, a composition with one, a random init, an old run.

    The board names normal and the random init as controls.
    """
    root = tmp_path_factory.mktemp("methods")
    facts_of_runs = [facts(name, seed) for name in ("normal", "llf") for seed in (0, 1)]
    facts_of_runs += [
        facts("swr+weight_compander", flops=2 * 10**12),
        random_init(),
        fakes.facts("old"),
    ]
    accuracy = {"toy/normal": 0.5, "toy/llf": 0.8, "toy/swr+weight_compander": 0.52}
    for facts_of_run in facts_of_runs:
        name = facts_of_run.ref.removeprefix("run:runs/")
        right = accuracy.get(facts_of_run.recipe or "", 0.3)
        fakes.write(root / "results", right, name=name, backbone=facts_of_run)
    submitted = submit(root / "results", root / "board", fakes.DECLARATION)
    name_controls(root / "board", submitted)
    return root / "board"


@pytest.fixture
def call(board: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    def shown(*arguments: str) -> str:
        capsys.readouterr()
        assert cli.call("leaderboard", "methods", "--board", str(board), *arguments) == 0
        return capsys.readouterr().out

    return shown


def rows(method_board: MethodBoard) -> dict[str, MethodRow]:
    """The rows by method."""
    return {row.method: row for row in method_board.rows}


def test_json_is_the_record_and_its_gain_is_that_of_the_records(board: Path, call: Call) -> None:
    (data,) = json.loads(call("--format", "json"))
    method_board = MethodBoard.model_validate(data)
    row_of = rows(method_board)
    assert method_board.columns == (COLUMN,)
    assert [row.method for row in method_board.rows][:3] == [
        "llf", "swr+weight_compander", "normal",
    ]  # fmt: skip
    values: dict[str, list[Any]] = {}
    for cell in read_cells(board):
        values.setdefault(cell.result.backbone.recipe or "", []).append(cell.records)
    llf, plain = (
        np.stack([run.accuracy for run in values[name]]) for name in ("toy/llf", "toy/normal")
    )
    row = row_of["llf"]
    assert row.seeds == (0, 1)
    assert row.overall is not None
    assert row.overall.mean == pytest.approx(llf.mean())
    gain = row.scores[COLUMN].gains["normal"]
    assert gain.gap == pytest.approx(llf.mean() - plain.mean())
    assert gain.covers == "seeds and episodes"
    assert row.name.startswith("entry-llf")
    assert row.controls["normal"] == row_of["normal"].name
    one = row_of["swr+weight_compander"]
    assert one.overall is not None
    assert one.overall.gains["normal"].covers == "episodes"
    assert one.overall.gains["normal"].seeds == (0,)
    assert one.overall.variance_seeds is None
    assert one.overall.ci95_seeds is None
    assert one.overall.gains["random_init"].gap > 0
    assert list(method_board.left_out) == ["entry-old"]


def test_costs_are_means_over_the_seeds(board: Path) -> None:
    (method_board,) = read_method_boards(board)
    row_of = rows(method_board)
    costs = row_of["llf"].costs
    assert (costs.steps, costs.samples, costs.flops) == (120, 7680, 1e12)
    assert costs.hours == pytest.approx(0.01)
    assert costs.device == "cpu"
    assert row_of["random init"].costs.hours == 0


def test_tables_say_why_there_is_no_control(call: Call) -> None:
    shown = call("--format", "md")
    assert "swr+weight\\_compander" in shown
    assert "over normal" in shown
    assert "over random init" in shown
    assert "other schedule |" not in shown, "no row has such a control here"
    assert "entry-old: its results have no recipe and cost" in shown
    assert "folder-blobs" in shown
    text = call()
    assert "TFLOPs" in text
    assert text.count("entry-llf") == 2, "in two tables"
    assert "equal compute: none; below: none. 1 " in text, "two seeds are too few"


def test_csv_has_a_line_a_row_and_column(call: Call) -> None:
    lines = list(csv.DictReader(io.StringIO(call("--format", "csv"))))
    assert len(lines) == 8
    cells = {(line["method"], line["column"]): line for line in lines}
    line = cells["llf", "overall"]
    assert float(line["gains_normal_gap"]) > 0.2
    assert line["controls_normal"].startswith("entry-normal")
    assert line["gains_normal_covers"] == "seeds and episodes"
    assert float(line["costs_flops"]) == 1e12
    assert cells["random init", COLUMN]["gains_normal_gap"] == ""


def test_the_order_of_entries_does_not_matter_and_ties_stand_together() -> None:
    draw = np.random.default_rng(0)
    names = {"a": facts(), "b": facts("llf"), "c": facts("lw"), "d": facts("swr")}
    entries = {name: {"x:5w1s": outcomes(draw.uniform(size=20), "x")} for name in names}
    entries["c"] = {"x:5w1s": entries["a"]["x:5w1s"]}
    one = build_board(["x:5w1s"], runs_of(entries, names))
    back = build_board(["x:5w1s"], runs_of(dict(reversed(entries.items())), names))
    assert one == back
    gain = rows(one)["lw"].scores["x:5w1s"].gains["normal"]
    assert (gain.gap, gain.p, gain.p_holm) == (0.0, 1.0, 1.0)


def test_a_row_that_lacks_a_column_comes_last_without_overall() -> None:
    names = {"a": facts(), "b": facts("llf"), "c": facts("lw")}
    full = {"x": outcomes([0.1, 0.2, 0.3], "x"), "y": outcomes([0.4, 0.2, 0.0], "y")}
    high = {"x": outcomes([0.9, 0.8, 1.0], "x")}
    method_board = build_board(["x", "y"], runs_of({"a": full, "b": high, "c": full}, names))
    row = method_board.rows[-1]
    assert (row.name, row.overall, list(row.scores)) == ("llf", None, ["x"])
    assert row.scores["x"].gains["normal"].gap == pytest.approx(0.7)
    overall = rows(method_board)["lw"].overall
    assert overall is not None
    assert overall.mean == pytest.approx(0.2)
    zeros = [np.zeros(3), np.zeros(3)]
    expected = statistics.paired([full["x"].values, full["y"].values], zeros, ["x", "y"])
    assert overall.ci95 == pytest.approx(expected.ci95)
    assert overall.n == 6


PROBE = "x:probe 64px"


def test_plain_training_stands_beside_itself_under_the_other_schedule() -> None:
    names = {"a": facts(), "b": facts(schedule="single_cycle"), "c": facts("llf")}
    values = {"a": [0.5, 0.3], "b": [0.2, 0.2], "c": [0.6, 0.6]}
    entries = {name: {PROBE: outcomes(method_board, "x")} for name, method_board in values.items()}
    method_board = build_board([PROBE], runs_of(entries, names))
    gaps = {
        row.name: {kind: gain.gap for kind, gain in row.scores[PROBE].gains.items()}
        for row in method_board.rows
    }
    assert gaps["llf"] == pytest.approx({"normal": 0.2, "other_schedule": 0.4})
    assert gaps["a"] == pytest.approx({"other_schedule": 0.2})
    assert gaps["b"] == pytest.approx({"other_schedule": -0.2})
    table = make_tables(method_board)[0]
    assert table.columns[6:8] == ("over normal", "over normal, other schedule")
    assert [row[:3] for row in table.rows if row[6] == "-"] == [
        ("◦ a", "normal", "3 rounds x 4 epochs, cosine"),
        ("◦ b", "normal", "3 rounds x 4 epochs, single_cycle"),
    ]


def test_a_board_without_runs_of_our_own_says_how_to_get_some() -> None:
    method_board = build_board(
        ["x"], runs_of({"a": {"x": outcomes([0.5], "x")}}, {"a": fakes.facts()})
    )
    assert method_board.rows == ()
    (table,) = make_tables(method_board)
    assert "fsbench pretrain" in table.note
    assert "Left out, a:" in render_markdown(method_board)
    assert render_csv([method_board]).count("\n") == 1


def test_text_of_strangers_is_neither_markup_nor_formula() -> None:
    names = {"<script>|x": facts("swr", lam=0.1, device="=cmd()"), "b": facts("swr")}
    entries = {name: {PROBE: outcomes([0.5, 0.25], "x")} for name in names}
    method_board = build_board([PROBE], runs_of(entries, names))
    shown = render_markdown(method_board)
    assert "<script>" not in shown
    assert "&lt;script&gt;\\|x" in shown
    lines = list(csv.DictReader(io.StringIO(render_csv([method_board]))))
    assert {line["costs_device"] for line in lines} == {"'=cmd()", "cpu"}


def test_no_board_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.call("leaderboard", "methods", "--board", str(tmp_path / "none")) == 2
    assert "there is no board" in capsys.readouterr().err


def test_it_loads_no_torch(board: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from leaderboard.methods import board\n"
        "board.read_method_boards(Path(sys.argv[1]))\n"
        "print(sorted({'torch', 'timm', 'sklearn'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", script, str(board)]
    done = spawn(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_network_and_part_of_a_source_has_a_table_and_random_ones_join_theirs() -> None:
    run, few = facts("normal"), facts("normal", source_subset={"classes": 2, "images_per_class": 5})
    other = run.model_copy(update={"architecture": "fsbench/other@8"})
    random = other.model_copy(
        update={"architecture": "fsbench/other@16", "training": None, "random_init": 0}
    )
    untrained = other.model_copy(update={"architecture": "timm/resnet18", "training": None})
    backbones = {"a": run, "b": other, "c": random, "d": untrained}
    ours = run.architecture.partition("@")[0]
    parts = split_conditions(backbones)
    expected = {"fsbench/other": ["b", "c"], ours: ["a"]}
    expected[min(expected)].append("d")  # no network of its own
    assert parts == expected
    assert split_conditions({name: backbones[name] for name in "cd"}) == {"": ["c", "d"]}
    before = run.model_copy(update={"training": None, "random_init": 0})
    backbones = {"a": run, "e": few, "r": before}
    assert split_conditions(backbones) == {
        "": ["a", "r"],
        "2 classes x 5 images": ["e", "r"],
    }


def test_in_domain_gains_are_paired_by_seed_and_tested_from_two_seeds_on() -> None:
    accuracies = {"normal": (0.20, 0.21, 0.22), "swr": (0.22, 0.25, 0.25), "l2": (0.21, 0.22, 0.22)}
    runs = {
        f"{method}{seed}": facts(method, seed).model_copy(update={"source_accuracy": accuracy})
        for method, by_seed in accuracies.items()
        for seed, accuracy in enumerate(by_seed)
    } | {"lw0": facts("lw", 0).model_copy(update={"source_accuracy": 0.5})}
    entries = {name: {PROBE: outcomes([0.5, 0.25])} for name in runs}
    gains = {row.name: row.source_gain for row in build_board([PROBE], runs_of(entries, runs)).rows}
    swr, l2, lw = gains["swr"], gains["l2"], gains["lw"]
    assert swr
    assert l2
    assert lw
    assert gains["normal"] is None
    # differences .02, .04, .03: t = .03 / (.01 / sqrt 3) = 5.196 with 2 degrees of freedom
    assert swr.gap == pytest.approx(0.03)
    assert swr.ci95 == pytest.approx(4.30265 * 0.01 / 3**0.5, rel=1e-5)
    assert swr.p == pytest.approx(1 - 5.196152 / 29**0.5, rel=1e-4)
    # .01, .01, 0: t = 2; the family has the two rows with several seeds
    assert l2.p == pytest.approx(1 - 2 / 6**0.5, rel=1e-4)
    assert (swr.p_holm, l2.p_holm) == (pytest.approx(2 * swr.p), pytest.approx(l2.p))
    assert (lw.gap, lw.ci95, lw.p_holm) == (pytest.approx(0.3), None, 1.0)
    table = make_tables(build_board([PROBE], runs_of(entries, runs)))[0]
    cells = {row[1]: row[-2] for row in table.rows}
    assert cells["swr"] == "24.00 (+3.00 ± 2.48)"
    assert cells["lw"] == "50.00 (+30.00)"
    assert cells["normal"] == "21.00"


def test_two_equal_in_domain_gaps_are_no_evidence() -> None:
    runs = {
        f"{method}{seed}": facts(method, seed).model_copy(update={"source_accuracy": accuracy})
        for method, accuracy in (("normal", 0.25), ("swr", 0.5))
        for seed in range(2)
    }
    entries = {name: {PROBE: outcomes([0.5, 0.25])} for name in runs}
    board = build_board([PROBE], runs_of(entries, runs))
    gain = next(row.source_gain for row in board.rows if row.name == "swr")
    assert gain
    assert (gain.gap, gain.p_holm) == (0.25, 1.0)
